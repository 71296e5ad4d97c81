//! A workbench that serves over HTTP, and clients of it.

use std::net::SocketAddr;

use super::{
    HttpConnection, HttpRequest, HttpResponse, Message, Setup, TIMEOUT, ToolResult, Workbench,
    call_params, initialize_params, poll, use_arguments,
};

/// The token of all tests that do not say otherwise.
pub(crate) const TOKEN: &str = "the-token-of-the-tests";

/// A workbench that serves over HTTP.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) workbench: Workbench,
    pub(crate) address: SocketAddr,
}

impl Setup {
    /// Serves over HTTP at a free port, with the token of the tests.
    pub(crate) fn serve(self) -> Served {
        self.env("WORKBENCH_TOKEN", TOKEN).serve_with(&[])
    }

    /// Serves over HTTP at a free port, with more arguments.
    pub(crate) fn serve_with(self, arguments: &[&str]) -> Served {
        self.write_config();
        let config = self.config();
        let config = config.to_str().expect("a readable path");
        let begin = ["--config", config, "serve", "--http", "127.0.0.1:0"];
        let workbench = self.start_with(&[&begin, arguments].concat());
        let address = poll(TIMEOUT, || {
            let stderr = workbench.stderr();
            let (_, rest) = stderr.split_once("listening on http://")?;
            rest.split_once("/mcp\n")?.0.parse().ok()
        });
        Served {
            address: address.unwrap_or_else(|| panic!("not listening: {}", workbench.stderr())),
            workbench,
        }
    }
}

impl Served {
    pub(crate) fn connection(&self) -> HttpConnection {
        HttpConnection::open(self.address)
    }

    /// A request with what every request needs.
    pub(crate) fn request(&self, method: &str, path: &str) -> HttpRequest {
        HttpRequest::new(method, path)
            .header("host", &self.address.to_string())
            .header("authorization", &format!("Bearer {TOKEN}"))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
    }

    /// A POST of this text to the endpoint.
    pub(crate) fn post(&self, body: &str) -> HttpRequest {
        self.request("POST", "/mcp").body(body)
    }

    /// A client with a session.
    pub(crate) fn client(&self) -> HttpClient {
        self.client_with(&initialize_params("2025-11-25"))
    }

    /// A client whose `initialize` has these raw parameters.
    pub(crate) fn client_with(&self, params: &str) -> HttpClient {
        let mut connection = self.connection();
        let response = connection.ask(&self.post(&request_text("0", "initialize", params)));
        assert_eq!(response.head.status, 200, "{response:?}");
        let session = response.head.header("mcp-session-id").expect("a session");
        let mut client = HttpClient {
            base: self
                .request("POST", "/mcp")
                .header("mcp-session-id", session),
            address: self.address,
            session: session.to_owned(),
            connection,
            ids: 0,
        };
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(client.post(initialized).head.status, 202);
        client
    }
}

/// A client with a session, and a connection that it uses for one request after the other.
#[derive(Debug)]
pub(crate) struct HttpClient {
    base: HttpRequest,
    address: SocketAddr,
    /// The id of its session.
    pub(crate) session: String,
    connection: HttpConnection,
    ids: u64,
}

impl HttpClient {
    /// The same client, whose requests go to another replica or to a balancer.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            base: self.base.clone().with("host", &address.to_string()),
            address,
            session: self.session.clone(),
            connection: HttpConnection::open(address),
            ids: self.ids + 1000,
        }
    }

    /// The same session with another token.
    pub(crate) fn with_token(mut self, token: &str) -> Self {
        let token = format!("Bearer {token}");
        self.base = self.base.with("authorization", &token);
        self
    }

    pub(crate) fn use_session(&mut self, session: &str) {
        self.base = self.base.clone().with("mcp-session-id", session);
        session.clone_into(&mut self.session);
    }

    /// A request within the session that has no body.
    pub(crate) fn bare(&self, method: &str) -> HttpRequest {
        let mut request = HttpRequest::new(method, "/mcp");
        for name in ["host", "authorization", "accept", "mcp-session-id"] {
            let value = self.base.value(name).expect("a header of every request");
            request = request.header(name, value);
        }
        request
    }

    /// A POST within the session.
    pub(crate) fn posting(&self, body: &str) -> HttpRequest {
        self.base.clone().body(body)
    }

    /// Posts a text and reads the whole response.
    pub(crate) fn post(&mut self, body: &str) -> HttpResponse {
        let request = self.posting(body);
        self.connection.ask(&request)
    }

    /// Sends a request with a raw id on a connection of its own.
    pub(crate) fn begin(&self, id: &str, method: &str, params: &str) -> HttpConnection {
        let mut connection = HttpConnection::open(self.address);
        connection.send(&self.posting(&request_text(id, method, params)));
        connection
    }

    /// Listens on a connection of its own, after an event if one is given.
    pub(crate) fn listen(&self, last_event: Option<&str>) -> HttpConnection {
        let mut connection = HttpConnection::open(self.address);
        let request = self.bare("GET");
        connection.send(&match last_event {
            Some(id) => request.header("last-event-id", id),
            None => request,
        });
        connection
    }

    /// Sends a request and gives the answer, however it comes.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> Message {
        self.ids += 1;
        let id = self.ids.to_string();
        let response = self.post(&request_text(&id, method, params));
        let message = if response.head.is_stream() {
            response.events().last().expect("an answer").message()
        } else {
            response.message()
        };
        assert!(message.answers(&id), "{}", message.line);
        message
    }

    /// Calls a tool of the workbench.
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> ToolResult {
        ToolResult::of(&self.ask("tools/call", &call_params(tool, arguments)))
    }

    /// Opens the toolbox `dev`.
    pub(crate) fn open(&mut self) -> ToolResult {
        self.call("open_toolbox", r#"{"toolbox":"dev"}"#)
    }

    /// Uses a tool of the toolbox `dev` and its server `fs`.
    pub(crate) fn use_tool(&mut self, tool: &str, arguments: &str) -> ToolResult {
        let arguments = use_arguments(["dev", "fs", tool], Some(arguments));
        self.call("use_tool", &arguments)
    }
}

/// A request of MCP with a raw id and raw parameters.
pub(crate) fn request_text(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// The raw parameters of a `use_tool` of the toolbox `dev` and its server `fs`.
pub(crate) fn use_params(tool: &str, meta: &str) -> String {
    let arguments = use_arguments(["dev", "fs", tool], None);
    format!(r#"{{"name":"use_tool","arguments":{arguments},"_meta":{meta}}}"#)
}
