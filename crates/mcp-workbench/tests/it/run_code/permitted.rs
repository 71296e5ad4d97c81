//! Permissions that a script cannot get around.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{opened_setup, value, with_run_code};
use crate::harness::{Script, Setup, Workbench};

const TOOLS: &str = r#"[
    {"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
    {"name":"plain","inputSchema":{"type":"object"}},
    {"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}},
    {"name":"both","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":true}}
]"#;

fn workbench(permissions: &Value) -> Workbench {
    let script = Script::new().tools(TOOLS);
    let names = ["read", "plain", "wipe", "both"];
    let script = names.iter().fold(script, |script, name| {
        script.answers(name, r#"{"content":[{"type":"text","text":"ran"}]}"#)
    });
    let setup = Setup::new().toolbox("dev", "d").server_with(
        "fs",
        &script,
        &json!({"permissions": permissions}),
    );
    opened_setup(setup)
}

/// The outcome for each tool when a script calls it.
fn outcomes(workbench: &mut Workbench) -> Value {
    let script = "const all = {};
        for (const name of ['read', 'plain', 'wipe', 'both']) {
          try { all[name] = await tools.fs[name]({}) } catch (e) { all[name] = e.code }
        }
        return all";
    value(workbench, script)
}

#[test]
fn the_configuration_decides_what_scripts_may_call() {
    let (denied, code) = ("permission_denied", "permission_code");
    let rows = [
        (json!({}), ["ran", "ran", code, code]),
        (json!({"code": []}), [code, code, code, code]),
        (json!({"code": ["*"]}), ["ran", "ran", "ran", "ran"]),
        (json!({"code": ["@readOnly"]}), ["ran", code, code, code]),
        (json!({"code": ["wipe"]}), [code, code, "ran", code]),
        (
            json!({"code": ["*"], "deny": ["wipe"]}),
            ["ran", "ran", denied, "ran"],
        ),
        (
            json!({"deny": ["@destructive"]}),
            ["ran", denied, denied, denied],
        ),
        // The client of this test cannot be asked.
        (
            json!({"code": ["*"], "ask": ["plain"]}),
            ["ran", "permission_required", "ran", "ran"],
        ),
    ];
    for (permissions, [read, plain, wipe, both]) in rows {
        let mut workbench = workbench(&permissions);
        let expected = json!({"read": read, "plain": plain, "wipe": wipe, "both": both});
        assert_eq!(outcomes(&mut workbench), expected, "{permissions}");
        let journal = workbench.journal("dev", "fs");
        let ran = expected
            .as_object()
            .unwrap()
            .values()
            .filter(|it| **it == json!("ran"));
        assert_eq!(journal.called().len(), ran.count(), "{permissions}");
    }
}

#[test]
fn no_other_name_leads_to_a_tool_that_scripts_may_not_call() {
    let mut workbench = workbench(&json!({"deny": ["wipe"]}));
    let codes = value(
        &mut workbench,
        "const codes = [];
         const ways = [() => tools.fs.wipe({}), () => tools['fs']['wipe']({}), () => tools['dev/fs'].wipe({}),
           () => tools.fs['WIPE']({}), () => tools.fs['wipe ']({}), () => tools['fs/wipe']({}),
           () => tools.search.wipe({}), () => Reflect.get(tools, 'fs').wipe.call(null, {})];
         for (const way of ways) { try { codes.push(await way()) } catch (e) { codes.push(e.code ?? e.name) } }
         return codes",
    );
    let codes: Vec<&str> = codes
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    assert!(!codes.contains(&"ran"), "{codes:?}");
    assert_eq!(
        workbench.journal("dev", "fs").called(),
        Vec::<String>::new()
    );
}

/// The ways in which a tool is out of reach for a client.
#[derive(Debug, Clone, Copy)]
enum OutOfReach {
    /// The user has not approved its server.
    NotApproved,
    Withheld,
    /// Its toolbox is not open.
    Closed,
    Filtered,
}

#[test]
fn what_a_client_cannot_call_a_script_cannot_call() {
    let rows = [
        (OutOfReach::NotApproved, "toolbox_not_open"),
        (OutOfReach::Withheld, "tool_withheld"),
        (OutOfReach::Closed, "toolbox_not_open"),
        (OutOfReach::Filtered, "tool_unknown"),
    ];
    for (row, code) in rows {
        let tools = match row {
            OutOfReach::Withheld => {
                r#"[{"name":"t","description":"Nice.\u001b[2J","inputSchema":{"type":"object"}}]"#
            }
            _ => {
                r#"[{"name":"t","inputSchema":{"type":"object"}},{"name":"other","inputSchema":{"type":"object"}}]"#
            }
        };
        let keys = match row {
            OutOfReach::Filtered => json!({"toolFilters": ["other"]}),
            _ => json!({}),
        };
        let setup =
            Setup::new()
                .toolbox("dev", "d")
                .server_with("fs", &Script::new().tools(tools), &keys);
        let setup = match row {
            OutOfReach::NotApproved => setup.top("pin", json!("enforce")),
            _ => setup,
        };
        let mut workbench = with_run_code(setup).connect();
        if !matches!(row, OutOfReach::Closed) {
            workbench.open("dev");
        }
        let direct = workbench.use_tool("t", "{}");
        assert!(direct.failed(), "{row:?}: {}", direct.raw);
        let found = value(
            &mut workbench,
            "const codes = [];
             for (const way of [() => tools.fs.t({}), () => tools['fs']['t']({}), () => tools['dev/fs'].t({})]) {
               try { codes.push(await way()) } catch (e) { codes.push(e.code) }
             }
             return codes",
        );
        assert_eq!(found[0], json!(code), "{row:?}");
        assert_eq!(found[1], json!(code), "{row:?}");
        assert_eq!(found[2], json!("tool_unknown"), "{row:?}");
        assert_eq!(
            workbench.journal("dev", "fs").called(),
            Vec::<String>::new(),
            "{row:?}"
        );
    }
}

#[test]
fn a_tool_that_becomes_destructive_is_no_longer_called_by_scripts() {
    let harmless = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
    let marked =
        r#"{"name":"t","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}"#;
    let change = format!(
        r#"[{{"setTools":[{marked}]}},{{"answer":{{"content":[]}}}},{{"notify":{{"method":"notifications/tools/list_changed"}}}}]"#
    );
    let script = Script::new()
        .tools(&format!("[{harmless}]"))
        .on_call("t", &change);
    let mut workbench = with_run_code(Setup::one(&script)).connect();
    workbench.open("dev");
    let codes = value(
        &mut workbench,
        "const codes = [await tools.fs.t({})];
         for (let i = 0; i < 50; i++) { try { await tools.fs.t({}) } catch (e) { codes.push(e.code); break } }
         return codes",
    );
    assert_eq!(codes, json!([null, "permission_code"]));
}
