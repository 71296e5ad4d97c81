//! Probes of balancers, and the end of a replica.

use pretty_assertions::assert_eq;
use rustix::process::Signal;

use super::{alone, calls};
use crate::harness::{HttpRequest, Served, TIMEOUT, TOKEN, poll, use_params};

fn probe(served: &Served, path: &str) -> u16 {
    let request = HttpRequest::new("GET", path).header("host", &served.address.to_string());
    served.connection().ask(&request).head.status
}

#[test]
fn probes_need_no_token() {
    let served = alone().serve();
    for (path, status) in [
        ("/health", 200),
        ("/healthz", 200),
        ("/ready", 200),
        ("/readyz", 401),
    ] {
        assert_eq!(probe(&served, path), status, "{path}");
    }
    let posted = HttpRequest::new("POST", "/ready").header("host", &served.address.to_string());
    assert_eq!(served.connection().ask(&posted).head.status, 405);
}

#[test]
fn a_draining_replica_is_not_ready_and_serves_until_its_last_request_has_ended() {
    let setup = alone().env("WORKBENCH_TOKEN", TOKEN);
    let mut served = setup.serve_with(&["--drain-timeout", "60"]);
    let mut client = served.client();
    client.open();
    let mut waiting = client.begin("7", "tools/call", &use_params("wait", "{}"));
    poll(TIMEOUT, || (calls(&served) == 1).then_some(())).unwrap();
    served.workbench.signal(Signal::TERM);
    poll(TIMEOUT, || (probe(&served, "/ready") == 503).then_some(())).unwrap();
    assert_eq!(probe(&served, "/health"), 200);
    assert!(client.use_tool("plain", "{}").raw.contains(r#""plain":1"#));
    served.workbench.setup.write("gate", "");
    assert!(waiting.response().body.contains(r#""waited":1"#));
    assert_eq!(served.workbench.wait_exit().code(), Some(0));
}
