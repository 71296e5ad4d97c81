//! Dynamic mode, in which opened tools can be called by names of their own.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

fn dynamic() -> Setup {
    Setup::new().top("toolMode", json!("dynamic"))
}

fn listed(workbench: &mut Workbench) -> Vec<Value> {
    let result = workbench.ask("tools/list", "{}").result();
    result["tools"].as_array().unwrap().clone()
}

/// The names in `tools/list` without those of the meta-tools.
fn registered(workbench: &mut Workbench, meta_tools: usize) -> Vec<String> {
    let tools = listed(workbench);
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.skip(meta_tools).collect()
}

/// Opens one toolbox with one server and one tool, and gives the name of the tool. Checks that the
/// name can be called.
fn name_of(identifier: [&str; 3], limit: Option<usize>) -> String {
    let [toolbox, server, tool] = identifier;
    let script = Script::named(&[tool]).answers(tool, r#"{"content":[],"called":true}"#);
    let mut setup = dynamic();
    if let Some(limit) = limit {
        setup = setup.top("toolNameLimit", json!(limit));
    }
    let mut workbench = setup
        .toolbox(toolbox, "d")
        .server(server, &script)
        .connect();
    let meta_tools = listed(&mut workbench).len();
    workbench.open(toolbox);
    workbench.notification(LIST_CHANGED);
    let names = registered(&mut workbench, meta_tools);
    let [name] = names.as_slice() else {
        panic!("not one tool: {names:?}");
    };
    let result = workbench.call(name, "{}");
    assert_eq!(result.raw, r#"{"content":[],"called":true}"#);
    name.clone()
}

#[test]
fn a_name_that_fits_is_the_three_parts_joined() {
    let rows = [
        (
            ["dev", "filesystem", "read_file"],
            "dev__filesystem__read_file",
        ),
        (["a__b", "_c_", "d__e"], "a__b___c___d__e"),
        (["A-1", "b", "C"], "A-1__b__C"),
    ];
    for (identifier, name) in rows {
        assert_eq!(name_of(identifier, None), name);
    }
    // 64 characters fit, and a limit of one's own counts.
    let tool = "t".repeat(64 - "dev__fs__".len());
    assert_eq!(
        name_of(["dev", "fs", &tool], None),
        format!("dev__fs__{tool}")
    );
    assert_eq!(
        name_of(["dev", "fs", "0123456789a"], Some(20)),
        "dev__fs__0123456789a"
    );
}

#[test]
fn a_name_that_does_not_fit_is_cleaned_cut_and_made_unique() {
    let long = "t".repeat(56);
    let rows = [
        (["dev", "fs", "read.file"], None, "dev__fs__read_file"),
        (["my box", "a/b", "ü工!"], None, "my_box__a_b_____"),
        (
            ["dev", "fs", &long],
            None,
            &format!("dev__fs__{}", "t".repeat(46)),
        ),
        (["dev", "fs", "0123456789ab"], Some(20), "dev__fs__01"),
    ];
    for (identifier, limit, begin) in rows {
        let name = name_of(identifier, limit);
        let hash = name.strip_prefix(&format!("{begin}_"));
        let hash = hash.unwrap_or_else(|| panic!("{name} does not begin with {begin}_"));
        let digits = hash
            .chars()
            .all(|it| it.is_ascii_digit() || ('a'..='f').contains(&it));
        assert!(hash.len() == 8 && digits, "{name}");
        assert!(name.len() <= limit.unwrap_or(64), "{name}");
        assert_eq!(name_of(identifier, limit), name, "the name is stable");
    }
}

#[test]
fn colliding_names_are_made_unique() {
    let script = |tool: &str, who: &str| {
        Script::named(&[tool]).answers(tool, &format!(r#"{{"content":[],"who":"{who}"}}"#))
    };
    let mut workbench = dynamic()
        .toolbox("a", "d")
        .server("b", &script("c__d", "first"))
        .server("b__c", &script("d", "second"))
        .server("x.y", &script("z", "third"))
        .server("x/y", &script("z", "fourth"))
        .connect();
    let meta_tools = listed(&mut workbench).len();
    workbench.open("a");
    let names = registered(&mut workbench, meta_tools);
    assert_eq!(names[0], "a__b__c__d");
    assert!(names[1].starts_with("a__b__c__d_"), "{names:?}");
    assert_ne!(names[2], names[3]);
    for (name, who) in names.iter().zip(["first", "second", "third", "fourth"]) {
        let result = workbench.call(name, "{}");
        assert_eq!(result.raw, format!(r#"{{"content":[],"who":"{who}"}}"#));
    }
}

#[test]
fn a_registered_tool_is_the_original_definition_with_its_origin() {
    let tool = r#"{"name":"t","title":"T","description":"Does it","inputSchema":{"type":"object","maximum":123456789012345678901234567890,"z":1,"a":2},"annotations":{"readOnlyHint":true},"_meta":{"server":"lie","toolbox":"lie","tool":"lie","other":{"b":1,"a":2}}}"#;
    let script = Script::new().tools(&format!("[{tool}]"));
    let mut workbench = dynamic()
        .toolbox("dev", "d")
        .server("fs", &script)
        .connect();
    workbench.open("dev");
    let answer = workbench.ask("tools/list", "{}");
    let raw =
        r#""inputSchema":{"type":"object","maximum":123456789012345678901234567890,"z":1,"a":2}"#;
    assert!(answer.raw_result().contains(raw), "{}", answer.line);
    let result = answer.result();
    let tool = result["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(tool["name"], "dev__fs__t");
    assert_eq!(tool["description"], "[dev/fs] Does it");
    assert_eq!(tool["title"], "T");
    assert_eq!(tool["annotations"], json!({"readOnlyHint": true}));
    let meta = &tool["_meta"];
    assert_eq!(
        [&meta["toolbox"], &meta["server"], &meta["tool"]],
        [&json!("dev"), &json!("fs"), &json!("t")]
    );
    assert_eq!(meta["other"], json!({"b": 1, "a": 2}));
}

#[test]
fn tools_are_listed_in_the_order_of_the_configuration() {
    let mut workbench = dynamic()
        .toolbox("one", "d")
        .server("z", &Script::named(&["b", "a"]))
        .server("y", &Script::named(&["c"]))
        .toolbox("two", "d")
        .server("x", &Script::named(&["d"]))
        .connect();
    let meta_tools = listed(&mut workbench).len();
    workbench.open("two");
    workbench.notification(LIST_CHANGED);
    assert_eq!(registered(&mut workbench, meta_tools), ["two__x__d"]);
    workbench.open("one");
    workbench.notification(LIST_CHANGED);
    assert_eq!(
        registered(&mut workbench, meta_tools),
        ["one__z__b", "one__z__a", "one__y__c", "two__x__d"]
    );
    let names: Vec<Value> = listed(&mut workbench)
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names[..2], ["open_toolbox", "use_tool"]);
}

#[test]
fn a_changed_list_is_announced_again() {
    let changed = r#"[{"setTools":[{"name":"new","inputSchema":{"type":"object"}},{"name":"change","inputSchema":{"type":"object"}}]},{"notify":{"method":"notifications/tools/list_changed"}},{"answer":{"content":[]}}]"#;
    let script = Script::named(&["change", "old"]).on_call("change", changed);
    let mut workbench = dynamic()
        .toolbox("dev", "d")
        .server("fs", &script)
        .connect();
    let meta_tools = listed(&mut workbench).len();
    workbench.open("dev");
    workbench.notification(LIST_CHANGED);
    assert!(workbench.untaken().is_empty(), "{:?}", workbench.untaken());
    workbench.call("dev__fs__change", "{}");
    workbench.notification(LIST_CHANGED);
    assert_eq!(
        registered(&mut workbench, meta_tools),
        ["dev__fs__new", "dev__fs__change"]
    );
}

#[test]
fn list_changed_is_declared() {
    let result = dynamic().start().initialize();
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
}

#[test]
fn unknown_names_get_the_texts_of_the_contract() {
    let format = |name: &str| {
        format!(
            "Error: Invalid tool name format '{name}'. Expected format: {{toolbox}}__{{server}}__{{tool}}"
        )
    };
    let missing = |name: &str| format!("Error: Tool '{name}' not found. Call open_toolbox first.");
    let rows = [
        ("read_file", format("read_file")),
        ("dev__read_file", format("dev__read_file")),
        ("x", format("x")),
        ("other__box__thing", missing("other__box__thing")),
        ("q__w__e__r__t__y", missing("q__w__e__r__t__y")),
        ("dev__fs__echo", missing("dev__fs__echo")),
    ];
    let mut workbench = dynamic()
        .toolbox("dev", "d")
        .server("fs", &Script::new())
        .connect();
    for (name, text) in rows {
        assert_eq!(workbench.call(name, "{}").error(), text);
    }
    workbench.open("dev");
    assert!(!workbench.call("dev__fs__echo", "{}").failed());
}

#[test]
fn a_registered_name_passes_arguments_and_results_as_use_tool_does() {
    let result = r#"{"content":[],"n":123456789012345678901234567890,"same":1,"same":2}"#;
    let arguments = r#"{"z":1e400,"a":[ 1 ],"z":2}"#;
    let script = Script::named(&["t", "crash"]).answers("t", result);
    let mut workbench = dynamic()
        .toolbox("dev", "d")
        .server("fs", &script)
        .connect();
    workbench.open("dev");
    let id = workbench.send_call("dev__fs__t", arguments);
    assert_eq!(workbench.response(&id).raw_result(), result);
    assert_eq!(workbench.use_tool("t", arguments).raw, result);
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.arguments(), [arguments, arguments]);
    assert_eq!(journal.called(), [r#""t""#, r#""t""#]);
    let failed = workbench.call("dev__fs__crash", r#"{"code":7}"#);
    assert!(
        failed
            .error()
            .starts_with("Error executing tool 'crash' in server 'fs' (toolbox 'dev'): "),
        "{}",
        failed.error()
    );
    assert_eq!(failed.failure()["tool"], "crash");
}
