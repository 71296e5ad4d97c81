//! The two eras side by side: clients and servers of each, in every combination.

mod asking_moments;
mod broken_off;
mod listening;
mod modern_requests;
mod modern_servers;
mod parked_calls;
mod probing;
mod questions_beside_calls;
mod remote_servers;
mod speech;

use serde_json::{Value, json};

use crate::harness::{Script, Setup};

/// A server that announces the changes its tools make.
fn telling() -> Script {
    let told = |method: &str, params: Value| {
        json!([{"notify": {"method": method, "params": params}}, {"answer": {"content": []}}])
            .to_string()
    };
    let retooled = json!([
        {"setTools": [{"name": "newer", "inputSchema": {"type": "object"}}]},
        {"notify": {"method": "notifications/tools/list_changed"}},
        {"answer": {"content": []}},
    ]);
    Script::named(&["prompts", "resources", "update", "retool"])
        .set(
            "capabilities",
            r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}"#,
        )
        .on_method("prompts/list", r#"[{"answer":{"prompts":[]}}]"#)
        .on_method(
            "resources/list",
            r#"[{"answer":{"resources":[{"uri":"u:1"},{"uri":"u:2"}]}}]"#,
        )
        .on_method(
            "resources/templates/list",
            r#"[{"answer":{"resourceTemplates":[]}}]"#,
        )
        .on_method("resources/subscribe", r#"[{"answer":{}}]"#)
        .on_method("resources/unsubscribe", r#"[{"answer":{}}]"#)
        .on_call(
            "prompts",
            &told("notifications/prompts/list_changed", json!({})),
        )
        .on_call(
            "resources",
            &told("notifications/resources/list_changed", json!({})),
        )
        .on_call(
            "update",
            &told(
                "notifications/resources/updated",
                json!({"uri": "u:1", "_meta": {"own": 1}}),
            ),
        )
        .on_call("retool", &retooled.to_string())
}

/// A server with a resource that it never announces.
fn silent() -> Script {
    Script::named(&["quiet"])
        .set("capabilities", r#"{"tools":{},"resources":{}}"#)
        .on_method(
            "resources/list",
            r#"[{"answer":{"resources":[{"uri":"s:1"}]}}]"#,
        )
        .on_method(
            "resources/templates/list",
            r#"[{"answer":{"resourceTemplates":[]}}]"#,
        )
}

fn natively(setup: Setup) -> Setup {
    setup
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"))
}

/// Parameters with what makes a request modern.
fn modern(mut params: Value, capabilities: &Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params.to_string()
}
