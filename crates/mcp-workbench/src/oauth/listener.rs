//! The redirect of the browser: a port of this machine that answers one page. Nothing that it receives is shown again, and
//! only a request with the right path counts.

use std::{convert::Infallible, io, net::Ipv4Addr, time::Duration};

use hyper::{
    Method, Request, Response,
    body::Incoming,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
        REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    },
    http::StatusCode,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::SignInError;
use crate::alarm::timeout;

const PATH: &str = "/callback";
/// The longest head of a request.
const MOST_BYTES: usize = 16 * 1024;
/// How long a browser may take to send the head, and to read the page.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(10);
/// Upper bound for a connection, with the exchange of the code.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(2);
/// How many connections are open at once: browsers open some that they never use.
const MOST_CONNECTIONS: usize = 32;
/// The page is constant text. These headers keep a browser from running, storing or passing on anything.
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "no-store"),
];

/// Waits for the browser, on this machine only.
pub(crate) struct Listener {
    socket: TcpListener,
    redirect_uri: String,
    connections: JoinSet<()>,
    sender: mpsc::Sender<Redirected>,
    redirects: mpsc::Receiver<Redirected>,
}

/// A browser that was redirected to us and waits for a page.
pub(crate) struct Redirected {
    /// The whole address that it was redirected to.
    pub(crate) address: String,
    reply: oneshot::Sender<RedirectOutcome>,
    /// Cancelled when the connection is over.
    closed: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOutcome {
    SignedIn,
    /// The user or the authorization server refused.
    Refused,
    /// The attempt failed; the terminal says why.
    Failed,
    /// The redirect does not belong to the attempt.
    Stray,
    /// A user of the authorization server has signed in.
    GoBack,
    /// A user of the authorization server does not have the server.
    NoAccess,
    /// The attempt of a user failed; the log of the workbench says why.
    Logged,
}

impl RedirectOutcome {
    pub(crate) fn of<T>(result: &Result<T, SignInError>) -> Self {
        match result {
            Ok(_) => Self::SignedIn,
            Err(SignInError::Denied { .. }) => Self::Refused,
            Err(SignInError::WrongState | SignInError::NotARedirect) => Self::Stray,
            Err(_) => Self::Failed,
        }
    }

    /// Returns the outcome of a failed attempt of a user.
    pub(crate) fn of_user(error: &SignInError) -> Self {
        match error {
            SignInError::Denied { .. } => Self::Refused,
            _ => Self::Logged,
        }
    }

    pub(crate) fn response(self) -> Response<String> {
        let (status, title, text) = match self {
            Self::SignedIn => (
                StatusCode::OK,
                "You are signed in",
                "MCP Workbench is signed in. You can close this page.",
            ),
            Self::Refused => (
                StatusCode::OK,
                "You are not signed in",
                "The sign-in was declined. You can close this page.",
            ),
            Self::Failed => (
                StatusCode::OK,
                "You are not signed in",
                "The sign-in failed. The terminal or client where you started it shows the reason. You can close this page.",
            ),
            Self::Stray => (
                StatusCode::BAD_REQUEST,
                "No sign-in in progress",
                "This address does not belong to a sign-in in progress. You can close this page.",
            ),
            Self::GoBack => (
                StatusCode::OK,
                "You are signed in",
                "You can close this page and go back to your client.",
            ),
            Self::NoAccess => (
                StatusCode::FORBIDDEN,
                "You are not signed in",
                "You do not have access to this server, or nobody signs in to it here. You can close this page.",
            ),
            Self::Logged => (
                StatusCode::BAD_GATEWAY,
                "You are not signed in",
                "The sign-in failed. Whoever runs MCP Workbench finds the reason in its log. You can close this page and try again.",
            ),
        };
        respond(status, &page(title, text))
    }
}

impl Listener {
    /// Listens on a port, or on any that is free.
    pub(crate) async fn bind(port: Option<u16>) -> io::Result<Self> {
        // The literal address and not `localhost`, which a resolver may send elsewhere (RFC 8252, 8.3).
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or(0));
        let socket = TcpListener::bind(address).await?;
        let port = socket.local_addr()?.port();
        let (sender, redirects) = mpsc::channel(MOST_CONNECTIONS);
        Ok(Self {
            socket,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
            connections: JoinSet::new(),
            sender,
            redirects,
        })
    }

    /// Returns the address that the browser is to be redirected to.
    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the next browser that requests the right path. Other requests are answered here. Cancel-safe: open
    /// connections continue at the next call.
    pub(crate) async fn next(&mut self) -> Redirected {
        loop {
            tokio::select! {
                Some(redirected) = self.redirects.recv() => return redirected,
                accepted = self.socket.accept(), if self.connections.len() < MOST_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => {
                            let (sender, uri) = (self.sender.clone(), self.redirect_uri.clone());
                            self.connections.spawn(serve(stream, sender, uri));
                        }
                        // For example, too many files are open. That passes.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
                Some(_) = self.connections.join_next() => {}
            }
        }
    }
}

impl Redirected {
    /// Shows the outcome in the browser. Waits until the page is sent, since the process may end after that.
    pub(crate) async fn say(self, outcome: RedirectOutcome) {
        // A browser that is gone needs no page.
        if self.reply.send(outcome).is_ok() {
            let _ = timeout(BROWSER_TIMEOUT, self.closed.cancelled()).await;
        }
    }
}

/// Answers the one request of a connection.
async fn serve(stream: TcpStream, redirects: mpsc::Sender<Redirected>, redirect_uri: String) {
    let closed = CancellationToken::new();
    // Dropped with the connection, also after a timeout, so that `Redirected::say` always ends.
    let _close = closed.clone().drop_guard();
    let service = service_fn(|request: Request<Incoming>| {
        let response = answer(request, &redirects, &redirect_uri, &closed);
        async { Ok::<_, Infallible>(response.await) }
    });
    // With one request for each connection, the end of the connection means that the browser has the page.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(BROWSER_TIMEOUT)
        .max_buf_size(MOST_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever fails is between the browser and this page.
    let _ = timeout(CONNECTION_TIMEOUT, connection).await;
}

async fn answer(
    request: Request<Incoming>,
    redirects: &mpsc::Sender<Redirected>,
    redirect_uri: &str,
    closed: &CancellationToken,
) -> Response<String> {
    let uri = request.uri();
    let refusal = match (request.method(), uri.path(), uri.query()) {
        (&Method::GET, PATH, Some(query)) => {
            let (reply, outcome) = oneshot::channel();
            let redirected = Redirected {
                address: format!("{redirect_uri}?{query}"),
                reply,
                closed: closed.clone(),
            };
            // An attempt that ended in the meantime gives no answer.
            let _ = redirects.send(redirected).await;
            return outcome.await.unwrap_or(RedirectOutcome::Failed).response();
        }
        (&Method::GET, PATH, None) => StatusCode::BAD_REQUEST,
        (&Method::GET, ..) => StatusCode::NOT_FOUND,
        _ => StatusCode::METHOD_NOT_ALLOWED,
    };
    respond(refusal, &page("Not found", ""))
}

fn respond(status: StatusCode, page: &str) -> Response<String> {
    let mut response = Response::new(page.to_owned());
    *response.status_mut() = status;
    let headers = HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(headers);
    response
}

/// Returns a page of constant texts.
fn page(title: &str, text: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body{{font:18px/1.5 system-ui,sans-serif;max-width:36em;margin:20vh auto;padding:0 1em;\
         color-scheme:light dark}}</style>\n\
         <h1>{title}</h1>\n<p>{text}</p>\n</html>\n"
    )
}
