//! A server and its authorization server in one, on this machine, for tests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::TaskTracker;
use url::form_urlencoded;

/// The behaviour, which tests change.
#[derive(Clone, Default)]
pub(super) struct Knobs {
    /// Fields of the metadata that are put in place of the usual ones; null takes one away.
    pub(super) metadata: BTreeMap<&'static str, Value>,
    /// The authorization server that the server names.
    pub(super) issuer: Option<String>,
    /// Answers of the token endpoint, the next one first; then the usual one.
    pub(super) tokens: Vec<(u16, String)>,
    /// How long tokens are good.
    pub(super) expires_in: Option<u64>,
    /// True if there is no metadata.
    pub(super) is_silent: bool,
    /// The path that the metadata of the authorization server is at.
    pub(super) metadata_path: Option<&'static str>,
    /// A path that redirects to an address.
    pub(super) redirect: Option<(&'static str, String)>,
}

#[derive(Default)]
struct Shared {
    knobs: Knobs,
    /// Every request but those for metadata: path and form.
    seen: Vec<(String, BTreeMap<String, String>)>,
    issued: usize,
}

pub(super) struct TestAuthority {
    base: String,
    shared: Arc<Mutex<Shared>>,
    _tasks: TaskTracker,
}

impl TestAuthority {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::<Mutex<Shared>>::default();
        let tasks = TaskTracker::new();
        let (state, own, spawner) = (Arc::clone(&shared), base.clone(), tasks.clone());
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, own) = (Arc::clone(&state), own.clone());
                spawner.spawn(serve(stream, state, own));
            }
        });
        Self {
            base,
            shared,
            _tasks: tasks,
        }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn server(&self) -> String {
        format!("{}/mcp", self.base)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Knobs)) {
        change(&mut self.shared.lock().unwrap().knobs);
    }

    /// Returns the forms that were sent to a path.
    pub(super) fn seen(&self, path: &str) -> Vec<BTreeMap<String, String>> {
        let shared = self.shared.lock().unwrap();
        let seen = shared.seen.iter().filter(|(seen, _)| seen == path);
        seen.map(|(_, form)| form.clone()).collect()
    }

    /// Returns the number of uses of refresh tokens.
    pub(super) fn refreshes(&self) -> usize {
        let tokens = self.seen("/token");
        let refreshes = tokens.iter();
        refreshes
            .filter(|form| form["grant_type"] == "refresh_token")
            .count()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Mutex<Shared>>, base: String) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let (head, body) = loop {
        let Ok(read @ 1..) = stream.read(&mut chunk).await else {
            return;
        };
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
    };
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let redirect = shared.lock().unwrap().knobs.redirect.clone();
    let redirect = redirect.filter(|(from, _)| *from == path);
    let (status, text) = match &redirect {
        Some(_) => (307, String::new()),
        None => answer(&shared, &base, &path, &body),
    };
    let header = match (status, redirect) {
        (_, Some((_, to))) => format!("Location: {to}\r\n"),
        (401, None) => format!(
            "WWW-Authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"\r\n"
        ),
        _ => String::new(),
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn answer(shared: &Mutex<Shared>, base: &str, path: &str, body: &str) -> (u16, String) {
    let mut shared = shared.lock().unwrap();
    let form = form_urlencoded::parse(body.as_bytes());
    let form: BTreeMap<String, String> = form.into_owned().collect();
    if !path.starts_with("/.well-known/") {
        shared.seen.push((path.to_owned(), form.clone()));
    }
    let issuer = shared.knobs.issuer.clone();
    let issuer = issuer.unwrap_or_else(|| base.to_owned());
    let metadata_path = shared.knobs.metadata_path;
    let metadata_path = metadata_path.unwrap_or("/.well-known/oauth-authorization-server");
    match path {
        "/mcp" => (401, String::new()),
        _ if shared.knobs.is_silent && path.starts_with("/.well-known/") => (404, String::new()),
        "/.well-known/oauth-protected-resource/mcp" => {
            let document = json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [issuer],
                "scopes_supported": ["read"],
            });
            (200, document.to_string())
        }
        _ if path == metadata_path => (200, metadata(&shared.knobs, base).to_string()),
        "/register" => (
            201,
            json!({"client_id": "registered", "client_secret": "hush-hush", "redirect_uris": []})
                .to_string(),
        ),
        "/token" => token(&mut shared, &form),
        "/revoke" => (200, String::new()),
        _ => (404, String::new()),
    }
}

fn metadata(knobs: &Knobs, base: &str) -> Value {
    let mut metadata = json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "revocation_endpoint": format!("{base}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "response_types_supported": ["code"],
    });
    for (name, value) in &knobs.metadata {
        if value.is_null() {
            metadata.as_object_mut().unwrap().remove(*name);
        } else {
            metadata[*name] = value.clone();
        }
    }
    metadata
}

fn token(shared: &mut Shared, form: &BTreeMap<String, String>) -> (u16, String) {
    if !shared.knobs.tokens.is_empty() {
        return shared.knobs.tokens.remove(0);
    }
    // Every refresh token is good once.
    let expected = format!("refresh-{}", shared.issued);
    if form["grant_type"] == "refresh_token" && form["refresh_token"] != expected {
        return (400, r#"{"error":"invalid_grant"}"#.to_owned());
    }
    shared.issued += 1;
    let mut token = json!({
        "access_token": format!("access-{}", shared.issued),
        "token_type": "Bearer",
        "refresh_token": format!("refresh-{}", shared.issued),
    });
    if let Some(expires_in) = shared.knobs.expires_in {
        token["expires_in"] = expires_in.into();
    }
    (200, token.to_string())
}
