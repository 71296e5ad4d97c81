//! A remote MCP server that wants a token of an authority.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{
    Authority, NOISE, Shared,
    answers::{self, patched},
    knobs::ProtectedKnobs,
};
use crate::harness::{
    Setup,
    remote_server::{Out, RemoteServer, Seen, Then, usual},
};

const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// A server that answers with 401 until a request carries a token that its authority has given out for it, and
/// then as a small MCP server with the tools `t` and `u` would.
pub(crate) struct Protected {
    server: RemoteServer,
    knobs: Arc<Mutex<ProtectedKnobs>>,
}

impl Protected {
    /// A server of this authority.
    pub(crate) fn start(authority: &Authority) -> Self {
        Self::start_with(authority, |_, _| None)
    }

    /// A server whose answers to requests with a good token are the test's own where `handler` gives some.
    pub(crate) fn start_with(
        authority: &Authority,
        handler: impl Fn(&Seen, &mut Out) -> Option<Then> + Send + Sync + 'static,
    ) -> Self {
        let knobs = Arc::new(Mutex::new(ProtectedKnobs::default()));
        let (turned, shared) = (Arc::clone(&knobs), Arc::clone(&authority.shared));
        let issuer = authority.issuer();
        let server = RemoteServer::start(move |seen, out| {
            let knobs = turned.lock().unwrap().clone();
            let refused = refuse(&knobs, &shared, &issuer, seen, out);
            Some(refused.unwrap_or_else(|| handler(seen, out).unwrap_or_else(|| usual(seen, out))))
        });
        Self { server, knobs }
    }

    /// Turns knobs, from now on.
    pub(crate) fn set(&self, turn: impl FnOnce(&mut ProtectedKnobs)) {
        turn(&mut self.knobs.lock().unwrap());
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// The server under it, with all that it has seen.
    pub(crate) fn server(&self) -> &RemoteServer {
        &self.server
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }

    /// A setup with a toolbox `dev` whose server `fs` this is, with more keys in its entry.
    pub(crate) fn setup(&self, keys: &Value) -> Setup {
        self.server.setup(keys)
    }
}

/// Everything but the answer to a request with a good token.
fn refuse(
    knobs: &ProtectedKnobs,
    shared: &Shared,
    issuer: &str,
    seen: &Seen,
    out: &mut Out,
) -> Option<Then> {
    let path = seen.route();
    let origin = format!("http://{}", seen.header("host").unwrap_or_default());
    if let Some((_, to)) = knobs.redirects.iter().find(|(from, _)| *from == path) {
        return Some(out.reply(&format!("307 Temporary Redirect\nLocation: {to}"), ""));
    }
    if knobs.is_own_authority && matches!(path, "/register" | "/authorize" | "/token" | "/revoke") {
        return Some(answers::answer(shared, seen, out));
    }
    let has_metadata = !knobs.no_metadata && !knobs.is_own_authority;
    if path == RESOURCE_METADATA && has_metadata {
        let right = json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
        });
        return Some(out.json(&patched(right, &knobs.metadata)));
    }
    if path != "/mcp" {
        return Some(out.reply("404 Not Found", NOISE));
    }
    if knobs.is_open {
        return None;
    }
    let grants = shared.grants();
    let grant = seen.bearer().and_then(|token| grants.access.get(token));
    // A token that was made for another server is none.
    let grant = grant.filter(|grant| grant.resource == format!("{origin}/mcp"));
    let Some(grant) = grant else {
        return Some(unauthorized(knobs, &origin, seen, out));
    };
    let needed = knobs.call_scope.as_deref();
    let needed = needed.filter(|_| seen.method() == "tools/call")?;
    if grant.scope.split(' ').any(|scope| scope == needed) {
        return None;
    }
    let metadata = format!("{origin}{RESOURCE_METADATA}");
    Some(out.reply(
        &format!(
            "403 Forbidden\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{needed}\", \
             resource_metadata=\"{metadata}\", error_description=\"{NOISE}\""
        ),
        NOISE,
    ))
}

fn unauthorized(knobs: &ProtectedKnobs, origin: &str, seen: &Seen, out: &mut Out) -> Then {
    let challenge = knobs.challenge.clone().unwrap_or_else(|| {
        let mut challenge = format!("Bearer error_description=\"{NOISE}\"");
        if seen.bearer().is_some() {
            challenge.push_str(", error=\"invalid_token\"");
        }
        if !knobs.no_metadata && !knobs.is_own_authority {
            challenge.push_str(&format!(
                ", resource_metadata=\"{origin}{RESOURCE_METADATA}\""
            ));
        }
        if let Some(scope) = &knobs.challenge_scope {
            challenge.push_str(&format!(", scope=\"{scope}\""));
        }
        challenge
    });
    let header = match challenge.as_str() {
        "" => String::new(),
        challenge => format!("\nWWW-Authenticate: {challenge}"),
    };
    out.reply(&format!("401 Unauthorized{header}"), NOISE)
}
