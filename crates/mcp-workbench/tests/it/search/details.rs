//! `open_toolbox` with `detail` and `query`.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::FILES;
use crate::harness::{ModernClient, ModernRequest, Script, Setup, ToolResult, Workbench};

fn open(workbench: &mut Workbench, more: &serde_json::Value) -> ToolResult {
    let mut arguments = json!({"toolbox": "dev"});
    for (key, value) in more.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    workbench.call("open_toolbox", &arguments.to_string())
}

fn files() -> Setup {
    let script = Script::new()
        .tools(FILES)
        .set("instructions", r#""Ask before you delete. Thank you.""#);
    Setup::one(&script).server("plain", &Script::named(&["echo"]))
}

#[test]
fn full_is_the_built_in_default() {
    let mut workbench = files().connect();
    let usual = open(&mut workbench, &json!({})).raw;
    assert_eq!(open(&mut workbench, &json!({"detail": "full"})).raw, usual);
    assert_eq!(
        open(&mut workbench, &json!({})).json()["servers_connected"],
        2
    );
}

/// A tool as SDKs describe it, with everything that the detail `compact` leaves out.
const WORDY: &str = r#"[{"name":"set_title","title":"Set title","description":"Set  the title","icons":[],"server":"evil",
    "inputSchema":{ "$schema":"http://json-schema.org/draft-07/schema#", "type":"object", "title":"set_titleArguments",
        "properties":{ "title":{ "title":"Title", "type":"string", "default":{ "title":"title" } },
                       "max_size":{ "title":"Max Size", "maximum":1.0 } }, "required":[ "title" ] },
    "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}]"#;

const COMPACT: &str = r#"{"name":"set_title","description":"Set  the title","inputSchema":{"type":"object","properties":{"title":{"type":"string","default":{"title":"title"}},"max_size":{"maximum":1.0}},"required":["title"]},"server":"fs","toolbox":"dev"}"#;

fn wordy() -> Setup {
    let script = Script::new()
        .tools(&WORDY.replace('\n', ""))
        .set("instructions", r#""Ask first.""#);
    Setup::one(&script)
}

/// The text of an open toolbox with the tool in the detail `compact`.
fn compact(more: &str) -> String {
    format!(
        r#"{{"toolbox":"dev","description":"Development tools","servers_connected":1,"tools":[{COMPACT}]{more},"instructions":{{"fs":"Ask first."}}}}"#
    )
}

#[test]
fn compact_has_the_shape_of_full_with_what_a_call_needs() {
    for mode in ["proxy", "dynamic"] {
        let mut workbench = wordy().top("toolMode", json!(mode)).connect();
        let opened = open(&mut workbench, &json!({"detail": "compact"}));
        assert_eq!(opened.text(), compact(""), "{mode}");
        let found = open(
            &mut workbench,
            &json!({"detail": "compact", "query": "set the title"}),
        );
        assert_eq!(found.text(), compact(r#","tools_in_all":1"#), "{mode}");
        let arguments = r#"{"toolbox":"dev","detail":"compact"}"#;
        let modern = workbench.call_modern(&ModernRequest::call("open_toolbox", arguments));
        assert_eq!(modern.text(), compact(""), "{mode}");
    }
}

#[test]
fn the_configured_detail_is_the_default_of_a_call() {
    let mut workbench = wordy().top("openDetail", json!("compact")).connect();
    let listed = workbench.ask("tools/list", "{}").result();
    let default = "/tools/0/inputSchema/properties/detail/default";
    assert_eq!(listed.pointer(default), Some(&json!("compact")));
    assert_eq!(open(&mut workbench, &json!({})).text(), compact(""));
    let found = open(&mut workbench, &json!({"query": "set the title"}));
    assert_eq!(found.text(), compact(r#","tools_in_all":1"#));
    let full = open(&mut workbench, &json!({"detail": "full"})).json();
    assert_eq!(full["tools"][0]["annotations"]["readOnlyHint"], true);

    let mut lines = wordy().top("openDetail", json!("names")).connect();
    let names = open(&mut lines, &json!({}));
    assert!(names.text().ends_with("\nfs: set_title\n"), "{}", names.raw);
}

#[test]
fn the_other_levels_have_one_line_per_tool() {
    let mut workbench = files().connect();
    let rows = [
        (
            "names",
            "toolbox dev (Development tools): 3 tools of 2 servers. For parameters use detail \"signature\".\n\
             fs: read_file, delete_file\n\
             plain: echo\n",
        ),
        (
            "brief",
            "toolbox dev (Development tools): 3 tools of 2 servers. For parameters use detail \"signature\".\n\
             server fs: Ask before you delete.\n\
             read_file — Read a file.\n\
             delete_file — Delete a file for good\n\
             server plain:\n\
             echo\n",
        ),
        (
            "signature",
            "toolbox dev (Development tools): 3 tools of 2 servers. Run them with use_tool (? = optional).\n\
             server fs: Ask before you delete.\n\
             read_file(path: string, head?: integer = 10, encoding?: \"utf8\"|\"base64\") — Read a file.\n\
             delete_file(path: string) — Delete a file for good\n\
             server plain:\n\
             echo()\n",
        ),
    ];
    for (detail, text) in rows {
        assert_eq!(
            open(&mut workbench, &json!({"detail": detail})).text(),
            text
        );
    }
}

#[test]
fn every_level_reports_failed_servers_and_withheld_tools() {
    let double = r#"[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]"#;
    let setup = Setup::one(&Script::new().tools(double))
        .entry("bad", json!({"command": "/no/such/program"}));
    let mut workbench = setup.connect();
    for detail in ["names", "brief", "signature"] {
        let text = open(&mut workbench, &json!({"detail": detail}))
            .text()
            .to_owned();
        for part in [
            "\nFailed to connect to server 'bad' in toolbox 'dev': command '/no/such/program' not found\n",
            "\nwithheld: fs a: ",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
}

#[test]
fn a_query_leaves_the_tools_that_match_best_first_and_counts_all() {
    let mut workbench = files().connect();
    let matching = open(&mut workbench, &json!({"query": "delete"}));
    let matching = matching.json();
    assert_eq!(matching["tools"][0]["name"], "delete_file");
    assert_eq!(matching["tools"].as_array().unwrap().len(), 1);
    assert_eq!(matching["tools_in_all"], 3);
    assert_eq!(matching["servers_connected"], 2);
    let lines = open(
        &mut workbench,
        &json!({"query": "delete", "detail": "signature"}),
    );
    assert_eq!(
        lines.text(),
        "toolbox dev (Development tools): 1 of 3 tools match, best first, each as server and tool. \
         Run them with use_tool (? = optional).\n\
         fs delete_file(path: string) — Delete a file for good\n"
    );
    let nothing = open(&mut workbench, &json!({"query": "zzzz", "detail": "brief"}));
    assert_eq!(
        nothing.text(),
        "toolbox dev (Development tools): none of 3 tools matches 'zzzz'. Use other words, or leave out the query.\n"
    );
    let nothing = open(&mut workbench, &json!({"query": "zzzz"})).json();
    assert_eq!(
        (&nothing["tools"], &nothing["tools_in_all"]),
        (&json!([]), &json!(3))
    );
}

#[test]
fn without_a_good_match_a_query_leaves_the_nearest_three_marked_as_such() {
    let tools = ["mail", "note", "file", "page"].map(|thing| {
        let description = format!("Read a {thing}");
        json!({"name": format!("read_{thing}"), "description": description, "inputSchema": {"type": "object"}})
    });
    let script = Script::new().tools(&json!(tools).to_string());
    let mut workbench = Setup::one(&script).connect();
    let found = open(&mut workbench, &json!({"query": "read my palm"})).json();
    assert_eq!(found["tools"].as_array().unwrap().len(), 3);
    let notice = "no good match for 'read my palm', the tools are probably for something else";
    assert_eq!(found["notices"], json!([notice]));
    let lines = open(
        &mut workbench,
        &json!({"query": "read my palm", "detail": "names"}),
    );
    let heading = format!(
        "toolbox dev (Development tools): {notice}. Nearest 3 of 4 tools, each as server and tool. Use other words, or \
         leave out the query.\n"
    );
    assert!(lines.text().starts_with(&heading), "{}", lines.text());
    assert_eq!(
        lines.text().matches("\nfs read_").count(),
        3,
        "{}",
        lines.text()
    );
    let good = open(&mut workbench, &json!({"query": "read a note"})).json();
    assert_eq!(
        (&good["tools"][0]["name"], good.get("notices")),
        (&json!("read_note"), None)
    );
}

#[test]
fn invalid_values_are_refused_with_the_valid_ones() {
    let mut workbench = files().connect();
    let rows = [
        (
            json!({"detail": "sigature"}),
            "Invalid parameters: detail: Expected 'names' | 'brief' | 'signature' | 'compact' | 'full', received 'sigature' \
             (did you mean 'signature'?)",
        ),
        (
            json!({"detail": 1, "query": " "}),
            "Invalid parameters: detail: Expected string, received number; query cannot be empty",
        ),
        (
            json!({"details": "full"}),
            "Invalid parameters: Unrecognized key: 'details' (did you mean 'detail'?)",
        ),
    ];
    for (more, text) in rows {
        assert_eq!(open(&mut workbench, &more).error(), text);
    }
    assert!(workbench.journal("dev", "fs").pids().is_empty());
}
