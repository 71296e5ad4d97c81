//! Entries of `mcpServers`.

use pretty_assertions::assert_eq;

use super::{entry_errors, errors, warnings, with_server};

#[test]
fn unknown_keys_of_a_server_are_warnings() {
    let entry =
        r#"{"command": "x", "comand": 1, "arg": [], "tool_filters": [], "zzz": {}, "_n": 1}"#;
    let expected = [
        "comand: unknown key `comand` (did you mean `command`?)",
        "arg: unknown key `arg` (did you mean `args`?)",
        "tool_filters: unknown key `tool_filters` (did you mean `toolFilters`?)",
        "zzz: unknown key `zzz` (it is ignored; remove it, or begin it with `_`)",
    ];
    let warnings = warnings(&with_server(entry));
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(warning.ends_with(expected), "{warning}");
    }
}

#[test]
fn keys_of_popular_clients_are_accepted_without_warnings() {
    let entries = [
        r#"{"type": "stdio", "command": "x", "alwaysAllow": ["a"], "autoApprove": [], "timeout": 60, "disabled": false}"#,
        r#"{"httpUrl": "https://x/mcp", "headers": {"A": "b"}, "timeout": 600000, "trust": true, "oauth": {"enabled": true}}"#,
        r#"{"serverUrl": "https://x/mcp", "disabledTools": ["a"]}"#,
        r#"{"type": "local", "command": ["x", "-y"], "environment": {"A": "b"}, "enabled": true}"#,
        r#"{"type": "remote", "url": "https://x/mcp", "enabled": true}"#,
        r#"{"type": "streamableHttp", "url": "https://x/mcp"}"#,
        r#"{"type": "http", "url": "https://x", "alwaysLoad": true, "tools": ["*"], "deferTools": "never"}"#,
        r#"{"source": "custom", "command": "x", "args": [], "env": null, "settings": {}}"#,
        r#"{"command": "x", "startup_timeout_sec": 10, "env_vars": ["A"], "name": "n", "description": "d"}"#,
        r#"{"command": "x", "envFile": ".env", "dev": {"watch": "**"}, "gallery": true, "cwd": "/"}"#,
    ];
    for entry in entries {
        assert_eq!(entry_errors(entry), Vec::<String>::new(), "{entry}");
        assert_eq!(
            warnings(&with_server(entry)),
            Vec::<String>::new(),
            "{entry}"
        );
    }
}

#[test]
fn two_spellings_of_one_key_are_warned_about() {
    let entry = r#"{"url": "https://x/sse", "httpUrl": "https://x/mcp"}"#;
    let warnings = warnings(&with_server(entry));
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].ends_with(
            "s.url: `url` is ignored because `httpUrl` has the same meaning (remove `url`)"
        ),
        "{warnings:?}"
    );
}

/// Checks entries of which each has one error.
fn check_errors(cases: &[(&str, &str)]) {
    for (entry, expected) in cases {
        assert_eq!(entry_errors(entry), [*expected], "{entry}");
    }
}

#[test]
fn commands_and_arguments_of_the_wrong_kind_are_refused() {
    check_errors(&[
        (
            r#""x""#,
            "s: expected an object, found a string (write an object here)",
        ),
        (
            r#"{"command": 7}"#,
            "s.command: expected a string, found `7` (quote it: \"7\")",
        ),
        (
            r#"{"command": " "}"#,
            "s.command: the command is empty (write a command here)",
        ),
        (
            r#"{"command": []}"#,
            "s.command: the command is empty (write a command here)",
        ),
        (
            r#"{"command": ["x", 1]}"#,
            "s.command[1]: expected a string, found `1` (quote it: \"1\")",
        ),
        (
            r#"{"command": "x", "args": "a"}"#,
            "s.args: expected an array of strings, found a string (write an array of strings here)",
        ),
        (
            r#"{"command": "x", "args": ["a", 5]}"#,
            "s.args[1]: expected a string, found `5` (quote it: \"5\")",
        ),
        (
            r#"{"command": "x", "args": [null]}"#,
            "s.args[0]: expected a string, found null (write a string here)",
        ),
        (
            r#"{"command": "x\u0000"}"#,
            "s.command: the text contains a NUL character, which cannot be passed to a program (remove `\\u0000`)",
        ),
    ]);
}

#[test]
fn variables_of_the_wrong_kind_are_refused() {
    check_errors(&[
        (
            r#"{"command": "x", "env": []}"#,
            "s.env: expected an object, found an array (write an object here)",
        ),
        (
            r#"{"command": "x", "env": {"PORT": 8080}}"#,
            "s.env.PORT: expected a string, found `8080` (quote it: \"8080\")",
        ),
        (
            r#"{"command": "x", "env": {"ON": true}}"#,
            "s.env.ON: expected a string, found `true` (quote it: \"true\")",
        ),
        (
            r#"{"command": "x", "env": {"A": null}}"#,
            "s.env.A: expected a string, found null (write a string here)",
        ),
        (
            r#"{"command": "x", "env": {"": "1"}}"#,
            "s.env[\"\"]: the name of a variable is empty (give the variable a name)",
        ),
        (
            r#"{"command": "x", "env": {"A=B": "1"}}"#,
            "s.env.A=B: `A=B` is not a valid variable name (use letters, digits and `_`)",
        ),
    ]);
}

#[test]
fn other_values_of_the_wrong_kind_are_refused() {
    check_errors(&[
        (
            r#"{"command": "x", "cwd": ""}"#,
            "s.cwd: the directory is empty (write a directory here)",
        ),
        (
            r#"{"command": "x", "inheritEnv": "yes"}"#,
            "s.inheritEnv: expected a boolean or an array of names, found a string (write a boolean or an array of names here)",
        ),
        (
            r#"{"command": "x", "disabled": "true"}"#,
            "s.disabled: expected a boolean, found a string (write a boolean here)",
        ),
        (
            r#"{"command": "x", "toolFilters": "*"}"#,
            "s.toolFilters: expected an array of strings, found a string (write an array of strings here)",
        ),
        (
            r#"{"command": "x", "toolFilters": ["!"]}"#,
            "s.toolFilters[0]: the filter is empty (write a filter here)",
        ),
        (
            r#"{"command": "x", "includeTools": [""]}"#,
            "s.includeTools[0]: the tool name is empty (write a tool name here)",
        ),
        (
            r#"{"url": "https://x", "headers": {"A B": "1"}}"#,
            "s.headers[\"A B\"]: `A B` is not a valid header name (use letters, digits and `-`)",
        ),
        (
            r#"{"url": "https://x", "headers": {"A": "1\n2"}}"#,
            "s.headers.A: the value of a header contains a line break (write the value on one line)",
        ),
        (
            r#"{"command": "x", "era": "modrn"}"#,
            "s.era: unknown value `modrn` (did you mean `modern`?)",
        ),
        (
            r#"{"command": "x", "pin": "enforced"}"#,
            "s.pin: unknown value `enforced` (did you mean `enforce`?)",
        ),
        (
            r#"{"url": "https://x", "era": "2026"}"#,
            "s.era: unknown value `2026` (use `auto`, `legacy` or `modern`)",
        ),
        (
            r#"{"url": "x.example/mcp"}"#,
            "s.url: `x.example/mcp` is not an http or https URL (begin it with `https://` or `http://`)",
        ),
    ]);
}

#[test]
fn times_are_positive_integers() {
    for key in [
        "connectTimeoutMs",
        "callTimeoutMs",
        "maxCallMs",
        "idleTimeoutMs",
    ] {
        for bad in [
            "0",
            "-1",
            "1.5",
            "1e3",
            "\"1000\"",
            "true",
            "31536000001",
            "99999999999999999999",
        ] {
            let entry = format!(r#"{{"command": "x", "{key}": {bad}}}"#);
            assert_eq!(entry_errors(&entry).len(), 1, "{entry}");
        }
        for good in ["1", "31536000000"] {
            let entry = format!(r#"{{"command": "x", "{key}": {good}}}"#);
            assert_eq!(entry_errors(&entry), Vec::<String>::new(), "{entry}");
        }
    }
}

#[test]
fn budgets_of_results_are_zero_or_large_enough() {
    let cases = [
        (r#""maxResultChars": 0"#, None),
        (r#""maxResultChars": 100"#, None),
        (r#""maxResultChars": null"#, None),
        (
            r#""maxResultChars": 99"#,
            Some(
                "maxResultChars: `99` is not between 100 and 100000000 (use a number from 100 to 100000000)",
            ),
        ),
        (
            r#""maxResultChars": "many""#,
            Some(
                "maxResultChars: expected a positive integer, found a string (write a positive integer here)",
            ),
        ),
    ];
    for (setting, expected) in cases {
        let found = errors(&format!(r#"{{"toolboxes": {{}}, {setting}}}"#));
        let found = found
            .first()
            .map(|line| line.split_once(' ').expect("a place").1);
        assert_eq!(found, expected, "{setting}");
    }
}

#[test]
fn bounds_of_tool_lists_are_within_their_ranges() {
    let cases = [
        (r#""maxTools": 1"#, None),
        (r#""maxTools": 100000"#, None),
        (
            r#""maxTools": 0"#,
            Some(
                "maxTools: expected a positive integer, found `0` (write a whole number of 1 or more, without quotes)",
            ),
        ),
        (
            r#""maxTools": 100001"#,
            Some("maxTools: `100001` is not between 1 and 100000 (use a number from 1 to 100000)"),
        ),
        (r#""maxToolListBytes": 1024"#, None),
        (
            r#""maxToolListBytes": 1023"#,
            Some(
                "maxToolListBytes: `1023` is not between 1024 and 1073741824 (use a number from 1024 to 1073741824)",
            ),
        ),
        (
            r#""maxToolListBytes": "1 MiB""#,
            Some(
                "maxToolListBytes: expected a positive integer, found a string (write a positive integer here)",
            ),
        ),
    ];
    for (setting, expected) in cases {
        let found = errors(&format!(
            r#"{{"toolboxes": {{"y": {{"description": "d", "mcpServers": {{"x": {{"command": "c", {setting}}}}}}}}}}}"#
        ));
        let found = found
            .first()
            .map(|line| line.split_once("mcpServers.x.").expect("a place").1);
        assert_eq!(found, expected, "{setting}");
    }
}
