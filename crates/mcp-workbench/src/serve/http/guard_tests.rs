use hyper::Request;

use super::{Credentials, Guard, Refusal};
use crate::serve::http::tokens::Tokens;

fn guard(address: &str, hosts: &[&str]) -> Guard {
    Guard {
        address: address.parse().unwrap(),
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        tokens: None,
        resource_server: None,
        sealer: None,
    }
}

fn check(guard: &Guard, local: &str, headers: &[(&str, &str)]) -> Result<Credentials, Refusal> {
    let mut request = Request::builder().uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    guard.check(&request.body(()).unwrap(), local.parse().unwrap())
}

#[test]
fn only_our_own_hosts_are_served() {
    let local = "127.0.0.1:8700";
    let rows = [
        ("127.0.0.1:8700", true),
        ("localhost:8700", true),
        ("LocalHost:8700", true),
        ("[::1]:8700", true),
        ("127.0.0.1", false),
        ("localhost", false),
        ("localhost:8701", false),
        ("localhost:08700x", false),
        ("localhost.:8700", false),
        ("evil.example:8700", false),
        ("localhost.evil.example:8700", false),
        ("user@localhost:8700", false),
        ("192.168.0.1:8700", false),
        ("::1:8700", false),
        ("", false),
        (":8700", false),
        ("localhost:", false),
    ];
    let guard = guard(local, &[]);
    for (host, served) in rows {
        let checked = check(&guard, local, &[("host", host)]);
        assert_eq!(checked.is_ok(), served, "{host:?}");
    }
    assert!(check(&guard, local, &[]).is_err());
    let twice = [("host", "localhost:8700"), ("host", "localhost:8700")];
    assert!(check(&guard, local, &twice).is_err());
}

#[test]
fn a_wildcard_serves_the_address_of_the_connection_and_named_hosts() {
    let guard = guard("0.0.0.0:8700", &["tools.example", "other.example:9000"]);
    let local = "192.168.0.5:8700";
    let rows = [
        ("192.168.0.5:8700", true),
        ("192.168.0.6:8700", false),
        ("localhost:8700", false),
        ("tools.example", true),
        ("TOOLS.example:8700", true),
        ("tools.example:9000", false),
        ("other.example:9000", true),
        ("other.example", false),
    ];
    for (host, served) in rows {
        let checked = check(&guard, local, &[("host", host)]);
        assert_eq!(checked.is_ok(), served, "{host:?}");
    }
}

#[test]
fn only_our_own_origins_are_served() {
    let local = "127.0.0.1:8700";
    let guard = guard(local, &["tools.example:443"]);
    let rows = [
        ("http://localhost:8700", true),
        ("http://127.0.0.1:8700", true),
        ("https://tools.example", true),
        ("http://tools.example", false),
        ("http://localhost", false),
        ("http://localhost:8700/", false),
        ("http://localhost:8700.evil.example", false),
        ("http://evil.example", false),
        ("null", false),
        ("", false),
        ("localhost:8700", false),
        ("file://", false),
        ("http://localhost:8700 http://localhost:8700", false),
    ];
    for (origin, served) in rows {
        let headers = [("host", "localhost:8700"), ("origin", origin)];
        let checked = check(&guard, local, &headers);
        assert_eq!(checked.is_ok(), served, "{origin:?}");
    }
}

#[test]
fn a_token_is_read_from_one_bearer_header() {
    let local = "127.0.0.1:8700";
    let mut guard = guard(local, &[]);
    guard.tokens = Some(Tokens::parse("secret").unwrap());
    let rows = [
        (vec!["Bearer secret"], true),
        (vec!["bearer  secret"], true),
        (vec![], false),
        (vec!["Bearer "], false),
        (vec!["Bearer"], false),
        (vec!["secret"], false),
        (vec!["Basic secret"], false),
        (vec!["Bearer secre"], false),
        (vec!["Bearer secret2"], false),
        (vec!["Bearer secret", "Bearer secret"], false),
    ];
    for (values, taken) in rows {
        let mut headers = vec![("host", "localhost:8700")];
        headers.extend(values.iter().map(|value| ("authorization", *value)));
        assert_eq!(check(&guard, local, &headers).is_ok(), taken, "{values:?}");
    }
}
