//! The page in the browser, as a server of HTTP sees it. Whoever serves it checks where a request comes from; the page
//! itself decides who may see it.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, StatusCode,
    body::{Body, Frame},
    header::{HeaderName, HeaderValue},
};
use tokio::sync::mpsc;

use super::response::{self, Response, ResponseBody};

/// Every path of the page begins so.
const PAGE_PATH: &str = "/ui";

#[derive(Debug)]
pub(crate) struct PageRequest {
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

pub(crate) struct PageResponse {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: PageBody,
}

pub(crate) enum PageBody {
    Whole(Bytes),
    /// Pieces that come later, until the sender is dropped.
    Pieces(mpsc::Receiver<Bytes>),
}

/// The response that is being made.
pub(crate) type PageFuture = Pin<Box<dyn Future<Output = PageResponse> + Send>>;

/// The page of a workbench.
pub(crate) trait Page: Send + Sync {
    /// Returns whether a request shows that it may see the page.
    fn admits(&self, headers: &HeaderMap) -> bool;

    fn respond(&self, request: PageRequest) -> PageFuture;
}

/// Returns whether a path belongs to the page.
pub(super) fn is_page(path: &str) -> bool {
    let rest = path.strip_prefix(PAGE_PATH);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl PageResponse {
    pub(super) fn into_response(self) -> Response {
        let mut response = match self.body {
            PageBody::Whole(bytes) => response::typed("text/plain; charset=utf-8", bytes),
            PageBody::Pieces(pieces) => Response::new(ResponseBody::events(Pieces(pieces))),
        };
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_parts_of_a_path_count() {
        for (path, expected) in [
            ("/ui", true),
            ("/ui/", true),
            ("/ui/api/calls", true),
            ("/uix", false),
            ("/mcp", false),
            ("/", false),
        ] {
            assert_eq!(is_page(path), expected, "{path}");
        }
    }
}
