//! Metrics for Prometheus.

use pretty_assertions::assert_eq;

use super::{ask, served};
use crate::harness::Served;

fn metrics(served: &Served) -> String {
    let response = ask(served, &served.request("GET", "/metrics"));
    assert_eq!(response.head.status, 200);
    let media_type = response.head.header("content-type").unwrap();
    assert!(
        media_type.starts_with("text/plain; version=0.0.4"),
        "{media_type}"
    );
    response.body
}

#[test]
fn calls_are_counted_on_both_hops_under_the_names_of_the_conventions() {
    let served = served();
    let before = metrics(&served);
    assert!(!before.contains("_count{"), "{before}");
    let mut client = served.client();
    client.open();
    for _ in 0..3 {
        assert!(!client.use_tool("read", "{}").failed());
    }
    let after = metrics(&served);
    let tool = r#"gen_ai_operation_name="execute_tool",gen_ai_tool_name="read""#;
    let counted = [
        format!(
            "mcp_server_operation_duration_seconds_count{{{tool},mcp_method_name=\"tools/call\",\
             mcp_protocol_version=\"2025-11-25\",mcp_workbench_server=\"fs\",mcp_workbench_toolbox=\"dev\",\
             network_protocol_name=\"http\",network_protocol_version=\"1.1\",network_transport=\"tcp\"}} 3\n"
        ),
        format!(
            "mcp_client_operation_duration_seconds_count{{{tool},mcp_method_name=\"tools/call\",\
             mcp_protocol_version=\"2025-11-25\",mcp_workbench_server=\"fs\",mcp_workbench_toolbox=\"dev\",\
             network_transport=\"pipe\"}} 3\n"
        ),
        "mcp_workbench_server_up{toolbox=\"dev\",server=\"fs\"} 1\n".to_owned(),
    ];
    for line in counted {
        assert!(after.contains(&line), "{line} in {after}");
    }
}

#[test]
fn sessions_are_measured_from_their_beginning_on_both_sides() {
    let served = served();
    // Both begin before anybody asks for metrics.
    let mut client = served.client();
    client.open();
    assert!(!client.use_tool("read", "{}").failed());
    metrics(&served);
    let ended = served.connection().ask(&client.bare("DELETE"));
    assert_eq!(ended.head.status, 204);
    super::stdout(&served, &["live", "stop", "dev", "fs"]);
    let after = metrics(&served);
    for side in ["server", "client"] {
        let name = format!("mcp_{side}_session_duration_seconds_count{{");
        let counted = after.lines().find(|it| it.starts_with(&name));
        let counted = counted.unwrap_or_else(|| panic!("{name} in {after}"));
        assert!(counted.ends_with(" 1"), "{counted}");
        assert!(counted.contains("mcp_protocol_version=\"2025-11-25\""));
    }
}

#[test]
fn metrics_are_for_holders_of_a_token() {
    let served = served();
    let request = served.request("GET", "/metrics").without("authorization");
    assert_eq!(ask(&served, &request).head.status, 401);
    let request = served
        .request("GET", "/metrics")
        .with("host", "evil.example");
    assert_eq!(ask(&served, &request).head.status, 403);
    let request = served.request("POST", "/metrics").body("{}");
    assert_eq!(ask(&served, &request).head.status, 405);
}

#[test]
fn names_that_a_client_makes_up_are_no_series() {
    let served = served();
    metrics(&served);
    let mut client = served.client();
    client.open();
    for number in 0..5 {
        assert!(client.use_tool(&format!("made-up-{number}"), "{}").failed());
    }
    let after = metrics(&served);
    assert!(!after.contains("made-up"), "{after}");
    let failed: Vec<_> = after
        .lines()
        .filter(|it| it.contains("tool_unknown"))
        .collect();
    assert!(failed.iter().any(|it| it.ends_with(" 5")), "{failed:?}");
}
