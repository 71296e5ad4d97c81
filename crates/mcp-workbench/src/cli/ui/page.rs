//! The page: its files, its links, and the requests of its script.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, StatusCode,
    header::{self, HeaderName, HeaderValue},
};
use serde_json::{Value, json};

use super::{
    access::{Access, PageAccess},
    api::Api,
    assets::asset,
};
use crate::serve::http::{Page, PageBody, PageFuture, PageRequest, PageResponse};

/// Nothing is loaded from elsewhere, nothing is run that is not a file of the page, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const EVENTS: &str = "text/event-stream";
const NOT_ADMITTED: &str =
    "Run `mcp-workbench ui` to open this page. A link is good once, and for a minute.\n";

/// The page of a workbench.
pub(in crate::cli) struct WorkbenchPage {
    access: Access,
    api: Arc<Api>,
}

impl WorkbenchPage {
    pub(in crate::cli) fn new(key: &str, api: Api) -> Self {
        Self {
            access: Access::new(key),
            api: Arc::new(api),
        }
    }

    /// Handles what needs no waiting; returns `None` for the requests of the script.
    fn respond_now(&self, request: &PageRequest) -> Option<PageResponse> {
        let page_access = self.access.page_access(&request.headers);
        Some(
            match (&request.method, request.path.as_str(), page_access) {
                (&Method::GET, "/ui", _) => redirect("/ui/"),
                // The code in the link is the proof, so that this comes before the check of access.
                (&Method::GET, "/ui/enter", _) => self.enter(request.query.as_deref()),
                (_, _, None) => plain(StatusCode::UNAUTHORIZED, NOT_ADMITTED),
                (&Method::POST, "/ui/link", Some(PageAccess::Key)) => {
                    let code = self.access.make_link();
                    let link = json!({ "path": format!("/ui/enter?code={code}") });
                    json_response(StatusCode::OK, &link)
                }
                // Pages on other ports of this machine are the same site for a browser, so their requests have the
                // cookie too.
                (&Method::POST, _, Some(PageAccess::Cookie)) if !is_from_page(&request.headers) => {
                    plain(StatusCode::FORBIDDEN, "not a request of the page\n")
                }
                (&Method::GET, path, Some(_)) if !path.starts_with("/ui/api/") => file(path),
                _ => return None,
            },
        )
    }

    /// Exchanges a link for a cookie.
    fn enter(&self, query: Option<&str>) -> PageResponse {
        let code = query.and_then(|query| query.strip_prefix("code="));
        let cookie = code.and_then(|code| self.access.exchange(code));
        let Some(cookie) = cookie.and_then(|it| HeaderValue::try_from(it).ok()) else {
            return plain(StatusCode::FORBIDDEN, NOT_ADMITTED);
        };
        let mut response = redirect("/ui/");
        response.headers.push((header::SET_COOKIE, cookie));
        response
    }
}

impl Page for WorkbenchPage {
    fn admits(&self, headers: &HeaderMap) -> bool {
        self.access.page_access(headers).is_some()
    }

    fn respond(&self, request: PageRequest) -> PageFuture {
        if let Some(response) = self.respond_now(&request) {
            return Box::pin(std::future::ready(response));
        }
        let api = Arc::clone(&self.api);
        Box::pin(async move {
            if request.method == Method::GET && request.path == "/ui/api/events" {
                return typed(StatusCode::OK, EVENTS, PageBody::Pieces(api.events()));
            }
            match api.respond(&request).await {
                Ok(document) => json_response(StatusCode::OK, &document),
                Err(refusal) => json_response(refusal.status(), &refusal.document()),
            }
        })
    }
}

/// Returns whether the script of the page made a request. Browsers name the origin of such requests, which the guard has
/// compared; other pages cannot send this media type without asking first.
fn is_from_page(headers: &HeaderMap) -> bool {
    let is = |name, value: &str| {
        headers
            .get(name)
            .is_some_and(|it: &HeaderValue| it == value)
    };
    headers.contains_key(header::ORIGIN) && is(header::CONTENT_TYPE, JSON)
}

fn file(path: &str) -> PageResponse {
    match asset(path) {
        Some(asset) => {
            let body = PageBody::Whole(Bytes::from_static(asset.text.as_bytes()));
            typed(StatusCode::OK, asset.media_type, body)
        }
        None => plain(StatusCode::NOT_FOUND, "not found\n"),
    }
}

fn redirect(to: &'static str) -> PageResponse {
    let mut response = plain(StatusCode::SEE_OTHER, "");
    let location = (header::LOCATION, HeaderValue::from_static(to));
    response.headers.push(location);
    response
}

fn plain(status: StatusCode, text: &'static str) -> PageResponse {
    typed(
        status,
        TEXT,
        PageBody::Whole(Bytes::from_static(text.as_bytes())),
    )
}

fn json_response(status: StatusCode, document: &Value) -> PageResponse {
    let body = PageBody::Whole(document.to_string().into());
    typed(status, JSON, body)
}

fn typed(status: StatusCode, media_type: &'static str, body: PageBody) -> PageResponse {
    let headers = HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let media_type = (header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    PageResponse {
        status,
        headers: headers.into_iter().chain([media_type]).collect(),
        body,
    }
}
