//! Messages of each kind, and the faults of frames that are not messages.

use bytes::Bytes;
use pretty_assertions::assert_eq;
use rawjson::{Kind, RawJson, ScanError};

use super::super::{
    Answer, InvalidMessage, Message, Notification, ParseError, Request, RequestId, Response,
    message::MessageFault, parse_repaired,
};
use crate::wire::ResultMarks;

fn frame(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(&frame(text)).unwrap()
}

fn id(text: &str) -> RequestId {
    RequestId::from_json(raw(text)).unwrap()
}

/// Both ways to read a message agree.
fn parse(text: &str) -> Result<Message, ParseError> {
    let parsed = Message::parse(&frame(text));
    assert_eq!(parse_repaired(&frame(text)), parsed, "{text}");
    parsed
}

fn request(id_text: &str, params: Option<&str>) -> Message {
    let params = params.map(raw);
    Message::Request(Request {
        id: id(id_text),
        method: "m".into(),
        params,
    })
}

fn notification(method: &str, params: Option<&str>) -> Message {
    let params = params.map(raw);
    Message::Notification(Notification {
        method: method.to_owned().into(),
        params,
    })
}

fn response(id_text: Option<&str>, answer: Answer) -> Message {
    let marks = match &answer {
        Answer::Result(result) => ResultMarks::of(result),
        Answer::Error(_) | Answer::Invalid => ResultMarks::default(),
    };
    Message::Response(Response {
        id: id_text.map(id),
        answer,
        marks,
    })
}

fn result(text: &str) -> Answer {
    Answer::Result(raw(text))
}

/// Returns a message of these members and the version.
fn versioned(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0",{members}}}"#)
}

#[test]
fn requests_and_notifications_are_distinguished() {
    let cases = [
        (r#""id":1,"method":"m""#, request("1", None)),
        (r#" "method" : "m" , "id" : 1 "#, request("1", None)),
        (
            r#""id":1,"method":"m","params":{ }"#,
            request("1", Some("{ }")),
        ),
        (
            r#""id":1,"method":"m","params":[]"#,
            request("1", Some("[]")),
        ),
        (r#""id":1,"method":"m","x":{"id":2}"#, request("1", None)),
        (
            r#""id":1,"method":"m","ID":2,"Params":4"#,
            request("1", None),
        ),
        (r#""\u0069d":1,"method":"\u006d""#, request("1", None)),
        (r#""id":1,"method":"m","result":{}"#, request("1", None)),
        (r#""method":"m""#, notification("m", None)),
        (r#""method":"","params":{}"#, notification("", Some("{}"))),
        (r#""method":"\ud800""#, notification("\u{fffd}", None)),
    ];
    for (members, expected) in cases {
        assert_eq!(parse(&versioned(members)), Ok(expected), "{members}");
    }
    let last = r#" { "method" : "m" , "\u006asonrpc" : "2.0" } "#;
    assert_eq!(parse(last), Ok(notification("m", None)));
}

#[test]
fn responses_have_a_result_or_an_error() {
    let error = || Answer::Error(raw(r#"{"code":1}"#));
    let one = Some("1");
    let cases = [
        (r#""id":1,"result":{}"#, response(one, result("{}"))),
        (r#""id":1,"error":{"code":1}"#, response(one, error())),
        (r#""id":null,"error":{"code":1}"#, response(None, error())),
        (r#""error":{"code":1}"#, response(None, error())),
        (r#""id":{},"result":{}"#, response(None, result("{}"))),
        (
            r#""id":1,"result":{},"error":{}"#,
            response(one, Answer::Invalid),
        ),
        (
            r#""id":1,"result":null,"error":{}"#,
            response(one, Answer::Invalid),
        ),
        (r#""id":1,"result":null"#, response(one, Answer::Invalid)),
        (r#""id":1,"result":[]"#, response(one, Answer::Invalid)),
        (r#""id":1,"error":"no""#, response(one, Answer::Invalid)),
    ];
    for (members, expected) in cases {
        assert_eq!(parse(&versioned(members)), Ok(expected), "{members}");
    }
}

/// Checks that the text is not a message, with this fault and id.
fn check_fault(text: &str, id_text: Option<&str>, fault: MessageFault) {
    let id = id_text.map(id);
    let expected = InvalidMessage { id, fault };
    assert_eq!(parse(text), Err(ParseError::Invalid(expected)), "{text}");
}

#[test]
fn values_that_are_not_json_rpc_2_0_are_refused() {
    check_fault("[]", None, MessageFault::NotAnObject(Kind::Array));
    check_fault("5", None, MessageFault::NotAnObject(Kind::Number));
    check_fault("null", None, MessageFault::NotAnObject(Kind::Null));
    check_fault("{}", None, MessageFault::Version);
    for version in [
        r#""jsonrpc":"1.0""#,
        r#""jsonrpc":2.0"#,
        r#""JSONRPC":"2.0""#,
    ] {
        let text = format!(r#"{{{version},"id":7,"method":"m"}}"#);
        check_fault(&text, Some("7"), MessageFault::Version);
    }
}

#[test]
fn faults_have_the_id_if_there_is_one() {
    let seven = Some("7");
    let cases = [
        (r#""x":1"#, None, MessageFault::Shape),
        (r#""id":7"#, seven, MessageFault::Shape),
        (r#""id":7,"Method":"m""#, seven, MessageFault::Shape),
        (r#""id":7,"method":5"#, seven, MessageFault::Method),
        (r#""id":7,"method":null"#, seven, MessageFault::Method),
        (
            r#""id":7,"method":"m","params":5"#,
            seven,
            MessageFault::Params,
        ),
        (
            r#""id":7,"method":"m","params":null"#,
            seven,
            MessageFault::Params,
        ),
        (r#""method":"m","params":"x""#, None, MessageFault::Params),
        (r#""id":null,"method":"m""#, None, MessageFault::Id),
        (r#""id":{},"method":"m""#, None, MessageFault::Id),
        (r#""id":[1],"method":"m""#, None, MessageFault::Id),
        (r#""id":true,"method":"m""#, None, MessageFault::Id),
    ];
    for (members, id_text, fault) in cases {
        check_fault(&versioned(members), id_text, fault);
    }
}

#[test]
fn duplicate_members_of_the_envelope_are_refused() {
    let members = [
        r#""jsonrpc":"2.0""#,
        r#""id":1"#,
        r#""method":"m""#,
        r#""params":{}"#,
        r#""result":{}"#,
        r#""error":{}"#,
    ];
    for member in members {
        let doubled = format!("{{{},{member}}}", members.join(","));
        let escaped = member.replacen('"', "", 1);
        let (first, rest) = escaped.split_at(1);
        let code = u32::from(first.chars().next().unwrap());
        let disguised = format!("{{{},\"\\u{code:04x}{rest}}}", members.join(","));
        for text in [doubled, disguised] {
            let Err(ParseError::Invalid(InvalidMessage { fault, .. })) = parse(&text) else {
                panic!("{text} was accepted");
            };
            assert_eq!(fault, MessageFault::DuplicateMember, "{text}");
        }
    }
    let strangers = r#"{"jsonrpc":"2.0","method":"m","x":1,"x":2}"#;
    assert_eq!(parse(strangers), Ok(notification("m", None)));
}

#[test]
fn an_id_is_a_string_or_a_number_exactly_as_written() {
    let accepted = [
        (r#""a""#, None),
        (r#""""#, None),
        (r#""1""#, None),
        ("1", Some(1)),
        ("0", Some(0)),
        ("-0", None),
        ("-1", None),
        ("1.0", None),
        ("1e0", None),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("123456789012345678901234567890", None),
        (r#""\u0031""#, None),
    ];
    for (text, number) in accepted {
        let found = id(text);
        assert_eq!((found.to_json().as_str(), found.as_u64()), (text, number));
    }
    for text in ["null", "true", "{}", "[]"] {
        assert_eq!(RequestId::from_json(raw(text)), None, "{text}");
    }
    let different = ["1", "1.0", "1e0", r#""1""#, r#""\u0031""#];
    for (index, one) in different.iter().enumerate() {
        for other in &different[index + 1..] {
            assert_ne!(id(one), id(other));
        }
    }
}

#[test]
fn text_that_is_not_json_is_not_a_message() {
    for text in [
        "",
        " ",
        "{",
        "{}x",
        r#"{"jsonrpc":"2.0","method":"m"},"#,
        "Server started",
        "{'a':1}",
    ] {
        assert!(
            matches!(parse(text), Err(ParseError::NotJson(ScanError::Syntax(_)))),
            "{text}"
        );
    }
}

/// The whole text is checked, not only the members that are used.
#[test]
fn a_syntax_error_comes_before_other_faults() {
    let cases = [
        "{\"jsonrpc\":\"1.0\",\"id\":\"a\tb\",\"method\":\"m\"}",
        "{\"id\":1,\"x\":\"\t\"}",
        "{\"\\n\t\":1}",
        "{\"a\\u0062\u{1}\":1,\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\\n\t\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":\"\t\"}",
    ];
    for text in cases {
        let parsed = Message::parse(&frame(text));
        assert!(
            matches!(parsed, Err(ParseError::NotJson(_))),
            "{text:?}: {parsed:?}"
        );
    }
}

#[test]
fn raw_control_characters_in_an_envelope_are_repaired() {
    let text = "{\"a\\u0062\t\":1,\"jsonrpc\":\"2.0\",\"id\":\"x\t\",\"method\":\"\\n\t\"}";
    let Ok(Message::Request(request)) = parse_repaired(&frame(text)) else {
        panic!("not repaired");
    };
    assert_eq!(request.id, id(r#""x\u0009""#));
    assert_eq!(request.method, "\n\t");
    let invalid = "{\"jsonrpc\":\"1.0\",\"id\":\"x\t\",\"method\":\"m\"}";
    let expected = InvalidMessage {
        id: Some(id(r#""x\u0009""#)),
        fault: MessageFault::Version,
    };
    assert_eq!(
        parse_repaired(&frame(invalid)),
        Err(ParseError::Invalid(expected))
    );
}

#[test]
fn every_fault_has_a_message() {
    let cases = [
        ("[]", "a message must be an object, not an array"),
        ("null", "a message must be an object, not null"),
        ("\"x\"", "a message must be an object, not a string"),
        ("{}", r#""jsonrpc" is not "2.0""#),
        ("[", "not valid JSON at byte 1"),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#""id" is neither a string nor a number"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":5}"#,
            r#""method" is not a string"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"m","params":5}"#,
            r#""params" is neither an object nor an array"#,
        ),
        (
            r#"{"jsonrpc":"2.0"}"#,
            r#""method", "result" and "error" are all missing"#,
        ),
        (r#"{"id":1,"id":1}"#, "duplicate member in the envelope"),
        (&"[".repeat(200), "nested deeper than 128 levels"),
    ];
    for (text, words) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), words, "{text}");
    }
}
