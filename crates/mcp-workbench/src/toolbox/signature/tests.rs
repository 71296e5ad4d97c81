use bytes::Bytes;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> RawJson {
    RawJson::parse(&Bytes::from(value.to_string())).unwrap()
}

fn of(schema: &Value) -> String {
    parameters(&raw(&json!({ "name": "t", "inputSchema": schema })))
}

#[test]
fn each_schema_has_its_signature() {
    let rows = [
        (json!({}), "()"),
        (json!({"type": "object"}), "()"),
        (
            json!({"properties": {"path": {"type": "string"}, "head": {"type": "integer", "default": 10},
                "encoding": {"enum": ["utf8", "base64"]}}, "required": ["path"]}),
            r#"(path: string, head?: integer = 10, encoding?: "utf8"|"base64")"#,
        ),
        (
            json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "array"},
                "c": {"items": {"enum": [1, 2]}}, "d": {"prefixItems": [{"type": "string"}, {}]}}}),
            "(a?: string[], b?: array, c?: (1|2)[], d?: [string, any])",
        ),
        (
            json!({"properties": {"o": {"type": "object", "properties": {"x": {"type": "number"}, "y": {}},
                "required": ["x"]}, "m": {"additionalProperties": {"type": "number"}}, "p": {"type": "object"}}}),
            "(o?: {x: number, y?: any}, m?: {[key]: number}, p?: object)",
        ),
        (
            json!({"properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
                "r": {"type": ["string", "null"]}, "k": {"oneOf": [{"type": "string"}, {"const": 5}, {"const": true}]},
                "v": {"type": "string", "nullable": true}}, "required": ["r", "v"]}),
            "(n?: integer, r: string|null, k?: string|5|true, v: string|null)",
        ),
        (
            json!({"$ref": "#/$defs/Input", "$defs": {"Input": {"properties": {"id": {"$ref": "#/$defs/Id"}},
                "required": ["id"]}, "Id": {"type": "string", "format": "uuid"}}}),
            "(id: string<uuid>)",
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "boolean", "default": false}}}]}),
            "(a: string, b?: boolean = false)",
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "required": ["a", "not there"]}),
            r#"(a: string, "not there": any)"#,
        ),
        (
            json!({"oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
            "(a?: string, b?: string)",
        ),
        (json!({"additionalProperties": {"type": "string"}}), "()"),
        (json!("no schema"), "()"),
        (json!({"properties": [], "required": {"a": 1}}), "()"),
        (
            json!({"properties": {"a": true, "b": false, "c": 3, "d": {"type": 7}, "e": {"type": "string\u{1b}"}}}),
            "(a?: any, b?: any, c?: any, d?: any, e?: any)",
        ),
    ];
    for (schema, expected) in rows {
        assert_eq!(of(&schema), expected, "{schema}");
    }
}

#[test]
fn long_parameters_are_shortened_and_counted() {
    let words: Vec<String> = (0..40).map(|n| format!("w{n}")).collect();
    let schema = json!({"properties": {"k": {"enum": words}}});
    let first: Vec<String> = words[..6].iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(of(&schema), format!("(k?: {}|…34 more)", first.join("|")));

    let members = (0..200).map(|n| (format!("optional_{n}"), json!({"type": "string"})));
    let mut properties: serde_json::Map<String, Value> = members.collect();
    properties.insert("must".into(), json!({"enum": words}));
    let text = of(&json!({"properties": properties, "required": ["must"]}));
    assert!(text.contains("optional_0?: string"), "{text}");
    assert!(text.contains(r#"must: "w0"|"w1"|"w2"|…37 more"#), "{text}");
    let shown = text.matches("optional_").count();
    let rest = format!(", …{} more optional)", 200 - shown);
    assert!(shown > 5 && text.ends_with(&rest), "{text}");
}

#[test]
fn required_parameters_that_fill_the_line_are_named() {
    let names: Vec<String> = (0..100).map(|n| format!("parameter_{n}")).collect();
    let text = of(&json!({"required": names}));
    assert_eq!(text, format!("({})", names.join(", ")));
}

#[test]
fn references_that_lead_in_circles_end() {
    let rows = [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"$ref": "#/nowhere/at/all"}),
        json!({"$ref": "https://example.com/schema"}),
    ];
    for schema in rows {
        assert_eq!(of(&schema), "()", "{schema}");
    }
    let tree = json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {
        "value": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}}});
    assert_eq!(
        of(&tree),
        "(value?: string, children?: {value?: string, children?: {value?: string, children?: array}[]}[])"
    );
}

#[test]
fn ambiguous_names_are_quoted() {
    let rows = [
        ("read_file", "read_file"),
        ("a.b-c", "a.b-c"),
        ("größe工", "größe工"),
        ("", r#""""#),
        ("two words", r#""two words""#),
        ("a/b", r#""a/b""#),
        ("say \"it\"\\", r#""say \"it\"\\""#),
        ("f(x)", r#""f(x)""#),
        (
            "a\nb\u{1b}\u{202E}\u{E0041}",
            r#""a\nb\u001b\u202e\udb40\udc41""#,
        ),
    ];
    for (name, shown) in rows {
        assert_eq!(shown_name(name), shown);
        if shown.starts_with('"') {
            assert_eq!(serde_json::from_str::<String>(shown).unwrap(), name);
        }
    }
}

#[test]
fn the_first_sentence_is_found() {
    let rows = [
        ("Read a file. It must exist.", "Read a file."),
        ("  Read\n  a   file.", "Read a file."),
        ("Get the weather\n\nArgs:\n  city", "Get the weather"),
        ("Does one of:\n- this\n- that", "Does one of:"),
        ("Does one of:\n1. this", "Does one of:"),
        (
            "Formats (e.g. PNG, i.e. images) work. Yes",
            "Formats (e.g. PNG, i.e. images) work.",
        ),
        (
            "Version 2.5 of v1.0 is here! Now",
            "Version 2.5 of v1.0 is here!",
        ),
        ("读取文件。大型文件", "读取文件。"),
        ("a\u{1b}[2Jb", "a⟦U+001B⟧[2Jb"),
        ("# Title\n\n## Use\nRead it. Then", "Read it."),
        ("# Title\n", "# Title"),
        ("", ""),
        (" \n ", ""),
    ];
    for (text, expected) in rows {
        assert_eq!(sentence_of(text, 120), expected, "{text:?}");
    }
    let long = "many words, ".repeat(50);
    let cut = sentence_of(&long, 120);
    assert!(
        cut.ends_with("many…") && cut.chars().count() <= 120,
        "{cut}"
    );
    assert_eq!(
        sentence_of(&"x".repeat(500), 10),
        format!("{}…", "x".repeat(9))
    );
}

#[test]
fn a_title_replaces_a_missing_description() {
    let rows = [
        (
            json!({"description": "Reads. Fast.", "title": "T"}),
            Some("Reads."),
        ),
        (
            json!({"description": " ", "title": "Reader"}),
            Some("Reader"),
        ),
        (json!({"description": 5}), None),
        (json!({}), None),
    ];
    for (definition, expected) in rows {
        assert_eq!(sentence(&raw(&definition)).as_deref(), expected);
    }
}

/// Generates any value, with the keywords of schemas in any position.
fn schema() -> impl Strategy<Value = Value> {
    let name = || prop_oneof!["[a-c]", "\\PC{0,8}", Just("\u{1b}\n\u{202E}".to_owned())];
    let reference = prop_oneof![
        Just("#"),
        Just("#/$defs/a"),
        Just("#/properties/b"),
        Just("x")
    ];
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({})),
        any::<f64>().prop_map(|it| json!(it)),
        name().prop_map(Value::from),
        prop_oneof![Just("string"), Just("object"), Just("array"), Just("null")]
            .prop_map(|it| json!({ "type": it })),
        reference.prop_map(|it| json!({ "$ref": it })),
        prop::collection::vec(name(), 0..30).prop_map(|it| json!({ "enum": it })),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        let map = prop::collection::vec((name(), inner.clone()), 0..6)
            .prop_map(|it| Value::Object(it.into_iter().collect()));
        let list = prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from);
        let required = prop::collection::vec(name(), 0..5);
        prop_oneof![
            (map.clone(), required, map.clone(), inner.clone()).prop_map(|(p, r, d, more)| {
                json!({ "type": "object", "properties": p, "required": r, "$defs": d,
                        "additionalProperties": more.clone(), "default": more })
            }),
            (list.clone(), list.clone()).prop_map(|(a, b)| json!({ "allOf": a, "anyOf": b })),
            inner.prop_map(|it| json!({ "type": "array", "items": it })),
            list,
            map,
        ]
    })
}

/// Returns the names that a schema requires, by itself and through `allOf`.
fn required_names(schema: &Value) -> Vec<String> {
    let own = schema["required"].as_array().into_iter().flatten();
    let own = own.filter_map(|it| it.as_str().map(str::to_owned));
    let made_of = schema["allOf"].as_array().into_iter().flatten();
    own.chain(made_of.flat_map(required_names)).collect()
}

proptest! {
    #[test]
    fn every_required_parameter_is_in_a_bounded_line(
        schema in schema(), description in "\\PC{0,200}|[\r\n\u{1b}a. ]{0,300}"
    ) {
        let definition = raw(&json!({ "description": description, "inputSchema": schema }));
        let text = parameters(&definition);
        let names = required_names(&schema);
        for name in &names {
            prop_assert!(text.contains(&*shown_name(name)), "{name:?} in {text}");
        }
        let room: usize = names.iter().map(|it| shown_name(it).chars().count() + 2).sum();
        prop_assert!(text.chars().count() <= write::MAX_CHARACTERS.max(room + 40), "{text}");
        let sentence = sentence(&definition).unwrap_or_default();
        prop_assert!(sentence.chars().count() <= sentence::MAX_CHARACTERS, "{sentence}");
        for shown in [text, sentence] {
            // Characters without a visible form stay where a script needs them.
            prop_assert_eq!(&*crate::visible::visible(&shown), &shown);
        }
    }
}

#[test]
fn hostile_schemas_are_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..50 {
        deep = json!({"type": "object", "properties": {"deeper": deep}});
    }
    assert!(of(&deep).len() < 200);
    let wide: serde_json::Map<String, Value> = (0..5000)
        .map(|n| (format!("p{n}"), json!({"$ref": "#"})))
        .collect();
    let text = of(&json!({ "properties": wide }));
    assert!(text.chars().count() <= write::MAX_CHARACTERS, "{text}");
    let refs: Vec<Value> = (0..5000).map(|_| json!({"$ref": "#/properties"})).collect();
    assert_eq!(of(&json!({ "allOf": refs, "required": ["x"] })), "(x: any)");
}
