//! The modern clients of the tests: over the workbench's stdin and stdout, over HTTP, and of a fixture server
//! without a workbench between.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    HttpConnection, HttpRequest, HttpResponse, Message, ModernClient, ModernRequest, RemoteFixture,
    Served, Workbench,
};

/// The ids of requests over HTTP, which are all of different connections.
static IDS: AtomicU64 = AtomicU64::new(1000);

impl Workbench {
    /// Sends a modern request and gives its raw id.
    pub(crate) fn send_modern(&mut self, request: &ModernRequest) -> String {
        self.request(&request.method, &request.params())
    }
}

impl ModernClient for Workbench {
    fn ask_modern(&mut self, request: &ModernRequest) -> Message {
        let id = self.send_modern(request);
        self.response(&id)
    }
}

impl Served {
    /// The POST of a modern request with a raw id, with all its headers.
    pub(crate) fn modern_post(&self, id: &str, request: &ModernRequest) -> HttpRequest {
        with_headers(self.post(&request.text(id)), request)
    }

    /// Sends a modern request with a raw id on a connection of its own.
    pub(crate) fn begin_modern(&self, id: &str, request: &ModernRequest) -> HttpConnection {
        let mut connection = self.connection();
        connection.send(&self.modern_post(id, request));
        connection
    }

    /// Sends a modern request and gives the whole response, with its status.
    pub(crate) fn modern_response(&self, id: &str, request: &ModernRequest) -> HttpResponse {
        self.begin_modern(id, request).response()
    }
}

impl ModernClient for Served {
    fn ask_modern(&mut self, request: &ModernRequest) -> Message {
        let id = fresh_id();
        answer(&id, &self.modern_response(&id, request))
    }
}

impl RemoteFixture {
    /// The POST of a modern request with a raw id, with all its headers.
    pub(crate) fn modern_post(&self, id: &str, request: &ModernRequest) -> HttpRequest {
        let post = HttpRequest::new("POST", "/mcp")
            .header("host", &self.address.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(&request.text(id));
        with_headers(post, request)
    }
}

impl ModernClient for RemoteFixture {
    fn ask_modern(&mut self, request: &ModernRequest) -> Message {
        let id = fresh_id();
        let post = self.modern_post(&id, request);
        answer(&id, &HttpConnection::open(self.address).ask(&post))
    }
}

fn fresh_id() -> String {
    IDS.fetch_add(1, Ordering::Relaxed).to_string()
}

/// A request with the headers that repeat its body.
fn with_headers(post: HttpRequest, request: &ModernRequest) -> HttpRequest {
    let headers = request.headers();
    let headers = headers.iter();
    headers.fold(post, |post, (name, value)| post.header(name, value))
}

/// The answer in a response, however it came.
fn answer(id: &str, response: &HttpResponse) -> Message {
    let message = if response.head.is_stream() {
        response.events().last().expect("an answer").message()
    } else {
        response.message()
    };
    assert!(message.answers(id), "{}", message.line);
    message
}
