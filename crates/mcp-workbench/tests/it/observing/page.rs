//! Access to the page, and the rights that its answers give a browser.

use pretty_assertions::assert_eq;

use super::{ask, browsing, cookie, link, served};
use crate::harness::{Script, Setup, TOKEN};

#[test]
fn a_link_is_good_once_and_gives_a_cookie() {
    let served = served();
    let path = link(&served);
    let first = ask(&served, &browsing(&served, "GET", &path));
    assert_eq!(first.head.status, 303);
    let again = ask(&served, &browsing(&served, "GET", &path));
    assert_eq!(again.head.status, 403);
    assert_eq!(again.head.header("set-cookie"), None);
}

#[test]
fn without_a_cookie_there_is_nothing_to_see() {
    let served = served();
    let mcp = format!("Bearer {TOKEN}");
    for path in [
        "/ui/",
        "/ui/page.js",
        "/ui/api/servers",
        "/ui/api/events",
        "/ui/api/approvals",
    ] {
        let request = browsing(&served, "GET", path);
        assert_eq!(ask(&served, &request).head.status, 401, "{path}");
        // What a client of MCP holds is no key to the page.
        let request = request.header("authorization", &mcp);
        assert_eq!(ask(&served, &request).head.status, 401, "{path}");
    }
    let request = browsing(&served, "POST", "/ui/link").header("authorization", &mcp);
    assert_eq!(ask(&served, &request).head.status, 401);
}

#[test]
fn other_hosts_and_origins_are_refused_even_with_a_cookie() {
    let served = served();
    let cookie = cookie(&served);
    let port = served.address.port();
    let own = format!("http://127.0.0.1:{port}");
    let cases = [
        ("host", format!("evil.example:{port}"), 403),
        ("host", "127.0.0.1:1".to_owned(), 403),
        ("origin", "http://evil.example".to_owned(), 403),
        ("origin", "null".to_owned(), 403),
        (
            "origin",
            format!("http://127.0.0.1:{}", port.wrapping_add(1)),
            403,
        ),
        ("origin", own.clone(), 200),
    ];
    for (name, value, status) in cases {
        let request = browsing(&served, "GET", "/ui/api/servers").header("cookie", &cookie);
        let response = ask(&served, &request.with(name, &value));
        assert_eq!(response.head.status, status, "{name}: {value}");
    }
}

#[test]
fn only_the_script_of_the_page_can_change_something() {
    let served = served();
    let cookie = cookie(&served);
    let own = format!("http://{}", served.address);
    let body = r#"{"toolbox":"dev","server":"fs","action":"start"}"#;
    let request = || {
        let request = browsing(&served, "POST", "/ui/api/servers").header("cookie", &cookie);
        request.body(body)
    };
    let cases = [
        // A form of another page that a browser lets through without an origin.
        (request().header("content-type", "application/json"), 403),
        (
            request()
                .header("origin", &own)
                .header("content-type", "text/plain"),
            403,
        ),
        (request().header("origin", &own), 403),
        (
            request()
                .header("origin", &own)
                .header("content-type", "application/json"),
            200,
        ),
    ];
    for (request, status) in cases {
        assert_eq!(ask(&served, &request).head.status, status, "{request:?}");
    }
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let served = served();
    let cookie = cookie(&served);
    for path in ["/ui/", "/ui/page.js", "/ui/api/servers", "/ui/nothing"] {
        let request = browsing(&served, "GET", path).header("cookie", &cookie);
        let head = ask(&served, &request).head;
        let policy = head.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(head.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        assert_eq!(head.header("access-control-allow-origin"), None);
    }
}

#[test]
fn the_page_is_not_served_to_other_machines() {
    let setup = Setup::one(&Script::named(&["read"]));
    let served = setup
        .env("WORKBENCH_TOKEN", TOKEN)
        .serve_with(&["--allow-host", "proxy.example"]);
    // A proxy would let others in.
    let request = browsing(&served, "GET", "/ui/").with("host", "proxy.example");
    assert_eq!(ask(&served, &request).head.status, 403);
}
