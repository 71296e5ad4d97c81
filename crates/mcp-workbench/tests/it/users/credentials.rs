//! Credentials of users: every user signs in to a server for themselves, and no call carries the token of somebody else or
//! the one that the client sent to the workbench.

use std::{fs, path::Path};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    ask,
    browser::{Browser, PUBLIC},
    issuer::{AUDIENCE, ECHO, EXCHANGED, Issuer},
    with_token,
};
use crate::{
    harness::{
        InputRequired, Message, ModernRequest, Served, Setup, TOKEN, ToolResult, asks,
        authority::{Authority, Protected, User},
        call_params,
        remote_server::{RemoteServer, usual},
        request_text, use_arguments,
    },
    oauth::served::{ACCEPT, ADDRESSES, keeping_in, protected},
};

const KEY: &str = "the key of the tests, which is long enough";
const OTHER_KEY: &str = "another key of the tests, which is long enough";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

pub(super) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Serves a setup for the users of an issuer.
pub(super) fn serve(setup: Setup, issuer: &Issuer, state: &Path) -> Served {
    let setup = setup
        .top(
            "auth",
            json!({
                "issuer": issuer.url, "audience": AUDIENCE, "resource": PUBLIC,
                "clientId": "workbench", "clientSecret": "${SECRET}",
            }),
        )
        .top("seal", json!({"key": "${SEAL_KEY}"}))
        .env("SEAL_KEY", KEY)
        .env("SECRET", "the secret of the workbench");
    keeping_in(state, setup).serve_with(&[])
}

pub(super) fn per_user(server: &Protected) -> Setup {
    server.setup(&json!({"oauth": {"per": "user"}}))
}

/// A client of a user.
pub(super) struct Client<'a> {
    served: &'a Served,
    token: String,
    capabilities: &'static str,
    /// The session of a legacy client.
    session: Option<String>,
}

impl<'a> Client<'a> {
    pub(super) fn new(served: &'a Served, issuer: &Issuer, user: &str, era: Era) -> Self {
        let token = issuer.token(&json!({"sub": user, "scope": "tools"}));
        Self::with(served, token, era, ADDRESSES)
    }

    pub(super) fn with(
        served: &'a Served,
        token: String,
        era: Era,
        capabilities: &'static str,
    ) -> Self {
        let session = (era == Era::Legacy).then(|| {
            let params = format!(
                r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"it","version":"1"}}}}"#
            );
            let initialize = served.post(&request_text("0", "initialize", &params));
            let response = ask(served, initialize, Some(&token));
            let session = response.head.header("mcp-session-id").unwrap();
            session.to_owned()
        });
        Self {
            served,
            token,
            capabilities,
            session,
        }
    }

    /// Opens the toolbox. `user` opens an address that is offered.
    pub(super) fn open(&self, user: impl FnOnce(&str)) -> ToolResult {
        self.call("open_toolbox", r#"{"toolbox":"dev"}"#, user)
    }

    /// Uses the tool. The user opens no address.
    pub(super) fn use_tool(&self) -> ToolResult {
        let arguments = use_arguments(["dev", "fs", "t"], Some("{}"));
        self.call("use_tool", &arguments, |address| {
            panic!("offered {address}")
        })
    }

    pub(super) fn call(&self, tool: &str, arguments: &str, user: impl FnOnce(&str)) -> ToolResult {
        match &self.session {
            Some(session) => self.call_legacy(session, &call_params(tool, arguments), user),
            None => self.call_modern(tool, arguments, user),
        }
    }

    fn call_modern(&self, tool: &str, arguments: &str, user: impl FnOnce(&str)) -> ToolResult {
        let request = ModernRequest::new("tools/call")
            .param("name", &json!(tool).to_string())
            .param("arguments", arguments)
            .capabilities(self.capabilities);
        let answer = self.ask_modern(&request);
        if !asks(&answer) {
            return ToolResult::of(&answer);
        }
        let asked = InputRequired::of(&answer);
        let (_, question) = asked.only();
        assert_eq!(question["params"]["mode"], "url");
        user(question["params"]["url"].as_str().unwrap());
        let responses = asked.responses(|_, _| ACCEPT.to_owned());
        ToolResult::of(&self.ask_modern(&request.retry(&asked, &responses)))
    }

    fn ask_modern(&self, request: &ModernRequest) -> Message {
        let response = ask(
            self.served,
            self.served.modern_post("1", request),
            Some(&self.token),
        );
        if response.head.is_stream() {
            response.events().last().unwrap().message()
        } else {
            response.message()
        }
    }

    fn call_legacy(&self, session: &str, params: &str, user: impl FnOnce(&str)) -> ToolResult {
        let post = |body: &str| {
            let post = self.served.post(body).header("mcp-session-id", session);
            with_token(post, Some(&self.token))
        };
        let mut connection = self.served.connection();
        connection.send(&post(&request_text("1", "tools/call", params)));
        let head = connection.head();
        if !head.is_stream() {
            let length = head.header("content-length").unwrap().parse().unwrap();
            return ToolResult::of(&Message::parse(connection.text(length)));
        }
        let mut user = Some(user);
        loop {
            let event = connection.event().expect("an answer");
            // The first event only has an id, from which a stream can be resumed.
            if event.data.is_empty() {
                continue;
            }
            let message = event.message();
            if message.answers("1") {
                return ToolResult::of(&message);
            }
            if message.line.contains("elicitation/create") {
                let id = message.id().unwrap();
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ACCEPT}}}"#);
                let accepted = self.served.connection().ask(&post(&answer));
                assert_eq!(accepted.head.status, 202);
                let user = user.take().expect("one offer");
                user(message.params()["url"].as_str().unwrap());
            }
        }
    }
}

/// Opens an address as a user, to the end of the sign-in.
pub(super) fn sign_in(served: &Served, user: &str) -> impl FnOnce(&str) {
    move |address| {
        assert_eq!(address, format!("{PUBLIC}/oauth/sign-in/dev/fs"));
        let (_, page) = Browser::new(served, user).visit(address);
        assert!(page.body.contains("You are signed in"), "{}", page.body);
        assert!(
            page.body.contains("go back to your client"),
            "{}",
            page.body
        );
    }
}

/// The tokens of the calls that a server has got so far.
pub(super) fn tokens_of_calls(server: &Protected) -> Vec<String> {
    let calls = server.server().received("tools/call");
    let tokens = calls.iter().map(|it| it.bearer().unwrap().to_owned());
    tokens.collect()
}

pub(super) fn last_access(authority: &Authority) -> String {
    let secrets = authority.secrets();
    let access = secrets.iter().rfind(|it| it.contains("access"));
    access.unwrap().clone()
}

#[test]
fn every_user_calls_with_their_own_credentials() {
    for era in ERAS {
        let (authority, server) = protected();
        let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
        let served = serve(per_user(&server), &issuer, state.path());
        let (mut clients, mut tokens) = (Vec::new(), Vec::new());
        for user in ["ada", "bob"] {
            let client = Client::new(&served, &issuer, user, era);
            let opened = client.open(sign_in(&served, user));
            assert_eq!(opened.tool_names(), ["t", "u"], "{era:?} {user}");
            tokens.push(last_access(&authority));
            clients.push(client);
        }
        for client in [0, 1, 0] {
            assert!(!clients[client].use_tool().failed(), "{era:?}");
        }
        let expected = [&tokens[0], &tokens[1], &tokens[0]].map(Clone::clone);
        assert_eq!(tokens_of_calls(&server), expected, "{era:?}");
        // Another client of the same user needs no sign-in, in the other era too.
        for other in ERAS {
            let client = Client::new(&served, &issuer, "ada", other);
            client.open(|address| panic!("offered {address}"));
            assert!(!client.use_tool().failed());
            assert_eq!(tokens_of_calls(&server).pop().as_ref(), Some(&tokens[0]));
        }
        // A client that shows no addresses gets the one at which its user signs in.
        let token = issuer.token(&json!({"sub": "eve", "scope": "tools"}));
        let eve = Client::with(&served, token, era, "{}");
        let opened = eve.open(|address| panic!("offered {address}"));
        let page = format!("the user must sign in at {PUBLIC}/oauth/sign-in/dev/fs");
        assert!(opened.error().contains(&page), "{}", opened.error());
        // What a client sends to the workbench arrives nowhere else.
        let is_of_client = |bearer: &str| !bearer.starts_with("secret-access-");
        for seen in server.seen().iter().chain(&authority.seen()) {
            assert!(!seen.bearer().is_some_and(is_of_client), "{seen:?}");
        }
        assert_eq!(authority.asked("/register").len(), 1, "one client for all");
    }
}

#[test]
fn sign_ins_of_users_are_stored_encrypted_and_survive_a_restart() {
    let (authority, server) = protected();
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let served = serve(per_user(&server), &issuer, state.path());
    let client = Client::new(&served, &issuer, "ada", Era::Modern);
    client.open(sign_in(&served, "ada"));
    let token = last_access(&authority);
    drop(served);
    let folder = state.path().join("mcp-workbench/signin/users");
    let mut records = 0;
    for server in fs::read_dir(&folder).unwrap() {
        for file in fs::read_dir(server.unwrap().path()).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            records += usize::from(bytes.len() > 100);
            for secret in ["secret-", "ada", "access"] {
                let found = bytes
                    .windows(secret.len())
                    .any(|it| it == secret.as_bytes());
                assert!(!found, "{secret}");
            }
        }
    }
    assert!(records > 0);
    // (the keys of the next process, whether ada is signed in there)
    for (key, previous, is_signed_in) in [
        (KEY, None, true),
        (OTHER_KEY, None, false),
        (OTHER_KEY, Some(KEY), true),
        (OTHER_KEY, Some(KEY), true),
    ] {
        let mut seal = json!({"key": "${SEAL_KEY}"});
        if let Some(previous) = previous {
            seal["previousKey"] = "${PREVIOUS_KEY}".into();
            assert_ne!(previous, key);
        }
        let setup = per_user(&server)
            .top(
                "auth",
                json!({"issuer": issuer.url, "audience": AUDIENCE, "resource": PUBLIC}),
            )
            .top("seal", seal)
            .env("SEAL_KEY", key)
            .env("PREVIOUS_KEY", previous.unwrap_or_default());
        let served = keeping_in(state.path(), setup).serve_with(&[]);
        let ada = issuer.token(&json!({"sub": "ada", "scope": "tools"}));
        let client = Client::with(&served, ada, Era::Modern, "{}");
        let opened = client.open(|address| panic!("offered {address}"));
        assert_eq!(!opened.failed(), is_signed_in, "{key} {previous:?}");
        if is_signed_in {
            assert!(!client.use_tool().failed());
            assert_eq!(tokens_of_calls(&server).pop().as_ref(), Some(&token));
        }
    }
}

#[test]
fn a_token_is_renewed_for_its_user_alone_and_a_revoked_one_needs_a_sign_in() {
    for era in ERAS {
        let (authority, server) = protected();
        let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
        let served = serve(per_user(&server), &issuer, state.path());
        let clients = ["ada", "bob"].map(|user| {
            let client = Client::new(&served, &issuer, user, era);
            client.open(sign_in(&served, user));
            client
        });
        let before = authority.secrets();
        authority.end_access();
        for client in &clients {
            assert!(!client.use_tool().failed());
            assert!(!client.use_tool().failed());
        }
        assert_eq!(
            authority.token_requests("refresh_token").len(),
            2,
            "{era:?}"
        );
        let mut accepted = tokens_of_calls(&server);
        accepted.retain(|it| !before.contains(it));
        let [ada, bob] = [0, 2].map(|call| accepted[call].clone());
        assert_ne!(ada, bob, "{era:?}");
        assert_eq!(accepted, [&*ada, &*ada, &*bob, &*bob], "{era:?}");
        authority.revoke_all();
        authority.set(|knobs| knobs.user = User::Denies);
        let arguments = use_arguments(["dev", "fs", "t"], Some("{}"));
        let result = clients[0].call("use_tool", &arguments, |address| {
            let (_, page) = Browser::new(&served, "ada").visit(address);
            assert!(
                page.body.contains("The sign-in was declined"),
                "{}",
                page.body
            );
        });
        assert_eq!(result.failure()["code"], "auth_required", "{era:?}");
    }
}

#[test]
fn whoever_opens_the_address_of_an_offer_signs_in_for_themselves() {
    let (authority, server) = protected();
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let served = serve(per_user(&server), &issuer, state.path());
    let ada = Client::new(&served, &issuer, "ada", Era::Modern);
    let mut of_bob = None;
    ada.open(|address| {
        // Ada sends the address to Bob, who opens it.
        sign_in(&served, "bob")(address);
        of_bob = Some(last_access(&authority));
        sign_in(&served, "ada")(address);
    });
    let of_ada = last_access(&authority);
    assert!(!ada.use_tool().failed());
    assert_eq!(tokens_of_calls(&server), [of_ada]);
    let bob = Client::new(&served, &issuer, "bob", Era::Legacy);
    bob.open(|address| panic!("offered {address}"));
    assert!(!bob.use_tool().failed());
    assert_eq!(tokens_of_calls(&server).pop(), of_bob);
}

#[test]
fn a_redirect_counts_once_and_only_in_the_browser_that_began() {
    let (_authority, server) = protected();
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let served = serve(per_user(&server), &issuer, state.path());
    let page = format!("{PUBLIC}/oauth/sign-in/dev/fs");
    let mut ada = Browser::new(&served, "ada");
    let redirect = ada.come_back(&page);
    // The browser of somebody else, and one without cookies.
    let mut bob = Browser::new(&served, "bob");
    bob.come_back(&page);
    assert_eq!(bob.get(&redirect).head.status, 400);
    bob.forget();
    assert_eq!(bob.get(&redirect).head.status, 400);
    let other_state = redirect.replace("state=", "state=x");
    let other_issuer = redirect.replace("iss=http", "iss=https");
    assert_eq!(ada.get(&other_state).head.status, 400);
    assert!(ada.get(&redirect).body.contains("You are signed in"));
    assert_eq!(ada.get(&redirect).head.status, 400, "used before");
    let again = ada.come_back(&page);
    let other_issuer = again.replace(
        "iss=http",
        &other_issuer[other_issuer.find("iss=").unwrap()..][..9],
    );
    let refused = ada.get(&other_issuer);
    assert!(
        refused.body.contains("The sign-in failed"),
        "{}",
        refused.body
    );
    // A page is not for everything.
    for (path, status) in [
        ("/oauth/sign-in/dev/unknown", 403),
        ("/oauth/callback", 400),
        ("/oauth/other", 401),
    ] {
        let (_, found) = Browser::new(&served, "ada").visit(&format!("{PUBLIC}{path}"));
        assert_eq!(found.head.status, status, "{path}");
    }
}

#[test]
fn a_client_without_a_user_has_no_credentials() {
    let (_authority, server) = protected();
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let setup = per_user(&server).env("WORKBENCH_TOKEN", TOKEN);
    let served = serve(setup, &issuer, state.path());
    for era in ERAS {
        let client = Client::with(&served, TOKEN.to_owned(), era, ADDRESSES);
        let opened = client.open(|address| panic!("offered {address}"));
        let words = "every user has credentials of their own there, and this client has no user";
        assert!(opened.error().contains(words), "{}", opened.error());
    }
    assert!(server.seen().iter().all(|seen| seen.bearer().is_none()));
}

/// A server that takes the tokens that the issuer has exchanged.
fn exchanging() -> RemoteServer {
    RemoteServer::start(|seen, out| {
        let is_good = seen.bearer().is_some_and(|it| it.starts_with(EXCHANGED));
        Some(if is_good {
            usual(seen, out)
        } else {
            out.reply("401 Unauthorized\nWWW-Authenticate: Bearer", "")
        })
    })
}

#[test]
fn the_token_of_a_user_is_exchanged_and_never_passed_on() {
    let modes: [(Value, Option<&str>); 2] = [
        (json!(true), None),
        (json!({"audience": "the files"}), Some("the files")),
    ];
    for (exchange, audience) in modes {
        for era in ERAS {
            let server = exchanging();
            let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
            let oauth =
                json!({"oauth": {"per": "user", "exchange": exchange, "scopes": ["files"]}});
            let served = serve(server.setup(&oauth), &issuer, state.path());
            for user in ["ada", "bob"] {
                let client = Client::new(&served, &issuer, user, era);
                let opened = client.open(|address| panic!("offered {address}"));
                assert_eq!(opened.tool_names(), ["t", "u"], "{era:?}");
                assert!(!client.use_tool().failed());
                assert!(!client.use_tool().failed());
                let calls = server.received("tools/call");
                let bearer = calls.last().unwrap().bearer().unwrap();
                assert_eq!(bearer, format!("{EXCHANGED}{user}"));
            }
            let exchanges = issuer.asked("/token");
            assert_eq!(exchanges.len(), 2, "one for each user");
            for exchange in &exchanges {
                let parameter = |name: &str| exchange.parameter(name);
                assert_eq!(parameter("resource"), Some(server.url()));
                assert_eq!(parameter("audience").as_deref(), audience);
                assert_eq!(parameter("scope").as_deref(), Some("files"));
            }
            for seen in server.seen() {
                let is_other = |it: &str| !it.starts_with(EXCHANGED);
                assert!(!seen.bearer().is_some_and(is_other), "{seen:?}");
                assert!(!seen.body.contains("eyJ"), "{seen:?}");
            }
        }
    }
}

#[test]
fn a_token_that_is_exchanged_for_itself_is_not_used() {
    let server = exchanging();
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let oauth = json!({"oauth": {"per": "user", "exchange": true, "scopes": [ECHO]}});
    let served = serve(server.setup(&oauth), &issuer, state.path());
    for era in ERAS {
        let client = Client::new(&served, &issuer, "ada", era);
        let opened = client.open(|address| panic!("offered {address}"));
        let words = "the authorization server issued no token: invalid_target";
        assert!(opened.error().contains(words), "{}", opened.error());
    }
    assert!(server.seen().iter().all(|seen| seen.bearer().is_none()));
}

#[test]
fn status_counts_the_users_and_logout_removes_them() {
    let (authority, server) = protected();
    let (issuer, state) = (Issuer::start(), TempDir::new().unwrap());
    let served = serve(per_user(&server), &issuer, state.path());
    for user in ["ada", "bob"] {
        let client = Client::new(&served, &issuer, user, Era::Modern);
        client.open(sign_in(&served, user));
    }
    drop(served);
    let setup = per_user(&server)
        .top(
            "auth",
            json!({"issuer": issuer.url, "audience": AUDIENCE, "resource": PUBLIC}),
        )
        .top("seal", json!({"key": "${SEAL_KEY}"}))
        .env("SEAL_KEY", KEY);
    let setup = keeping_in(state.path(), setup);
    setup.write_config();
    let run = |arguments: &[&str]| -> Value {
        let mut command = setup.command();
        command.arg("--config").arg(setup.config()).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let status = |expected: u64| {
        let status = run(&["auth", "status", "--json"]);
        assert_eq!(status["servers"][0]["users"], expected);
        assert_eq!(status["servers"][0]["state"], "not_signed_in");
        assert!(!status.to_string().contains("ada"));
    };
    status(2);
    assert_eq!(authority.refresh_tokens(), 2);
    let ended = run(&["logout", "dev", "fs", "--json"]);
    assert_eq!(ended["servers"][0]["users"], 2);
    assert_eq!(authority.refresh_tokens(), 0, "revoked");
    status(0);
}
