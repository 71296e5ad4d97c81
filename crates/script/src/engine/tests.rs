use std::convert::Infallible;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;

const LIMITS: Limits = Limits {
    // All tests of a process share its CPU time.
    cpu_ms: 1000,
    heap_bytes: 32 * 1024 * 1024,
    stack_bytes: 512 * 1024,
    calls: 5,
    result_bytes: 1000,
    log_bytes: 50,
};

/// Runs a script whose calls are answered with their arguments, or fail if the tool is `fail`. Returns its end and what
/// it sent.
fn run(code: &str) -> (End, Vec<Value>) {
    let mut sent = Vec::new();
    let engine = Engine::new().unwrap();
    let end = engine.run(code, &LIMITS, |settle| {
        for message in engine.take_outgoing() {
            sent.push(serde_json::to_value(&message).unwrap());
            let FromWorker::Call(Request {
                id,
                called,
                arguments,
                ..
            }) = message
            else {
                continue;
            };
            match called {
                Called::Tool { tool, .. } if tool == "fail" => settle(Answer::Failed {
                    id,
                    failure: &Failure {
                        code: "gone".into(),
                        outcome: Some("unknown".into()),
                        message: "it is gone".into(),
                    },
                }),
                _ => settle(Answer::Value {
                    id,
                    json: arguments.get(),
                }),
            }
        }
        Ok::<(), Infallible>(())
    });
    let rest = engine.take_outgoing();
    sent.extend(rest.iter().map(|it| serde_json::to_value(it).unwrap()));
    (end.unwrap(), sent)
}

fn end(code: &str) -> Value {
    serde_json::to_value(run(code).0).unwrap()
}

#[test]
fn a_script_is_a_body_or_a_function() {
    let cases = [
        ("return 1 + 1", json!(2)),
        (
            "const a = await tools.x.y({a: 1}); return a",
            json!({"a": 1}),
        ),
        (
            "async () => { return await tools.x.y({b: 2}) }",
            json!({"b": 2}),
        ),
        ("async () => 3;", json!(3)),
        // What is an expression runs once, also if it fails.
        (
            "(globalThis.n = (globalThis.n ?? 0) + 1, async () => n)",
            json!(1),
        ),
        ("(function () { return 4 })", json!(4)),
        ("function f() { return 5 }\nreturn f()", json!(5)),
        ("(await tools.x.y({})); return 6", json!(6)),
        (
            "async function g() { return 7 }\nreturn await g()",
            json!(7),
        ),
        (
            "return await Promise.all([1, 2].map(n => tools.x.y({n})))",
            json!([{"n": 1}, {"n": 2}]),
        ),
        (
            "try { await tools.x.fail() } catch (e) { return [e instanceof ToolError, e.tool, e.code, e.outcome, e.message] }",
            json!([true, "tools.x.fail", "gone", "unknown", "it is gone"]),
        ),
        (
            "try { await tools['my-server']['do.it']({}); await tools['a b'].fail() } catch (e) { return e.tool }",
            json!("tools[\"a b\"].fail"),
        ),
        (
            "return [typeof fetch, typeof process, typeof require, typeof setTimeout, typeof ArrayBuffer, typeof Uint8Array, typeof SharedArrayBuffer, typeof WebAssembly, typeof performance]",
            json!([
                "undefined",
                "undefined",
                "undefined",
                "undefined",
                "undefined",
                "undefined",
                "undefined",
                "undefined",
                "undefined"
            ]),
        ),
        (
            "return JSON.stringify({t: tools.x}) + (await tools.x === undefined)",
            json!("{\"t\":{}}false"),
        ),
    ];
    for (code, value) in cases {
        assert_eq!(end(code), json!({"value": value}), "{code}");
    }
}

#[test]
fn an_end_has_its_kind_and_place() {
    let thrown = |name: &str, message: &str, line: u32, column: u32| json!({"thrown": {"name": name, "message": message, "at": {"line": line, "column": column}, "tool": null, "code": null}});
    let cases = [
        (
            "null.x",
            thrown("TypeError", "cannot read property 'x' of null", 1, 1),
        ),
        (
            "const a = 1;\n\n  a.b.c()",
            thrown("TypeError", "cannot read property 'c' of undefined", 3, 3),
        ),
        ("throw new Error('no')", thrown("Error", "no", 1, 11)),
        (
            "throw 'text'",
            json!({"thrown": {"name": "Error", "message": "text", "at": null, "tool": null, "code": null}}),
        ),
        ("1", json!("undefined")),
        (
            "return [(await tools.x.y({a: '😀'.slice(1)})).a, '\\ud83d', '\\\\ud83d😀']",
            json!({"value": ["\u{fffd}", "\u{fffd}", "\\ud83d😀"]}),
        ),
        (
            "const a = {}; a.a = a; return a",
            json!({"not_json": "circular reference"}),
        ),
        ("return 1n", json!({"not_json": "BigInt"})),
        ("return {a: 1n}", json!({"not_json": "BigInt"})),
        (
            "return () => 1",
            json!({"not_json": "a function or a symbol"}),
        ),
        ("return 'x'.repeat(2000)", json!({"too_large": 2002})),
        ("await new Promise(() => {})", json!("deadlock")),
        (
            "const e = new Error('é'.repeat(1e5)); e.name = e.tool = e.message; throw e",
            json!({"thrown": {
                "name": "é".repeat(4096), "message": "é".repeat(4096), "at": {"line": 1, "column": 25},
                "tool": "é".repeat(4096), "code": null,
            }}),
        ),
        (
            "try { await tools.x['y'.repeat(1e6)]({}) } catch (e) { return [e.code, e.outcome, e.message] }",
            json!({"value": ["tool_unknown", "not_sent", "no tool has a name of this length"]}),
        ),
        (
            "throw '😀\\\\ud83d\"'.slice(0, 9).slice(1)",
            json!({"thrown": {"name": "Error", "message": "\u{fffd}\\ud83d\"", "at": null, "tool": null, "code": null}}),
        ),
        ("for (;;) {}", json!({"cpu_limit": {"at": null}})),
        (
            "try { for (;;) {} } catch { return 1 } finally { return 2 }",
            json!({"cpu_limit": {"at": null}}),
        ),
        (
            "return {get a() { for (;;) {} }}",
            json!({"cpu_limit": {"at": null}}),
        ),
    ];
    for (code, expected) in cases {
        let mut end = end(code);
        if let Some(at) = end.pointer_mut("/cpu_limit/at") {
            *at = Value::Null;
        }
        assert_eq!(end, expected, "{code}");
    }
    let failed = end("const a = 1;\nawait tools.x.fail({})");
    let at = json!({"line": 2, "column": 15});
    assert_eq!(
        failed,
        json!({"thrown": {"name": "ToolError", "message": "it is gone", "at": at, "tool": "tools.x.fail", "code": "gone"}})
    );
    assert_eq!(end("const a = ;")["thrown"]["name"], "SyntaxError");
}

#[test]
fn a_place_is_the_same_on_every_line() {
    let scripts = [
        ("null.x", 1),
        ("await tools.x.fail({})", 15),
        ("const ä = 'é'; await tools.x.fail({})", 30),
        ("\tthrow new Error('no')", 12),
        ("const a = ;", 11),
        ("async () => { null.x }", 15),
        ("(() => { null.x })", 10),
    ];
    for (code, column) in scripts {
        for line in 1..=3_u32 {
            let code = format!("{}{code}", "\n".repeat(line as usize - 1));
            let place = &end(&code)["thrown"]["at"];
            assert_eq!(*place, json!({"line": line, "column": column}), "{code}");
        }
    }
}

#[test]
fn a_script_that_throws_is_not_run_again() {
    for code in [
        "(tools.x.y({}), JSON.parse('{'))",
        "function f() { tools.x.y({}); JSON.parse('{') }",
        "(() => { tools.x.y({}); throw new SyntaxError('not JavaScript') })",
        "tools.x.y({}); JSON.parse('{')",
    ] {
        let (end, sent) = run(code);
        let end = serde_json::to_value(end).unwrap();
        assert!(
            end["thrown"]["name"] == "SyntaxError" || end == "undefined",
            "{code}: {end}"
        );
        assert!(sent.len() <= 1, "{code}: {sent:?}");
    }
}

#[cfg(feature = "typescript")]
#[test]
fn types_are_removed_and_places_kept() {
    let cases = [
        ("const a: number = 1; return a as any", json!({"value": 1})),
        (
            "async (x?: string): Promise<number> => { interface A { b: 1 }\n return (await tools.x.y({n: 2} as A))!.n }",
            json!({"value": 2}),
        ),
        (
            "const ä: Map<string, number> = new Map(); return ä.size",
            json!({"value": 0}),
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(end(code), expected, "{code}");
    }
    let places = [
        (
            "const é: 'ä' = 'ä'; null.x",
            "cannot read property 'x' of null",
            1,
            21,
        ),
        (
            "const a: number = 1;\nconst a = 2;",
            "invalid redefinition of lexical identifier",
            2,
            9,
        ),
        (
            "const a: X = 1;\n  enum E { A }",
            "TypeScript enums are not supported: use an object",
            2,
            3,
        ),
    ];
    for (code, message, line, column) in places {
        let end = end(code);
        let thrown = &end["thrown"];
        assert_eq!(thrown["message"], message, "{code}");
        assert_eq!(
            thrown["at"],
            json!({"line": line, "column": column}),
            "{code}"
        );
    }
    // Not TypeScript either: the error is the one of the engine.
    assert_eq!(
        end("const a = ;")["thrown"]["at"],
        json!({"line": 1, "column": 11})
    );
}

#[test]
fn a_call_carries_its_place_and_its_arguments() {
    let (_, sent) = run(
        "console.log('a', {b: 1});\nawait tools.s.t({a: [1, null]}); await tools.search('x', {limit: 2});",
    );
    assert_eq!(
        sent,
        [
            json!({"log": "a {\"b\":1}"}),
            json!({"call": {"id": 1, "called": {"tool": {"server": "s", "tool": "t"}}, "arguments": {"a": [1, null]}, "at": {"line": 2, "column": 15}}}),
            json!({"call": {"id": 2, "called": "search", "arguments": {"query": "x", "limit": 2}, "at": {"line": 2, "column": 46}}}),
        ]
    );
}

#[test]
fn calls_and_output_are_bounded() {
    let code = "let n = 0; for (let i = 0; i < 9; i++) { try { await tools.x.y({}); n++ } catch (e) { return [n, e.code, e.message] } }";
    assert_eq!(
        end(code),
        json!({"value": [5, "call_limit", "Tool call limit 5 reached"]})
    );
    let (_, sent) =
        run("console.log('x'.repeat(40)); console.log('é'.repeat(40)); console.log('z')");
    assert_eq!(
        run("console.log('a😀'.slice(0, 2)); await tools.x['\\ud83d']({})").1[0],
        json!({"log": "a\u{fffd}"}),
        "half of a pair"
    );
    assert_eq!(
        sent,
        [
            json!({"log": "x".repeat(40)}),
            json!({"log": "éééé"}),
            json!({"log": "(further output is left out)"})
        ]
    );
}

#[test]
fn a_script_that_changes_built_in_objects_changes_no_call() {
    let tampering = [
        "JSON.parse = () => 'tampered'; JSON.stringify = () => '\"tampered\"';",
        "Array.prototype.map = Array.prototype.push = () => 'tampered';",
        "Promise.prototype.then = Promise.prototype.catch = function () { throw new Error('tampered') };",
        "globalThis.Promise = globalThis.Error = class { constructor() { throw 1 } };",
        "Object.defineProperty = Object.create = () => { throw 1 };",
        "Function.prototype.call = Function.prototype.apply = () => 'tampered';",
        "RegExp.prototype.test = RegExp.prototype.exec = () => { throw 1 };",
        "Object.prototype.get = () => 'tampered'; Object.prototype.then = undefined;",
        "Map.prototype.get = Map.prototype.set = () => { throw 1 };",
        "try { tools = 1 } catch {} try { tools.x = 1 } catch {} try { delete tools.x } catch {}",
        "try { globalThis.tools = {} } catch {} try { Object.defineProperty(globalThis, 'tools', {value: 1}) } catch {}",
    ];
    for code in tampering {
        let (end, sent) = run(&format!("{code}\nreturn await tools.x.y({{a: [1, 'b']}})"));
        let end = serde_json::to_value(end).unwrap();
        assert_eq!(end, json!({"value": {"a": [1, "b"]}}), "{code}");
        assert_eq!(
            sent[0]["call"]["arguments"],
            json!({"a": [1, "b"]}),
            "{code}"
        );
    }
}

#[test]
fn two_engines_share_nothing() {
    assert_eq!(
        end("globalThis.a = 1; Object.prototype.b = 2; return 1"),
        json!({"value": 1})
    );
    assert_eq!(
        end("return [typeof a, typeof ({}).b]"),
        json!({"value": ["undefined", "undefined"]})
    );
}

#[test]
fn names_are_written_as_a_script_writes_them() {
    let cases = [
        ("github", "list_issues", "tools.github.list_issues"),
        ("my-server", "do.it", r#"tools["my-server"]["do.it"]"#),
        ("", "9a", r#"tools[""]["9a"]"#),
    ];
    for (server, tool, name) in cases {
        assert_eq!(tool_name(server, tool), name);
    }
}
