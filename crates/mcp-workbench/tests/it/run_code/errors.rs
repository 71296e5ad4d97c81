//! The texts that a model reads when a script fails.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{called, opened, run};
use crate::harness::{Script, Setup};

fn script() -> Script {
    Script::new()
        .tools(
            r#"[{"name":"read","inputSchema":{"type":"object","properties":{"repo":{"type":"string"}},"required":["repo"]},"annotations":{"readOnlyHint":true}},
                {"name":"write","inputSchema":{"type":"object"}},
                {"name":"broken","inputSchema":{"type":"object"}}]"#,
        )
        .answers("read", r#"{"content":[{"type":"text","text":"ok"}]}"#)
        .answers("write", r#"{"content":[{"type":"text","text":"ok"}]}"#)
        .answers("broken", r#"{"content":[{"type":"text","text":"issue not found: 42"}],"isError":true}"#)
}

#[test]
fn an_error_has_its_kind_its_place_the_calls_before_and_the_next_step() {
    let mut workbench = opened(&script());
    let rows = [
        (
            "const x = ;",
            "script_error",
            "SyntaxError at 1:11: unexpected token in expression: ';'. Calls completed before: 0.\nconst x = ;\n          ^\n\
             Nothing ran. Correct the script and run it again.",
        ),
        (
            "await tools.fs.read({repo: 'a'});\nawait tools.fs.write({});\nawait tools.fs.broken({})",
            "script_error",
            "ToolError at 3:16 in tools.fs.broken: issue not found: 42. Calls completed before: 2 (1 write: NOT rolled \
             back).\nWrote: tools.fs.write (started 2:16).\nawait tools.fs.broken({})\n               ^\nDo not run the whole \
             script again: it would repeat what it wrote. Continue from here, and look first at what is unknown.",
        ),
        (
            "await tools.fs.raed({})",
            "script_error",
            "ToolError at 1:16: Unknown tool tools.fs.raed. Did you mean: read? (search_tools to find others) \
             Calls completed before: 0.\nawait tools.fs.raed({})\n               ^\nCorrect the call, or catch ToolError {tool, \
             code, outcome, message} to go on without it.",
        ),
        (
            "await tools.fsx.read({})",
            "script_error",
            "ToolError at 1:17 in tools.fsx.read: Unknown server 'fsx'. (search_tools to find tools) Calls completed before: \
             0.\nawait tools.fsx.read({})\n                ^\nCorrect the call, or catch ToolError {tool, code, outcome, \
             message} to go on without it.",
        ),
        (
            "await tools.fs.read({})",
            "script_error",
            "ToolError at 1:16: Invalid arguments for tools.fs.read: missing required \"repo\" (string). Calls completed before: \
             0.\nawait tools.fs.read({})\n               ^\nCorrect the call, or catch ToolError {tool, code, outcome, message} to go on without it.",
        ),
        (
            "1 + 1",
            "script_no_value",
            "Returned undefined. Use \"return <value>\". Calls completed before: 0.\nCorrect the script and run it again.",
        ),
        (
            "return 1n",
            "script_not_json",
            "Result is not JSON: BigInt. Calls completed before: 0.\nCorrect the script and run it again.",
        ),
        (
            "console.log('here'); return 'x'.repeat(422000)",
            "script_result_too_large",
            "Result is 413 KB, limit 32 KB: return a summary, or only the fields you need. Calls completed before: \
             0.\nCorrect the script and run it again.\nlogs:\nhere",
        ),
        (
            "await new Promise(() => {})",
            "script_deadlock",
            "Deadlock: the script awaits a promise that nothing can settle (line unknown). Calls completed before: 0.\nAwait \
             only promises of tools, and of what follows from them.",
        ),
        (
            "const a = []; for (;;) a.push(new Array(1000).fill(1))",
            "script_out_of_memory",
            "Out of memory (64 MB): process results in pages. Calls completed before: 0.\nCorrect the script and run it again.",
        ),
    ];
    for (script, code, text) in rows {
        let result = run(&mut workbench, script);
        let without_types = "Nothing ran. Correct the script (JavaScript, without types)";
        let text = if cfg!(feature = "typescript") {
            text.to_owned()
        } else {
            text.replace("Nothing ran. Correct the script", without_types)
        };
        assert_eq!(result.error(), text, "{script}");
        assert_eq!(result.failure()["code"], code, "{script}");
    }
    // A call that was refused before it was sent did not reach the server.
    assert_eq!(called(&workbench), ["read", "write", "broken"]);
}

#[test]
fn an_error_of_any_length_is_reported() {
    let mut workbench = opened(&script());
    let rows = [
        ("throw new Error('x'.repeat(5e6))", "Error at 1:21: xxx"),
        ("throw 'x'.repeat(5e6)", "Error: xxx"),
        ("throw { a: 'x'.repeat(5e6) }", "Error: {\"a\":\"xxx"),
        (
            "await tools.fs['x'.repeat(5e6)]({})",
            "ToolError at 1:20 in tools.fs.xxx",
        ),
        (
            "await Promise.any([tools.fs.broken({})])",
            "AggregateError at 1:29: no message. ",
        ),
        (
            "await tools.search('x', { limits: 1 })",
            "ToolError at 1:13: tools.search takes (query, {limit, toolbox}): unknown field `limits`",
        ),
    ];
    for (script, text) in rows {
        let result = run(&mut workbench, script);
        assert_eq!(result.failure()["code"], "script_error", "{script}");
        assert!(result.error().starts_with(text), "{}", result.error());
        assert!(result.error().len() < 5000, "{script}");
    }
}

#[test]
fn a_schema_with_more_forms_than_can_be_tried_does_not_hold_up_the_workbench() {
    let node = json!({"$ref": "#/$defs/node"});
    let defs = json!({"node": {
        "type": "object", "required": ["b"], "properties": {"a": {"anyOf": vec![&node; 20]}},
    }});
    let schema = json!({"type": "object", "properties": {"a": node}, "$defs": defs});
    let tools = json!([{"name": "t", "inputSchema": schema}]);
    let mut workbench = opened(&Script::new().tools(&tools.to_string()));
    let code = "let tree = {}; for (let i = 0; i < 15; i++) tree = { a: tree };
        try { await tools.fs.t(tree) } catch (e) { return e.code }";
    let refused = super::value(&mut workbench, code);
    assert_eq!(refused, json!("invalid_arguments"));
}

#[test]
fn a_limit_that_is_reached_has_its_place() {
    let mut workbench = opened(&script());
    let rows = [
        (
            "const f = () => {\n  for (let n = 0; ; ) n = Math.max(n, 1);\n};\nf()",
            "script_cpu_limit",
            "CPU limit 2000 ms exceeded at 2:",
        ),
        (
            "for (let i = 0; i < 101; i++)\n  await tools.fs.read({repo: 'a'})",
            "script_error",
            "Tool call limit 100 reached at 2:18. Calls completed before: 100.\n",
        ),
    ];
    for (script, code, text) in rows {
        let result = run(&mut workbench, script);
        assert_eq!(result.failure()["code"], code, "{script}");
        assert!(result.error().starts_with(text), "{}", result.error());
    }
}

#[cfg(feature = "typescript")]
#[test]
fn types_are_removed_and_what_is_more_than_a_type_is_refused_with_its_place() {
    let mut workbench = opened(&script());
    let typed = "interface Read { repo: string }\nconst args: Read = { repo: 'a' };\n\
                 const text: string = await tools.fs.read(args as Read)!;\nreturn text";
    assert_eq!(super::value(&mut workbench, typed), json!("ok"));
    let result = run(
        &mut workbench,
        "const a: number = 1;\nenum Color { Red }\nreturn await tools.fs.read({repo: 'a'})",
    );
    assert_eq!(
        result.error(),
        "SyntaxError at 2:1: TypeScript enums are not supported: use an object. Calls completed before: 0.\nenum Color { Red \
         }\n^\nNothing ran. Correct the script and run it again."
    );
    assert_eq!(called(&workbench), ["read"]);
}

#[test]
fn a_failure_names_for_programs_what_was_written_and_what_is_unknown() {
    let script = script().on_call("broken", r#"[{"exit":1}]"#);
    let mut workbench = opened(&script);
    let result = run(
        &mut workbench,
        "await tools.fs.write({}); await tools.fs.broken({})",
    );
    let failure = result.failure();
    assert_eq!(failure["code"], "script_error");
    assert_eq!(failure["line"], 1);
    assert_eq!(failure["calls"], json!({"total": 2, "failed": 1}));
    assert_eq!(failure["wrote"], json!(["tools.fs.write (started 1:16)"]));
    assert_eq!(
        failure["unknown"],
        json!(["tools.fs.broken (started 1:42)"])
    );
}

#[test]
fn the_time_limit_names_the_call_that_was_waited_for_and_cancels_it() {
    let mut workbench = opened(&Script::named(&["hang"]));
    let call = json!({"code": "await tools.fs.hang({})", "timeout_s": 1});
    let result = workbench.call("run_code", &call.to_string());
    assert!(
        result.error().starts_with(
            "Time limit 1 s: waiting for tools.fs.hang (started 1:16). Calls completed before: 0.\nOutcome unknown"
        ),
        "{}",
        result.error()
    );
    workbench.journal("dev", "fs").wait("cancelled", 1);
}

#[test]
fn parameters_with_units_of_others_are_refused() {
    let mut workbench = super::opened_setup(Setup::one(&Script::named(&["a"])));
    let rows = [
        (json!({}), "Invalid parameters: code: Required"),
        (
            json!({"code": " "}),
            "Invalid parameters: code cannot be empty",
        ),
        (
            json!({"code": "return 1", "timeout_ms": 5}),
            "Invalid parameters: Unrecognized key: 'timeout_ms' (did you mean 'timeout_s'?)",
        ),
        (
            json!({"code": "return 1", "timeout_s": 121}),
            "Invalid parameters: timeout_s: Expected integer from 1 to 120, received 121",
        ),
        (
            json!({"code": "x".repeat(65_537)}),
            "Invalid parameters: code: Expected at most 65536 characters, received 65537",
        ),
    ];
    for (arguments, text) in rows {
        let result = workbench.call("run_code", &arguments.to_string());
        assert_eq!(result.error(), text);
    }
}
