//! `mcp-workbench run`.

use std::{fs, process::Output};

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::harness::{Script, Setup};

fn setup() -> Setup {
    Setup::new()
        .toolbox("dev", "d")
        .server("fs", &Script::named(&["echo", "fail"]))
        .toolbox("other", "d")
        .server("away", &Script::named(&["echo"]))
}

/// Runs a command to its end.
fn run(setup: &Setup, arguments: &[&str]) -> Output {
    setup.write_config();
    let mut command = setup.command();
    command.arg("--config").arg(setup.config()).args(arguments);
    command.output().unwrap()
}

#[test]
fn a_file_is_run_and_its_value_printed() {
    let setup = setup();
    let file = setup.path("a.js");
    let rows = [
        (
            "console.log('to stderr'); return {a: (await tools.fs.echo({n: 1})) !== undefined}",
            "{\"a\":true}\n",
            "to stderr\n",
            0,
        ),
        ("return 'text'", "text\n", "", 0),
        (
            "throw new Error('no')",
            "",
            "Error at 1:11: no. Calls completed before: 0.\nthrow new Error('no')\n          ^\nCorrect the script and run it again.\n",
            3,
        ),
    ];
    for (code, stdout, stderr, exit) in rows {
        fs::write(&file, code).unwrap();
        let output = run(&setup, &["run", file.to_str().unwrap()]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{code}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), stderr, "{code}");
        assert_eq!(output.status.code(), Some(exit), "{code}");
    }
    fs::write(&file, "return 1").unwrap();
    let output = run(&setup, &["run", file.to_str().unwrap(), "--json"]);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["structuredContent"]["result"], json!(1));
}

#[test]
fn only_the_servers_that_a_script_may_use_are_there() {
    let setup = setup();
    let file = setup.path("a.js");
    fs::write(
        &file,
        "try { await tools.away.echo({}) } catch (e) { return e.message }",
    )
    .unwrap();
    let output = run(&setup, &["run", file.to_str().unwrap(), "--toolbox", "dev"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Unknown server 'away'. (search_tools to find tools)\n"
    );
    let output = run(&setup, &["run", file.to_str().unwrap(), "--toolbox", "dve"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `dev`?"));
}

/// Nothing is known about a server before the script calls it.
#[test]
fn a_server_that_starts_for_the_script_is_known_as_if_it_had_been_up() {
    let tools =
        r#"[{"name":"do-it","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]"#;
    let script = Script::new()
        .tools(tools)
        .answers("do-it", r#"{"content":[{"type":"text","text":"done"}]}"#);
    let setup = Setup::new().toolbox("dev", "d").server("my-fs", &script);
    let file = setup.path("a.js");
    let rows = [
        ("return await tools.my_fs.do_it({})", "done\n", ""),
        (
            "return (await tools.describe('my-fs.do-it')).signature",
            "(args: Record<string, unknown>): Promise<unknown>\n",
            "",
        ),
        (
            "await tools.my_fs.do_ti({})",
            "",
            "ToolError at 1:19 in tools.my_fs.do_ti: Unknown tool tools[\"my-fs\"].do_ti. Did you mean: do-it? (search_tools to find others) Calls \
             completed before: 0.\nawait tools.my_fs.do_ti({})\n                  ^\nCorrect the call, or catch ToolError \
             {tool, code, outcome, message} to go on without it.\n",
        ),
        (
            "await tools.my_fs.do_it({}); throw new Error('after')",
            "",
            "Error at 1:40: after. Calls completed before: 1.\nawait tools.my_fs.do_it({}); throw new Error('after')\n\
             \u{20}                                      ^\nCorrect the script and run it again.\n",
        ),
    ];
    for (code, stdout, stderr) in rows {
        fs::write(&file, code).unwrap();
        let output = run(&setup, &["run", file.to_str().unwrap()]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), stderr, "{code}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{code}");
    }
}

#[test]
fn types_declare_every_tool_that_scripts_may_call() {
    let tools = r#"[{"name":"do.it","description":"Does it. */ evil()","inputSchema":{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"]},"annotations":{"readOnlyHint":true}},
        {"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}]"#;
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("my-fs", &Script::new().tools(tools));
    let output = run(&setup, &["run", "--types"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let declared = "  \"my-fs\": {\n    /** Does it. [read-only] */\n    \"do.it\"(args: { a: \"x\" | \"y\" }): Promise<unknown>;\n  };\n};\n";
    assert!(text.ends_with(declared), "{text}");
}
