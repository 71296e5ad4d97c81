//! The trace context of requests to servers.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench, use_arguments};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn setup() -> Setup {
    let script = Script::named(&["read"]).answers("read", r#"{"content":[]}"#);
    Setup::one(&script)
}

/// Calls a tool with these members in `_meta`; returns `_meta` as the server got it.
fn passed(workbench: &mut Workbench, meta: &Value) -> Value {
    workbench.open("dev");
    let arguments = use_arguments(["dev", "fs", "read"], Some("{}"));
    let params = format!(r#"{{"name":"use_tool","arguments":{arguments},"_meta":{meta}}}"#);
    workbench.ask("tools/call", &params);
    let calls = workbench.journal("dev", "fs").received("tools/call");
    calls.last().unwrap().params()["_meta"].clone()
}

#[test]
fn the_trace_context_is_passed_on_unchanged_while_tracing_is_off() {
    let mut workbench = setup().connect();
    let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"), "tracestate": "a=1"});
    assert_eq!(passed(&mut workbench, &meta), meta);
    assert_eq!(passed(&mut workbench, &json!({})).get("traceparent"), None);
}

#[cfg(feature = "otel")]
#[test]
fn servers_get_a_span_of_the_workbench_while_tracing_is_on() {
    // Nobody listens at this port: spans are made, and cannot be exported.
    let setup = setup().env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let mut workbench = setup.env("OTEL_METRICS_EXPORTER", "none").connect();
    let traced = |meta: &Value| meta["traceparent"].as_str().unwrap_or_default().to_owned();
    let own = traced(&passed(&mut workbench, &json!({})));
    assert_eq!((own.len(), &own[..3]), (55, "00-"), "{own}");
    let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"), "tracestate": "a=1"});
    let passed = passed(&mut workbench, &meta);
    let child = traced(&passed);
    assert!(child.starts_with(&format!("00-{TRACE}-")), "{child}");
    assert!(!child.contains(PARENT), "{child}");
    assert_eq!(passed["tracestate"], "a=1");
}
