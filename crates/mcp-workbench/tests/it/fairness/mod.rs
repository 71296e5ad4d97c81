//! Several principals at one address: the limits of each, and turns at a server.

mod limits;
mod turns;

use std::cell::Cell;

use serde_json::{Value, json};

use crate::harness::{
    HttpConnection, HttpRequest, HttpResponse, ModernRequest, Served, Setup, call_params,
    initialize_params, request_text, use_arguments,
};

const ALICE: &str = "the-token-of-alice";
const BOB: &str = "the-token-of-bob";
const CAROL: &str = "the-token-of-carol";
/// The token of the client `guest`.
const GUEST: &str = "the-token-of-a-guest";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Serves with all tokens. The client `guest` has these keys.
fn serve(setup: Setup, guest: &Value) -> Served {
    let tokens = format!("{ALICE}\n{BOB}\n{CAROL}\n{GUEST} guest\n");
    let file = setup.write("tokens", &tokens);
    setup
        .top("autoOpen", json!(true))
        .top("clients", json!({ "guest": guest }))
        .serve_with(&["--token-file", file.to_str().unwrap()])
}

/// A client of a principal: a session, or none.
struct Caller<'a> {
    served: &'a Served,
    token: &'a str,
    session: Option<String>,
    /// The number of its calls, which are their ids.
    calls: Cell<u64>,
}

impl<'a> Caller<'a> {
    fn new(served: &'a Served, token: &'a str, era: Era) -> Self {
        let mut caller = Self {
            served,
            token,
            session: None,
            calls: Cell::new(0),
        };
        if era == Era::Legacy {
            let body = request_text("0", "initialize", &initialize_params("2025-11-25"));
            let response = served.connection().ask(&caller.own(served.post(&body)));
            let session = response.head.header("mcp-session-id");
            caller.session = Some(session.expect("a session").to_owned());
        }
        caller
    }

    fn own(&self, request: HttpRequest) -> HttpRequest {
        let request = request.with("authorization", &format!("Bearer {}", self.token));
        match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    /// Returns the request that uses a tool of the server `fs`.
    fn using(&self, tool: &str, arguments: &str) -> HttpRequest {
        self.calls.set(self.calls.get() + 1);
        let id = self.calls.get().to_string();
        if self.session.is_some() {
            let arguments = use_arguments(["dev", "fs", tool], Some(arguments));
            let params = call_params("use_tool", &arguments);
            let body = request_text(&id, "tools/call", &params);
            return self.own(self.served.post(&body));
        }
        let request = ModernRequest::use_tool(tool, arguments);
        self.own(self.served.modern_post(&id, &request))
    }

    /// Sends a call on a connection of its own.
    fn begin(&self, tool: &str, arguments: &str) -> HttpConnection {
        let mut connection = self.served.connection();
        connection.send(&self.using(tool, arguments));
        connection
    }

    fn call(&self, tool: &str, arguments: &str) -> HttpResponse {
        self.begin(tool, arguments).response()
    }
}
