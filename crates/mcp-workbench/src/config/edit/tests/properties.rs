//! Edits of texts in any layout change only the intended part.

use std::ops::Range;

use jsonc_parser::{
    CollectOptions,
    ast::{Object, Value as Node},
    common::Ranged,
    parse_to_ast,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::config::{edit::ConfigText, raw::SYNTAX};

/// Texts that may occur between any two tokens.
const BETWEEN: &[&str] = &[
    "",
    " ",
    "\n",
    "\n  ",
    "\n\t\t",
    "\r\n    ",
    "  \n\n ",
    " // it's, \"x\" } {\n",
    "// one\n  // two\r\n  ",
    "/* , } \" */",
    " /* a\n b */ ",
    "\u{2003}",
];

/// A configuration with a toolbox `t`, its servers `s0`, `s1`, … and other members around them.
#[derive(Debug)]
struct Sample {
    text: String,
    servers: usize,
}

/// Generates the tokens of a sample, with a gap after each.
fn sample(servers: Range<usize>) -> impl Strategy<Value = Sample> {
    let shape = (servers, any::<[bool; 4]>(), any::<bool>());
    shape.prop_flat_map(|(servers, commas, bom)| {
        let tokens = tokens(servers, commas);
        let gaps = vec(select(BETWEEN), tokens.len() + 1);
        gaps.prop_map(move |gaps| {
            let mut text = String::from(if bom { "\u{feff}" } else { "" });
            text.push_str(gaps[0]);
            for (token, gap) in tokens.iter().zip(&gaps[1..]) {
                text.push_str(token);
                text.push_str(gap);
            }
            Sample { text, servers }
        })
    })
}

/// Returns the tokens of a file. Each of `commas` tells whether the last member of an object is followed by one.
fn tokens(servers: usize, commas: [bool; 4]) -> Vec<String> {
    let [of_entry, of_servers, of_toolbox, of_all] = commas.map(|it| if it { "," } else { "" });
    let mut words = vec![
        "{",
        "\"_a\"",
        ":",
        "[",
        "1",
        ",",
        "{}",
        "]",
        ",",
        "\"toolboxes\"",
        ":",
        "{",
        "\"t\"",
        ":",
        "{",
        "\"mcpServers\"",
        ":",
        "{",
    ];
    let names: Vec<String> = (0..servers).map(|n| format!("\"s{n}\"")).collect();
    for (n, name) in names.iter().enumerate() {
        words.extend([
            name.as_str(),
            ":",
            "{",
            "\"command\"",
            ":",
            "\"a//,b\"",
            of_entry,
            "}",
        ]);
        words.push(if n + 1 < servers { "," } else { of_servers });
    }
    words.extend([
        "}",
        ",",
        "\"description\"",
        ":",
        "\"d\"",
        of_toolbox,
        "}",
        "}",
        of_all,
        "}",
    ]);
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn value(text: &str) -> Value {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &SYNTAX).expect(text);
    plain(&parsed.value.expect("a value"))
}

fn plain(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(string) => json!(string.value),
        Node::NumberLit(number) => json!(number.value),
        Node::BooleanLit(flag) => json!(flag.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(plain).collect(),
        Node::Object(object) => {
            let members = object.properties.iter();
            let members = members.map(|it| (it.name.as_str().to_owned(), plain(&it.value)));
            Value::Object(members.collect())
        }
    }
}

/// Returns the ranges of the braces around the servers and of the servers, in the text without its BOM.
fn servers(text: &str) -> (Range<usize>, Vec<Range<usize>>) {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &SYNTAX).expect(text);
    let Some(Node::Object(root)) = parsed.value else {
        panic!("no object: {text}")
    };
    let toolboxes = member_of(&root, "toolboxes");
    let toolbox = member_of(toolboxes, "t");
    let object = member_of(toolbox, "mcpServers");
    let places = object.properties.iter().map(|it| it.start()..it.end());
    (object.start()..object.end(), places.collect())
}

fn member_of<'o, 't>(object: &'o Object<'t>, key: &str) -> &'o Object<'t> {
    let mut properties = object.properties.iter();
    let found = properties.find(|it| it.name.as_str() == key).expect(key);
    match &found.value {
        Node::Object(object) => object,
        other => panic!("no object: {other:?}"),
    }
}

fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn edit(text: &str, edit: impl FnOnce(&mut ConfigText)) -> String {
    let mut config = ConfigText::parse(text).expect(text);
    edit(&mut config);
    config.finish()
}

proptest! {
    #[test]
    fn adding_and_removing_again_restores_the_text(sample in sample(0..4)) {
        let entry = json!({"command": "x", "args": ["-y", "z"], "env": {"A": "1"}});
        let added = edit(&sample.text, |it| it.add_server("t", "new", &entry).unwrap());
        let mut expected = value(&sample.text);
        expected["toolboxes"]["t"]["mcpServers"]["new"] = entry;
        prop_assert_eq!(value(&added), expected);

        let (braces, places) = servers(without_bom(&sample.text));
        let last = places.last().map_or(braces.start + 1, |last| last.end);
        let bom = sample.text.len() - without_bom(&sample.text).len();
        prop_assert!(added.starts_with(&sample.text[..last + bom]));
        prop_assert!(added.ends_with(&sample.text[braces.end + bom - 1..]));

        let removed = edit(&added, |it| it.remove_server("t", "new").unwrap());
        prop_assert_eq!(value(&removed), value(&sample.text));
        if sample.servers > 0 {
            prop_assert_eq!(removed, sample.text);
        }
    }

    #[test]
    fn a_removal_changes_nothing_but_its_surroundings(
        sample in sample(1..4),
        which in any::<prop::sample::Index>(),
    ) {
        let which = which.index(sample.servers);
        let name = format!("s{which}");
        let removed = edit(&sample.text, |it| it.remove_server("t", &name).unwrap());
        let mut expected = value(&sample.text);
        let members = expected["toolboxes"]["t"]["mcpServers"].as_object_mut().unwrap();
        members.shift_remove(&name);
        prop_assert_eq!(value(&removed), expected);

        let text = without_bom(&sample.text);
        let (braces, places) = servers(text);
        let from = which.checked_sub(1).map_or(braces.start + 1, |before| places[before].end);
        let until = places.get(which + 1).map_or(braces.end - 1, |next| next.start);
        let removed = without_bom(&removed);
        prop_assert!(removed.starts_with(&text[..from]));
        prop_assert!(removed.ends_with(&text[until..]));
        // The rest between the members is preserved in its order.
        let left = removed[from..removed.len() - (text.len() - until)].chars();
        let mut between = text[from..until].chars();
        for character in left {
            prop_assert!(between.any(|it| it == character));
        }
    }

    #[test]
    fn disabling_and_enabling_restores_the_text(sample in sample(0..4)) {
        let off = edit(&sample.text, |it| it.set_enabled("t", None, false).unwrap());
        let entries = &value(&off)["toolboxes"]["t"]["mcpServers"];
        for entry in entries.as_object().unwrap().values() {
            prop_assert_eq!(entry, &json!({"command": "a//,b", "disabled": true}));
        }
        let on = edit(&off, |it| it.set_enabled("t", None, true).unwrap());
        if !on.contains("disabled") {
            prop_assert_eq!(&on, &sample.text);
        }
        // A comment behind the switch may be about it, so the switch stays.
        let mut entries = value(&on);
        for entry in entries["toolboxes"]["t"]["mcpServers"].as_object_mut().unwrap().values_mut() {
            let flag = entry.as_object_mut().unwrap().shift_remove("disabled");
            prop_assert!(matches!(flag, None | Some(Value::Bool(false))));
        }
        prop_assert_eq!(entries, value(&sample.text));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\{\\}\\[\\]\":,/* \n\\\\a1é]{0,40}") {
        if let Ok(mut config) = ConfigText::parse(&text) {
            if config.add_toolbox("x", "d").is_ok() {
                config.add_server("x", "y", &json!({"command": "z"})).unwrap();
                config.remove_server("x", "y").unwrap();
                config.remove_toolbox("x").unwrap();
            }
            let text = config.finish();
            prop_assert!(ConfigText::parse(&text).is_ok());
        }
    }
}
