//! Closed by default: every route and every method refuses what does not come from where it should.

use pretty_assertions::assert_eq;

use crate::harness::{Fault, HttpRequest, Served, Setup, TOKEN, initialize_params, request_text};

/// Every path that means something, and one that does not, with every method.
fn every_route(served: &Served) -> Vec<(String, HttpRequest)> {
    let mut routes = Vec::new();
    for path in [
        "/mcp",
        "/healthz",
        "/",
        "/mcp/",
        "/.well-known/oauth-protected-resource",
    ] {
        for method in [
            "GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE",
        ] {
            routes.push((format!("{method} {path}"), served.request(method, path)));
        }
    }
    routes
}

/// Sends a request on a connection of its own and gives the status.
fn status(served: &Served, request: &HttpRequest) -> u16 {
    let mut connection = served.connection();
    connection.send(request);
    connection.head().status
}

#[test]
fn every_route_checks_host_and_origin_before_the_body() {
    let fault = Fault::within(
        40,
        "T23",
        "a page of another site reaches every path with every method: foreign, missing, duplicate Host; foreign, null, malformed, duplicate Origin",
        "403 each time, before the body is read",
    );
    let served = Setup::new().serve();
    let port = served.address.port();
    let foreign = [
        ("host", format!("evil.example:{port}")),
        ("host", "127.0.0.1".to_owned()),
        ("host", format!("127.0.0.1:{}", port ^ 1)),
        ("host", format!("localhost:{port}, localhost:{port}")),
        ("origin", "null".to_owned()),
        ("origin", "http://evil.example".to_owned()),
        ("origin", format!("http://evil.example:{port}")),
        ("origin", "http://localhost".to_owned()),
        ("origin", "nonsense".to_owned()),
    ];
    for (route, request) in every_route(&served) {
        // The body is announced and never comes: the refusal does not wait for it.
        let request = request.with("content-length", "10");
        for (name, value) in &foreign {
            let refused = status(&served, &request.clone().with(name, value));
            assert_eq!(refused, 403, "{route} with {name}: {value}");
        }
        let ours = format!("http://127.0.0.1:{port}");
        let duplicate = request
            .clone()
            .header("origin", &ours)
            .header("origin", &ours);
        assert_eq!(status(&served, &duplicate), 403, "{route} with two origins");
        let duplicate = request.clone().header("host", &format!("localhost:{port}"));
        assert_eq!(status(&served, &duplicate), 403, "{route} with two hosts");
        let nobody = request.clone().without("host");
        assert_eq!(status(&served, &nobody), 403, "{route} without a host");
    }
    fault.ends();
}

#[test]
fn every_route_except_healthz_requires_the_token() {
    let fault = Fault::within(
        40,
        "T25a",
        "every path with every method, without a token or with a wrong one",
        "401 with WWW-Authenticate; only /healthz is open",
    );
    let served = Setup::new().serve();
    for (route, request) in every_route(&served) {
        let request = request.with("content-length", "10");
        let open = route.ends_with(" /healthz");
        for header in [
            None,
            Some("Bearer wrong".to_owned()),
            Some(format!("Basic {TOKEN}")),
            Some(TOKEN.to_owned()),
            Some(format!("Bearer {TOKEN}x")),
        ] {
            let request = request.clone().without("authorization");
            let request = match &header {
                Some(value) => request.header("authorization", value),
                None => request,
            };
            let mut connection = served.connection();
            connection.send(&request);
            let head = connection.head();
            assert_eq!(head.status == 401, !open, "{route} with {header:?}");
            let challenge = head.header("www-authenticate").unwrap_or_default();
            assert_eq!(challenge.starts_with("Bearer"), !open, "{route}");
        }
    }
    fault.ends();
}

#[test]
fn our_own_hosts_and_origins_are_served() {
    let served = Setup::new().serve();
    let port = served.address.port();
    let begin = served.post(&request_text(
        "1",
        "initialize",
        &initialize_params("2025-11-25"),
    ));
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        let request = begin.clone().with("host", &format!("{host}:{port}"));
        assert_eq!(status(&served, &request), 200, "{host}");
        let request = request.header("origin", &format!("http://{host}:{port}"));
        assert_eq!(status(&served, &request), 200, "origin {host}");
    }
    let target = format!("http://evil.example:{port}/mcp");
    let absolute = served.request("POST", &target).body("{}");
    assert_eq!(status(&served, &absolute), 403, "a foreign target");
}

#[test]
fn healthz_needs_no_token() {
    let served = Setup::new().serve();
    let request = served.request("GET", "/healthz").without("authorization");
    let response = served.connection().ask(&request);
    assert_eq!((response.head.status, response.body.as_str()), (200, "ok"));
}

#[test]
fn no_response_has_cors_headers_or_cookies() {
    let fault = Fault::within(
        15,
        "T24b",
        "a preflight or a request with our own Origin, every path and method",
        "no CORS header and no cookie in any response",
    );
    let served = Setup::new().serve();
    let origin = format!("http://{}", served.address);
    for (route, request) in every_route(&served) {
        let request = request
            .header("origin", &origin)
            .header("access-control-request-method", "POST");
        let mut connection = served.connection();
        connection.send(&request);
        let head = connection.head();
        for name in [
            "access-control-allow-origin",
            "access-control-allow-methods",
            "set-cookie",
        ] {
            assert_eq!(head.header(name), None, "{route}");
        }
    }
    fault.ends();
}

#[test]
fn unknown_methods_and_paths_are_refused() {
    let served = Setup::new().serve();
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"] {
        let request = served.request(method, "/mcp");
        let mut connection = served.connection();
        connection.send(&request);
        let head = connection.head();
        assert_eq!(head.status, 405, "{method}");
        assert_eq!(head.header("allow"), Some("GET, POST, DELETE"), "{method}");
    }
    assert_eq!(status(&served, &served.request("POST", "/healthz")), 405);
    assert_eq!(status(&served, &served.request("GET", "/")), 404);
}

#[test]
fn content_and_accept_are_checked() {
    let fault = Fault::within(
        15,
        "T24a",
        "a simple request of a page: text/plain, a form, no content type; a foreign Accept",
        "415, 406",
    );
    let served = Setup::new().serve();
    let begin = served.post(&request_text(
        "1",
        "initialize",
        &initialize_params("2025-11-25"),
    ));
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
    ] {
        let request = begin.clone().with("content-type", content_type);
        assert_eq!(status(&served, &request), 415, "{content_type}");
    }
    assert_eq!(status(&served, &begin.clone().without("content-type")), 415);
    for accept in [
        "application/json",
        "text/event-stream",
        "text/html",
        "*/*;q=0",
    ] {
        let request = begin.clone().with("accept", accept);
        assert_eq!(status(&served, &request), 406, "{accept}");
    }
    for accept in [
        "*/*",
        "application/*, text/*",
        "text/event-stream, application/json;q=0.1",
    ] {
        let request = begin.clone().with("accept", accept);
        assert_eq!(status(&served, &request), 200, "{accept}");
    }
    assert_eq!(status(&served, &begin.without("accept")), 200);
    let client = served.client();
    let request = client.bare("GET").with("accept", "application/json");
    assert_eq!(status(&served, &request), 406);
    fault.ends();
}
