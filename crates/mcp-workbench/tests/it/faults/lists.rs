//! F24 to F28, T11: lists that change, loop, break off, or hold what cannot be offered.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{After, Bench, Row, faults, table::timed};
use crate::harness::{Script, Setup, TIMEOUT, poll};

faults![
    list_changes_all_the_time,
    cursor_loop,
    endless_pages,
    empty_cursor,
    error_on_the_second_page,
    error_at_a_change,
    many_tools,
    duplicate_names,
    broken_definitions,
    large_definition,
];

const SOON: Duration = Duration::from_secs(4);

fn definition(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// The names of the tools of the faulty server in an opened toolbox.
fn names(opened: &Value) -> Vec<String> {
    let tools = opened["tools"].as_array().expect("a list of tools");
    let own = tools.iter().filter(|tool| tool["server"] == "fs");
    own.map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

/// A server that answers `tools/list` in this way.
fn lists(setup: Setup, actions: &Value) -> Setup {
    let script = Script::new().on_method("tools/list", &actions.to_string());
    setup.server("fs", &script)
}

/// Scripts a second request that differs from the first.
fn first_and_later(setup: &Setup, first: &Value, later: &Value) -> Value {
    json!([{"once": {"file": setup.path("listed"), "actions": [first], "otherwise": [later]}}])
}

/// Opens the toolbox; exactly these tools are there, and a notice says that there may be more.
fn cut_short(bench: &mut Bench, expected: &[&str]) -> Duration {
    timed(|| {
        let opened = bench.open();
        assert_eq!(names(&opened), expected);
        let notices = opened["notices"].as_array().expect("notices");
        assert_eq!(notices.len(), 1, "{notices:?}");
    })
}

fn list_changes_all_the_time() -> Row {
    Row {
        number: "F24",
        fault: "says list_changed a hundred times a second for two seconds",
        outcome: "at most ten requests for the list; the last list is the one that is shown",
        bound: Duration::from_secs(12),
        faulty: |setup| {
            let changed = json!({"notify": {"method": "notifications/tools/list_changed"}});
            let storm = json!({"times": 200, "actions": [changed, {"sleepMs": 10}]});
            let tools = ["t", "pid", "new"].map(definition);
            let answer = json!({"answer": {"content": []}});
            let actions = json!([{"repeat": storm}, {"setTools": tools}, changed, answer]);
            let script = Script::named(&["t", "pid"]).on_call("t", &actions.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            bench.open();
            bench.succeeds("t");
            let took = timed(|| {
                let seen = poll(TIMEOUT, || {
                    (names(&bench.open()) == ["t", "pid", "new"]).then_some(())
                });
                assert!(seen.is_some(), "the last list never came");
            });
            let requests = bench.journal().received("tools/list").len();
            assert!(requests <= 10, "{requests} requests");
            assert_eq!(bench.starts(), 1);
            took
        },
        after: After::Recovers,
    }
}

fn cursor_loop() -> Row {
    Row {
        number: "F25a",
        fault: "gives the same cursor again and again",
        outcome: "what came counts; a notice says that the list was cut short",
        bound: SOON,
        faulty: |setup| {
            let page = json!({"tools": [definition("pid")], "nextCursor": "again"});
            lists(setup, &json!([{"answer": page}]))
        },
        act: |bench| {
            let took = cut_short(bench, &["pid"]);
            let requests = bench.journal().received("tools/list").len();
            assert!(requests <= 3, "{requests} requests");
            took
        },
        after: After::Recovers,
    }
}

fn endless_pages() -> Row {
    Row {
        number: "F25b",
        fault: "always has another page with another tool",
        outcome: "a hundred pages count; a notice says that the list was cut short",
        bound: Duration::from_secs(8),
        faulty: |setup| {
            let page = r#"{"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"pid$ID","inputSchema":{"type":"object"}}],"nextCursor":"c$ID"}}"#;
            lists(setup, &json!([{"line": page}]))
        },
        act: |bench| {
            let mut found = 0;
            let took = timed(|| {
                let opened = bench.open();
                found = names(&opened).len();
                assert_eq!(opened["notices"].as_array().map(Vec::len), Some(1));
            });
            assert_eq!(found, 100);
            assert_eq!(bench.journal().received("tools/list").len(), 100);
            took
        },
        after: After::Either,
    }
}

fn empty_cursor() -> Row {
    Row {
        number: "F25c",
        fault: "gives the empty text as the cursor of its second page",
        outcome: "it is a cursor: the second page is read",
        bound: SOON,
        faulty: |setup| {
            let first = json!({"answer": {"tools": [definition("a")], "nextCursor": ""}});
            let later = json!({"answer": {"tools": [definition("pid")]}});
            let actions = first_and_later(&setup, &first, &later);
            lists(setup, &actions)
        },
        act: |bench| {
            let took = timed(|| assert_eq!(names(&bench.open()), ["a", "pid"]));
            let requests = bench.journal().received("tools/list");
            assert_eq!(requests.len(), 2);
            assert_eq!(requests[1].params()["cursor"], "");
            took
        },
        after: After::Recovers,
    }
}

fn error_on_the_second_page() -> Row {
    Row {
        number: "F25d",
        fault: "answers with an error to the request for its second page",
        outcome: "the first page counts; a notice says that the list was cut short",
        bound: SOON,
        faulty: |setup| {
            let first = json!({"answer": {"tools": [definition("pid")], "nextCursor": "2"}});
            let later = json!({"error": {"code": -32603, "message": "no more"}});
            let actions = first_and_later(&setup, &first, &later);
            lists(setup, &actions)
        },
        act: |bench| cut_short(bench, &["pid"]),
        after: After::Recovers,
    }
}

fn error_at_a_change() -> Row {
    Row {
        number: "F25e",
        fault: "says list_changed and answers the request for the list with an error",
        outcome: "the last good list is shown; calls are tools_unlisted, not_sent",
        bound: SOON,
        faulty: |setup| {
            let tools = ["t", "pid"].map(definition);
            let first = json!({"answer": {"tools": tools}});
            let later = json!({"error": {"code": -32603, "message": "not now"}});
            let actions = first_and_later(&setup, &first, &later);
            let changed = json!({"notify": {"method": "notifications/tools/list_changed"}});
            let call = json!([changed, {"answer": {"content": []}}]);
            let script = Script::new()
                .on_method("tools/list", &actions.to_string())
                .on_call("t", &call.to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            bench.open();
            bench.succeeds("t");
            timed(|| {
                assert_eq!(names(&bench.open()), ["t", "pid"]);
                let refused = bench.call("pid");
                assert_eq!(refused.failure()["code"], "tools_unlisted");
                assert_eq!(refused.failure()["outcome"], "not_sent");
            })
        },
        after: After::Either,
    }
}

fn many_tools() -> Row {
    Row {
        number: "F26",
        fault: "lists 5,000 tools",
        outcome: "all are listed, and the last can be called",
        bound: Duration::from_secs(10),
        faulty: |setup| {
            let mut tools: Vec<Value> = (1..5000)
                .map(|n| {
                    let about = format!("Does thing number {n} and nothing else at all");
                    json!({"name": format!("tool_{n}"), "description": about, "inputSchema": {"type": "object"}})
                })
                .collect();
            tools.push(definition("pid"));
            let script = Script::new().tools(&Value::from(tools).to_string());
            setup.server("fs", &script)
        },
        act: |bench| {
            let base = bench.memory();
            let took = timed(|| assert_eq!(names(&bench.open()).len(), 5000));
            bench.flat_since(base);
            took
        },
        after: After::Recovers,
    }
}

/// Opens the toolbox, in which exactly these are withheld, each with a reason. What is expected for a
/// tool without a name does not matter.
fn withholds(bench: &mut Bench, offered: &[&str], withheld: &[Option<&str>]) -> Duration {
    timed(|| {
        let opened = bench.open();
        assert_eq!(names(&opened), offered);
        let entries = opened["withheld"].as_array().expect("a list").iter();
        let found: Vec<&str> = entries
            .map(|entry| {
                assert_eq!(entry["server"], "fs", "{entry}");
                let reason = entry["reason"].as_str();
                assert!(reason.is_some_and(|it| !it.is_empty()), "{entry}");
                entry["tool"].as_str().expect("a name")
            })
            .collect();
        assert_eq!(found.len(), withheld.len(), "{found:?}");
        for (found, expected) in found.iter().zip(withheld) {
            assert!(expected.is_none_or(|name| name == *found), "{found}");
        }
    })
}

fn duplicate_names() -> Row {
    Row {
        number: "F27",
        fault: "lists one name three times",
        outcome: "the first is kept, the others are withheld with a reason",
        bound: SOON,
        faulty: |setup| {
            let twice = |n| json!({"name": "pid", "inputSchema": {"type": "object", "n": n}});
            let tools = json!([twice(1), definition("a"), twice(2), twice(3)]);
            setup.server("fs", &Script::new().tools(&tools.to_string()))
        },
        act: |bench| withholds(bench, &["pid", "a"], &[Some("pid"), Some("pid")]),
        after: After::Recovers,
    }
}

fn broken_definitions() -> Row {
    Row {
        number: "F28",
        fault: "lists definitions that are broken in eight ways, and two that are not",
        outcome: "only the broken ones are withheld, each with a reason",
        bound: SOON,
        faulty: |setup| {
            let tools = r#"[{"name":"a","inputSchema":{"type":"object"}},5,null,{"inputSchema":{"type":"object"}},{"name":7,"inputSchema":{}},{"name":"","inputSchema":{}},{"name":"none"},{"name":"text","inputSchema":"{}"},{"name":"twice","name":"twice","inputSchema":{}},{"name":"pid","inputSchema":{"type":"object"}}]"#;
            setup.server("fs", &Script::new().tools(tools))
        },
        act: |bench| {
            let nameless = [None; 5].into_iter();
            let withheld = nameless.chain(["none", "text", "twice"].map(Some));
            withholds(bench, &["a", "pid"], &withheld.collect::<Vec<_>>())
        },
        after: After::Recovers,
    }
}

fn large_definition() -> Row {
    Row {
        number: "T11",
        fault: "lists a definition of 300 kB between two of the usual size",
        outcome: "only that one is withheld, with a reason",
        bound: SOON,
        faulty: |setup| {
            let large = json!({"name": "large", "description": "x".repeat(300_000), "inputSchema": {"type": "object"}});
            let tools = json!([definition("a"), large, definition("pid")]);
            setup.server("fs", &Script::new().tools(&tools.to_string()))
        },
        act: |bench| withholds(bench, &["a", "pid"], &[Some("large")]),
        after: After::Recovers,
    }
}
