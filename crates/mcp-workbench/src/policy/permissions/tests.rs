use ident::{ServerIdentifier, ToolName};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use rawjson::RawJson;
use serde_json::{Value, json};

use super::*;

fn rules(written: &[&str]) -> Vec<PermissionRule> {
    let rules = written.iter().map(|it| PermissionRule::new(it).unwrap());
    rules.collect()
}

fn permissions(allow: Option<&[&str]>, ask: &[&str], deny: &[&str]) -> Permissions {
    Permissions {
        allow: allow.map(rules),
        ask: rules(ask),
        deny: rules(deny),
        code: None,
        client: None,
    }
}

fn hints(annotations: &Value) -> Hints {
    Hints::of(&RawJson::of(
        &json!({ "name": "x", "annotations": annotations }),
    ))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

#[test]
fn annotations_are_read_with_caution() {
    let cases = [
        (json!({}), Hints::WORST),
        (json!(null), Hints::WORST),
        (json!("readOnlyHint"), Hints::WORST),
        (
            json!({"readOnlyHint": true}),
            Hints {
                read_only: true,
                destructive: false,
            },
        ),
        (json!({"readOnlyHint": "true"}), Hints::WORST),
        (json!({"readOnlyHint": 1}), Hints::WORST),
        (
            json!({"destructiveHint": false}),
            Hints {
                read_only: false,
                destructive: false,
            },
        ),
        (json!({"destructiveHint": null}), Hints::WORST),
        (
            json!({"readOnlyHint": true, "destructiveHint": true}),
            Hints::WORST,
        ),
        (
            json!({"readOnlyHint": true, "destructiveHint": false}),
            Hints {
                read_only: true,
                destructive: false,
            },
        ),
    ];
    for (annotations, expected) in cases {
        assert_eq!(hints(&annotations), expected, "{annotations}");
    }
    let nothing = Hints::of(&RawJson::of(&json!({ "name": "x" })));
    assert_eq!(nothing, Hints::WORST);
    let doubled = br#"{"name":"x","annotations":{"readOnlyHint":true,"readOnlyHint":false}}"#;
    let doubled = RawJson::parse(&doubled.to_vec().into()).unwrap();
    assert_eq!(Hints::of(&doubled), Hints::WORST);
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    let read = Hints {
        read_only: true,
        destructive: false,
    };
    let adds = Hints {
        read_only: false,
        destructive: false,
    };
    let worst = Hints::WORST;
    let all: Option<&[&str]> = Some(&["*"]);
    let cases = [
        (permissions(None, &[], &[]), "x", worst, "allow"),
        (permissions(None, &["x"], &[]), "y", worst, "allow"),
        (permissions(Some(&[]), &[], &[]), "x", read, "ask"),
        (
            permissions(Some(&["@readOnly"]), &[], &[]),
            "x",
            read,
            "allow",
        ),
        (
            permissions(Some(&["@readOnly"]), &[], &[]),
            "x",
            adds,
            "ask",
        ),
        (
            permissions(Some(&["@readOnly"]), &[], &[]),
            "@readOnly",
            worst,
            "ask",
        ),
        (permissions(None, &["@destructive"], &[]), "x", worst, "ask"),
        (
            permissions(None, &["@destructive"], &[]),
            "x",
            adds,
            "allow",
        ),
        (permissions(all, &["*"], &["*"]), "x", read, "deny"),
        (permissions(all, &["*"], &[]), "x", read, "ask"),
        (
            permissions(all, &["write_*"], &["delete_*"]),
            "delete_all",
            read,
            "deny",
        ),
        (
            permissions(all, &["write_*"], &["delete_*"]),
            "write_file",
            read,
            "ask",
        ),
        (
            permissions(all, &["write_*"], &["delete_*"]),
            "read_file",
            worst,
            "allow",
        ),
    ];
    for (permissions, tool, hints, expected) in cases {
        let decided = verdict(&permissions, tool, hints);
        assert_eq!(word(&decided), expected, "{permissions:?} {tool} {hints:?}");
    }
}

#[test]
fn a_decision_by_name_needs_no_annotations() {
    let cases = [
        (
            permissions(None, &[], &["delete_*"]),
            "delete_all",
            Some("deny"),
        ),
        (
            permissions(None, &["@destructive"], &["delete_*"]),
            "delete_all",
            Some("deny"),
        ),
        (permissions(None, &["@destructive"], &[]), "read", None),
        (permissions(Some(&["@readOnly"]), &[], &[]), "read", None),
        (
            permissions(Some(&["read", "@readOnly"]), &[], &[]),
            "read",
            Some("allow"),
        ),
        (permissions(Some(&["read"]), &[], &[]), "write", Some("ask")),
    ];
    for (permissions, tool, expected) in cases {
        let decided = verdict_by_name(&permissions, tool);
        assert_eq!(
            decided.as_ref().map(word),
            expected,
            "{permissions:?} {tool}"
        );
    }
}

#[test]
fn hints_cannot_be_relaxed_later() {
    let mut said = HintHistory::default();
    let tool = ToolName::from("wipe");
    let read = Hints {
        read_only: true,
        destructive: false,
    };
    assert_eq!(said.record(&tool, Hints::WORST), Hints::WORST);
    assert_eq!(said.record(&tool, read), Hints::WORST);
    let mut later = HintHistory::default();
    assert_eq!(later.record(&tool, read), read);
    later.merge(&said);
    assert_eq!(later.get(&tool), Some(Hints::WORST));
    assert_eq!(later.get(&ToolName::from("other")), None);
}

const ONCE: Offer = Offer {
    run: false,
    session: false,
};
const SESSION: Offer = Offer {
    run: false,
    session: true,
};
const RUN: Offer = Offer {
    run: true,
    session: false,
};

fn asked(tool: &str, arguments: &Value, offer: Offer) -> Value {
    let server = ServerIdentifier {
        toolbox: "dev".into(),
        server: "fs".into(),
    };
    let question = question(
        &server,
        &ToolName::from(tool),
        &RawJson::of(arguments),
        &Reason::Rule("wi*".into()),
        offer,
    );
    serde_json::from_str(question.as_str()).unwrap()
}

#[test]
fn the_question_shows_what_is_to_be_run() {
    let question = asked("wipe", &json!({"path": "/"}), SESSION);
    assert_eq!(
        question,
        json!({
            "message": "MCP Workbench asks: may this tool run?\ntoolbox: 'dev'\nserver: 'fs'\ntool: 'wipe'\n\
                        arguments: {\"path\":\"/\"}\nwhy you are asked: rule 'wi*'",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "decision": {
                        "type": "string",
                        "title": "Run it?",
                        "enum": ["once", "for this session", "no"],
                    },
                },
                "required": ["decision"],
            },
        })
    );
}

#[test]
fn text_in_the_question_is_visible_on_one_line_and_limited() {
    let long = "x".repeat(10_000);
    let arguments = json!({"a": "\n\u{202E}\u{1b}[2J", "b": long});
    let question = asked("wi\npe\ntool: 'harmless'", &arguments, ONCE);
    let message = question["message"].as_str().unwrap();
    assert_eq!(message.lines().count(), 6, "{message}");
    assert!(
        message.contains("tool: 'wi pe tool: 'harmless''\n"),
        "{message}"
    );
    assert!(message.contains("⟦U+202E⟧"), "{message}");
    assert!(
        message.contains("more characters are not shown)"),
        "{message}"
    );
    assert!(message.chars().count() < 2500, "{message}");
    let offered = &question["requestedSchema"]["properties"]["decision"]["enum"];
    assert_eq!(*offered, json!(["once", "no"]));
}

#[test]
fn lookalike_letters_in_names_are_shown_in_the_question() {
    let question = asked("get_us\u{435}r", &json!({}), ONCE);
    let message = question["message"].as_str().unwrap();
    assert!(message.contains("tool: 'get_us⟦U+0435⟧r'\n"), "{message}");
}

#[test]
fn invisible_characters_are_shown_in_the_question() {
    let arguments = json!({"a": "x\u{E000}\u{2062}"});
    let name = "wi\u{200B}pe\u{E0200}\u{2800}\u{3164}\u{FE0F} 👩\u{200D}💻";
    let question = asked(name, &arguments, ONCE);
    let message = question["message"].as_str().unwrap();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(
        lines[3..5],
        [
            "tool: 'wi⟦U+200B⟧pe⟦U+E0200⟧⟦U+2800⟧⟦U+3164⟧⟦U+FE0F⟧ 👩\u{200D}💻'",
            "arguments: {\"a\":\"x⟦U+E000⟧⟦U+2062⟧\"}",
        ]
    );
}

#[test]
fn only_a_clear_yes_is_a_yes() {
    let accept = |decision: Value| json!({"action": "accept", "content": {"decision": decision}});
    let cases = [
        (accept(json!("once")), "once"),
        (accept(json!("for this session")), "session"),
        (accept(json!("no")), "permission_refused"),
        (json!({"action": "decline"}), "permission_refused"),
        (
            json!({"action": "cancel", "content": {"decision": "once"}}),
            "permission_refused",
        ),
        (json!({"action": "accept"}), "permission_unanswered"),
        (accept(json!(true)), "permission_unanswered"),
        (accept(json!("yes")), "permission_unanswered"),
        (accept(json!(["once"])), "permission_unanswered"),
        (json!({"action": ["accept"]}), "permission_unanswered"),
        (
            json!({"content": {"decision": "once"}}),
            "permission_unanswered",
        ),
        (json!([]), "permission_unanswered"),
        (json!("accept"), "permission_unanswered"),
    ];
    for (result, expected) in cases {
        let told = match answer(&RawJson::of(&result), SESSION) {
            Ok(Approval::Once) => "once",
            Ok(Approval::Run) => "run",
            Ok(Approval::Session) => "session",
            Err(refusal) => refusal.code(),
        };
        assert_eq!(told, expected, "{result}");
    }
    let session = RawJson::of(&accept(json!("for this session")));
    let run = RawJson::of(&accept(json!("for this run")));
    assert_eq!(answer(&run, RUN), Ok(Approval::Run));
    for (answered, offer) in [
        (&session, ONCE),
        (&session, RUN),
        (&run, ONCE),
        (&run, SESSION),
    ] {
        assert!(answer(answered, offer).is_err(), "it was not offered");
    }
}

proptest! {
    #[test]
    fn only_offered_answers_permit_a_call(text in ".*") {
        let result = json!({"action": "accept", "content": {"decision": text}});
        let permitted = answer(&RawJson::of(&result), SESSION).is_ok();
        prop_assert_eq!(permitted, text == "once" || text == "for this session");
    }
}
