//! Where the browser comes back to: a port of this machine that answers one page, and nothing else. What it is sent is
//! never shown again, and only a request with the right path counts.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::SignInError;
use crate::alarm::timeout;

const PATH: &str = "/callback";
/// The longest head of a request.
const MOST_BYTES: usize = 16 * 1024;
/// How long a browser may take to send it, or to read the page.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many connections are read at once: browsers open some that they never use.
const MOST_AT_ONCE: usize = 32;

/// Waits for the browser, on this machine only.
pub(crate) struct Listener {
    socket: TcpListener,
    redirect_uri: String,
    /// Connections whose request has not come yet.
    readers: JoinSet<Option<Redirected>>,
}

/// A browser that was sent back to us, and waits for a page.
pub(crate) struct Redirected {
    /// The whole address that it was sent to.
    pub address: String,
    stream: TcpStream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    SignedIn,
    /// The person, or the server, said no.
    Refused,
    /// Something went wrong; the terminal says what.
    Failed,
    /// It is none of what is waited for.
    Stray,
}

impl Outcome {
    /// The outcome of an attempt.
    pub(crate) fn of<T>(result: &Result<T, SignInError>) -> Self {
        match result {
            Ok(_) => Self::SignedIn,
            Err(SignInError::Denied { .. }) => Self::Refused,
            Err(SignInError::WrongState | SignInError::NotARedirect) => Self::Stray,
            Err(_) => Self::Failed,
        }
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::SignedIn => (
                "200 OK",
                "You are signed in",
                "MCP Workbench has what it needs. You can close this page.",
            ),
            Self::Refused => (
                "200 OK",
                "You are not signed in",
                "The server was told no, or said no. You can close this page.",
            ),
            Self::Failed => (
                "200 OK",
                "You are not signed in",
                "Something went wrong. MCP Workbench says what, where you began. You can close this page.",
            ),
            Self::Stray => (
                "400 Bad Request",
                "Nothing waits for this",
                "This address does not belong to a sign-in that is under way. You can close this page.",
            ),
        }
    }
}

impl Listener {
    /// Listens on a port, or on any that is free.
    pub(crate) async fn bind(port: Option<u16>) -> io::Result<Self> {
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or(0));
        let socket = TcpListener::bind(address).await?;
        let port = socket.local_addr()?.port();
        Ok(Self {
            socket,
            redirect_uri: format!("http://127.0.0.1:{port}{PATH}"),
            readers: JoinSet::new(),
        })
    }

    /// The address that the browser is to be sent back to.
    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The next browser that comes with the right path. Requests for anything else are answered here. Cancel-safe: what has
    /// begun goes on at the next call.
    pub(crate) async fn next(&mut self) -> Redirected {
        loop {
            tokio::select! {
                accepted = self.socket.accept(), if self.readers.len() < MOST_AT_ONCE => {
                    match accepted {
                        Ok((stream, _)) => {
                            let origin = self.redirect_uri.trim_end_matches(PATH).to_owned();
                            self.readers.spawn(read(stream, origin));
                        }
                        // As when there are too many files open: it passes.
                        Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                    }
                }
                Some(read) = self.readers.join_next() => {
                    if let Ok(Some(redirected)) = read {
                        return redirected;
                    }
                }
            }
        }
    }
}

impl Redirected {
    /// Shows the browser the outcome.
    pub(crate) async fn say(mut self, outcome: Outcome) {
        let (status, title, text) = outcome.words();
        let page = page(title, text);
        answer(&mut self.stream, status, &page).await;
    }
}

/// Reads a request; none if it is not one that counts, which it is then told.
async fn read(mut stream: TcpStream, origin: String) -> Option<Redirected> {
    let head = timeout(PATIENCE, head(&mut stream)).await.ok()??;
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let path = target.split('?').next().unwrap_or_default();
    let refusal = match (method, path) {
        ("GET", PATH) if target.contains('?') => {
            let address = format!("{origin}{target}");
            return Some(Redirected { address, stream });
        }
        ("GET", PATH) => "400 Bad Request",
        ("GET", _) => "404 Not Found",
        _ => "405 Method Not Allowed",
    };
    answer(&mut stream, refusal, &page("Nothing is here", "")).await;
    None
}

/// The head of a request; none if there is no end to it.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while head.len() < MOST_BYTES {
        let read = stream.read(&mut chunk).await.ok()?;
        if read == 0 {
            return None;
        }
        head.extend_from_slice(&chunk[..read]);
        if head.windows(4).any(|it| it == b"\r\n\r\n") {
            return String::from_utf8(head).ok();
        }
    }
    None
}

async fn answer(stream: &mut TcpStream, status: &str, page: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: text/html; charset=utf-8\r\n\
         Content-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-store\r\n\
         Connection: close\r\n\r\n{page}",
        page.len()
    );
    let write = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    // A browser that has gone needs no page.
    let _ = timeout(PATIENCE, write).await;
}

/// A page of constant texts.
fn page(title: &str, text: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body{{font:18px/1.5 system-ui,sans-serif;max-width:36em;margin:20vh auto;padding:0 1em;\
         color-scheme:light dark}}</style>\n\
         <h1>{title}</h1>\n<p>{text}</p>\n</html>\n"
    )
}
