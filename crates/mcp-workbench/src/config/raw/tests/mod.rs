//! The input that the reader accepts, and the problems that it reports for other input.

mod entries;

use std::path::Path;

use pretty_assertions::assert_eq;

use super::keys;
use crate::config::{Environment, JSON_SCHEMA, Loaded, Problem, Problems, parse};

fn read(text: &str) -> Result<Loaded, Problems> {
    let environment = Environment::new([], "/start".into(), None);
    parse(text, Path::new("c.json"), &environment)
}

/// Returns the errors of a file, one line each: `LINE:COLUMN PATH: fault (remedy)`.
fn errors(text: &str) -> Vec<String> {
    match read(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(shown).collect(),
    }
}

/// Returns the warnings of a file, in the same form.
fn warnings(text: &str) -> Vec<String> {
    let loaded = read(text).expect("the file is valid");
    loaded.warnings.iter().map(shown).collect()
}

fn shown(problem: &Problem) -> String {
    let place = &problem.place;
    let (path, fault, remedy) = (&place.path, &problem.fault, problem.remedy());
    format!("{}:{} {path}: {fault} ({remedy})", place.line, place.column)
}

/// Returns a file whose only server has this entry.
fn with_server(entry: &str) -> String {
    format!(r#"{{"toolboxes": {{"t": {{"description": "d", "mcpServers": {{"s": {entry}}}}}}}}}"#)
}

/// Returns the errors of a server entry, without their places in the file.
fn entry_errors(entry: &str) -> Vec<String> {
    let shorten = |line: String| line.split_once(' ').expect("a place").1.to_owned();
    let errors = errors(&with_server(entry)).into_iter().map(shorten);
    errors
        .map(|line| line.replace("toolboxes.t.mcpServers.s", "s"))
        .collect()
}

#[test]
fn comments_trailing_commas_and_a_bom_are_accepted() {
    let text = "\u{feff}// a comment\n{/* one */\"toolboxes\": {\"t\": {\"description\": \"d\", \
                \"mcpServers\": {\"s\": {\"command\": \"x\", \"args\": [\"a\", ], }, }, }, }, }\n// end";
    assert_eq!(errors(text), Vec::<String>::new());
}

#[test]
fn empty_maps_are_accepted() {
    assert_eq!(errors(r#"{"toolboxes": {}}"#), Vec::<String>::new());
    let empty_toolbox = r#"{"toolboxes": {"t": {"description": "d", "mcpServers": {}}}}"#;
    assert_eq!(errors(empty_toolbox), Vec::<String>::new());
}

#[test]
fn invalid_json_is_refused_with_its_location() {
    let cases = [
        (
            "",
            "1:1 : not valid JSON: the file is empty (the smallest configuration is `{\"toolboxes\": {}}`)",
        ),
        (
            "{\n  \"toolboxes\": {}\n  \"toolMode\": \"proxy\"\n}",
            "2:18 : not valid JSON: expected comma (put a comma here)",
        ),
        (
            "{'toolboxes': {}}",
            "1:2 : not valid JSON: single-quoted strings are not allowed (use double quotes)",
        ),
        (
            "{toolboxes: {}}",
            "1:2 : not valid JSON: expected string for object property (use double quotes)",
        ),
        (
            "{\"toolboxes\": {}",
            "1:1 : not valid JSON: unterminated object (close this `{` with a `}`)",
        ),
        (
            "{\"toolboxes\" {}}",
            "1:14 : not valid JSON: expected colon after the string or word in object property (put a colon between the key and its value)",
        ),
        (
            "{} {}",
            "1:4 : not valid JSON: text cannot contain more than one JSON value (remove everything after the last `}`)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(errors(text), [expected], "{text}");
    }
    for text in [
        "{\"a\": 0x1}",
        "{\"a\": +1}",
        "{\"a\": .5}",
        "{\"a\": NaN}",
        "{\"a\": \"\\x41\"}",
    ] {
        assert!(errors(text)[0].contains("not valid JSON"), "{text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["[", "{\"a\":"] {
        let errors = errors(&open.repeat(100_000));
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("not valid JSON"), "{errors:?}");
    }
}

#[test]
fn required_keys() {
    assert_eq!(
        errors("{}"),
        ["1:1 : `toolboxes` is missing (add `\"toolboxes\": {}`)"]
    );
    assert_eq!(
        errors("{\"toolboxes\": {\n  \"t\": {}}}"),
        ["2:8 toolboxes.t: `mcpServers` is missing (add `\"mcpServers\": {}`)",]
    );
}

#[test]
fn a_missing_description_is_a_warning() {
    let text = "{\"toolboxes\": {\n  \"t\": {\"mcpServers\": {}}}}";
    assert_eq!(errors(text), [""; 0]);
    assert_eq!(
        warnings(text),
        [
            "2:8 toolboxes.t: `description` is missing (add `\"description\": \"…\"`, which tells the model what the toolbox is for)",
        ]
    );
}

#[test]
fn descriptions_and_names_are_not_empty() {
    let text =
        r#"{"toolboxes": {" ": {"description": " ", "mcpServers": {"": {"command": "x"}}}}}"#;
    assert_eq!(
        errors(text),
        [
            "1:16 toolboxes[\" \"]: the name of a toolbox is empty (give the toolbox a name)",
            "1:37 toolboxes[\" \"].description: the description is empty (write a description here)",
            "1:57 toolboxes[\" \"].mcpServers[\"\"]: the name of a server is empty (give the server a name)",
        ]
    );
}

#[test]
fn duplicate_keys_name_both_places() {
    let text = "{\n  \"toolboxes\": {},\n  \"toolboxes\": {}\n}";
    assert_eq!(
        errors(text),
        [
            "3:3 toolboxes: duplicate key `toolboxes`, first given at line 2, column 3 (remove one of the two, or rename it)"
        ]
    );
    let entries = [
        r#"{"command": "x", "command": "y"}"#,
        r#"{"command": "x", "env": {"A": "1", "A": "2"}}"#,
        r#"{"command": "x", "_a": 1, "_a": 2}"#,
    ];
    for entry in entries {
        assert!(entry_errors(entry)[0].contains("duplicate key"), "{entry}");
    }
}

#[test]
fn unknown_keys_above_the_servers_are_errors() {
    let text = r#"{"toolbxes": {}, "_note": 1, "$schema": "x", "zzz": 1, "toolboxes": {"t": {"descripton": "", "icon": 1, "_x": 1, "$schema": "", "description": "d", "mcpServers": {}}}}"#;
    assert_eq!(
        errors(text),
        [
            "1:2 toolbxes: unknown key `toolbxes` (did you mean `toolboxes`?)",
            "1:46 zzz: unknown key `zzz` (remove it, or begin it with `_` if it is a note; known keys: `toolboxes`, `clients`, `limits`, `auth`, `seal`, `replicaAddress`, `store`, `toolMode`, `nativeToolbox`, `toolNameLimit`, `roots`, `autoOpen`, `openWaitMs`, `metaTools`, `openDetail`, `connect`, `watch`, `shared`, `maxResultChars`, `select`, `sanitize`, `learnShapes`, `attributeQuestions`, `pin`, `audit` and `$schema`)",
            "1:76 toolboxes.t.descripton: unknown key `descripton` (did you mean `description`?)",
            "1:94 toolboxes.t.icon: unknown key `icon` (remove it, or begin it with `_` if it is a note; known keys: `description`, `mcpServers` and `connect`)",
        ]
    );
}

#[test]
fn a_pasted_client_configuration_gets_a_hint() {
    let errors = errors(r#"{"mcpServers": {"s": {"command": "x"}}}"#);
    assert!(
        errors
            .iter()
            .any(|line| line.contains("servers belong in a toolbox")),
        "{errors:?}"
    );
}

#[test]
fn settings_of_the_whole_file() {
    let cases = [
        (r#""toolMode": "proxy""#, None),
        (r#""toolMode": "dynamic""#, None),
        (
            r#""toolMode": "native""#,
            Some(
                ": `nativeToolbox` is missing (add `\"nativeToolbox\": \"…\"`, which names the toolbox that native mode shows)",
            ),
        ),
        (
            r#""toolMode": "native", "nativeToolbox": "x""#,
            Some("nativeToolbox: there is no toolbox `x` (use the name of a toolbox in this file)"),
        ),
        (
            r#""roots": [""]"#,
            Some("roots[0]: the folder is empty (write a folder here)"),
        ),
        (r#""roots": ["/a", "file:///b"]"#, None),
        (
            r#""toolMode": "dynamc""#,
            Some("toolMode: unknown value `dynamc` (did you mean `dynamic`?)"),
        ),
        (
            r#""toolMode": "x""#,
            Some("toolMode: unknown value `x` (use `proxy`, `dynamic` or `native`)"),
        ),
        (
            r#""toolMode": true"#,
            Some("toolMode: expected a string, found `true` (quote it: \"true\")"),
        ),
        (r#""toolNameLimit": 16"#, None),
        (r#""toolNameLimit": 128"#, None),
        (
            r#""toolNameLimit": 15"#,
            Some("toolNameLimit: `15` is not between 16 and 128 (use a number from 16 to 128)"),
        ),
        (
            r#""toolNameLimit": 129"#,
            Some("toolNameLimit: `129` is not between 16 and 128 (use a number from 16 to 128)"),
        ),
        (
            r#""toolNameLimit": 0"#,
            Some(
                "toolNameLimit: expected a positive integer, found `0` (write a whole number of 1 or more, without quotes)",
            ),
        ),
        (
            r#""toolNameLimit": "64""#,
            Some(
                "toolNameLimit: expected a positive integer, found a string (write a positive integer here)",
            ),
        ),
    ];
    for (setting, expected) in cases {
        assert_first_error(setting, expected);
    }
}

/// Checks what is said first of a setting of the whole file.
#[track_caller]
fn assert_first_error(setting: &str, expected: Option<&str>) {
    let found = errors(&format!(r#"{{"toolboxes": {{}}, {setting}}}"#));
    let found = found
        .first()
        .map(|line| line.split_once(' ').expect("a place").1);
    assert_eq!(found, expected, "{setting}");
}

#[test]
fn the_default_detail_is_one_of_the_levels() {
    let cases = [
        (r#""openDetail": "compact""#, None),
        (r#""openDetail": null"#, None),
        (
            r#""openDetail": "compct""#,
            Some("openDetail: unknown value `compct` (did you mean `compact`?)"),
        ),
        (
            r#""openDetail": "x""#,
            Some(
                "openDetail: unknown value `x` (use `names`, `brief`, `signature`, `compact` or `full`)",
            ),
        ),
    ];
    for (setting, expected) in cases {
        assert_first_error(setting, expected);
    }
}

#[test]
fn meta_tools_must_be_known_and_sufficient() {
    let cases = [
        (r#""metaTools": ["open_toolbox", "use_tool"]"#, None),
        (r#""metaTools": ["search_tools", "use_tool"]"#, None),
        (
            r#""metaTools": ["open_toolbox", "use_tool", "read_result"]"#,
            None,
        ),
        (r#""metaTools": null"#, None),
        (
            r#""metaTools": ["use_tool", "serch_tools"]"#,
            Some("metaTools[1]: unknown value `serch_tools` (did you mean `search_tools`?)"),
        ),
        (
            r#""metaTools": ["use_tool", "x", "open_toolbox"]"#,
            Some(
                "metaTools[1]: unknown value `x` (use `open_toolbox`, `use_tool`, `search_tools`, `read_result` or `run_code`)",
            ),
        ),
        (
            r#""metaTools": ["use_tool", "open_toolbox", "use_tool"]"#,
            Some("metaTools[2]: duplicate entry `use_tool` (remove one of the two)"),
        ),
        (
            r#""metaTools": ["open_toolbox", "search_tools"]"#,
            Some("metaTools: no tool can be called without `use_tool` (add `use_tool`)"),
        ),
        (
            r#""metaTools": ["use_tool"]"#,
            Some(
                "metaTools: no tool can be found without `open_toolbox` or `search_tools` (add `open_toolbox` or `search_tools`)",
            ),
        ),
        (
            r#""metaTools": []"#,
            Some("metaTools: no tool can be called without `use_tool` (add `use_tool`)"),
        ),
        (
            r#""metaTools": "use_tool""#,
            Some(
                "metaTools: expected an array of strings, found a string (write an array of strings here)",
            ),
        ),
    ];
    for (setting, expected) in cases {
        assert_first_error(setting, expected);
    }
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let text = r#"{
  "toolboxes": {
    "my.box": {
      "description": "${",
      "mcpServers": {
        "ä": {"command": "x", "args": ["→", "${1}"]},
        "b": {"env": {"A": 1}},
        "c": {"type": "http", "command": "x"}
      }
    }
  },
  "toolMode": "x"
}"#;
    let problems = read(text).expect_err("many errors").to_string();
    insta::assert_snapshot!(problems, @r#"
    c.json:4:22: toolboxes["my.box"].description: `${` is never closed
      hint: add the `}`, or write `$${` for a literal `${`
    c.json:6:45: toolboxes["my.box"].mcpServers.ä.args[1]: `${1}` does not name a variable
      hint: a name is letters, digits and `_`; write `$${` for a literal `${`
    c.json:7:14: toolboxes["my.box"].mcpServers.b: a server needs `command` or `url`
      hint: add `"command"` for a program, or `"url"` for a remote server
    c.json:7:28: toolboxes["my.box"].mcpServers.b.env.A: expected a string, found `1`
      hint: quote it: "1"
    c.json:8:23: toolboxes["my.box"].mcpServers.c.type: a server of type `http` needs `url`
      hint: add `"url"`, or correct the type
    c.json:12:15: toolMode: unknown value `x`
      hint: use `proxy`, `dynamic` or `native`
    "#);
}

#[test]
fn the_schema_and_the_reader_know_the_same_keys() {
    let schema: serde_json::Value = serde_json::from_str(JSON_SCHEMA).expect("the schema is JSON");
    let keys_at = |pointer: &str| -> Vec<&str> {
        let properties = schema.pointer(pointer).and_then(|it| it.as_object());
        let mut keys: Vec<&str> = properties
            .expect("an object with properties")
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        keys
    };
    let sorted = |keys: &[&'static str]| {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys
    };
    let server_keys: Vec<&str> = keys::SPELLINGS
        .iter()
        .map(|(_, spellings)| match spellings {
            ["httpUrl", ..] => "url",
            _ => spellings[0],
        })
        .collect();
    assert_eq!(keys_at("/properties"), sorted(keys::FILE_KEYS));
    assert_eq!(
        keys_at("/$defs/Toolbox/properties"),
        sorted(keys::TOOLBOX_KEYS)
    );
    assert_eq!(keys_at("/$defs/Server/properties"), sorted(&server_keys));
    for (name, known) in [
        ("Client", keys::CLIENT_KEYS),
        ("Limits", keys::LIMIT_KEYS),
        ("Auth", keys::AUTH_KEYS),
        ("Introspection", keys::INTROSPECTION_KEYS),
        ("Seal", keys::SEAL_KEYS),
        ("ExchangeDetails", keys::EXCHANGE_KEYS),
    ] {
        let pointer = format!("/$defs/{name}/properties");
        assert_eq!(keys_at(&pointer), sorted(known), "{name}");
    }
}
