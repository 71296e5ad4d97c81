//! Our messages around relayed values: the values stay byte for byte.

use bytes::Bytes;
use proptest::prelude::*;
use rawjson::RawJson;
use serde_json::{Value, json};

use crate::wire::ResultMarks;

use super::{
    super::{
        Answer, Frame, Message, Notification, Request, RequestId, Response, error, error_as_sent,
        notification, request, result,
    },
    generate::{clean_string, clean_tokens, number, object_text},
};

fn raw(text: &str) -> RawJson {
    RawJson::parse(&Bytes::from(text.to_owned())).unwrap()
}

fn id(text: &str) -> RequestId {
    RequestId::from_json(raw(text)).unwrap()
}

fn text(frame: &Frame) -> String {
    let text = String::from_utf8(frame.to_vec()).unwrap();
    assert_eq!(frame.len(), text.len());
    assert!(!frame.is_empty());
    text
}

fn read_back(frame: &Frame) -> Message {
    let line = frame.to_vec();
    let line = line
        .strip_suffix(b"\n")
        .expect("a frame ends with a newline");
    Message::parse(&Bytes::copy_from_slice(line)).unwrap()
}

fn ids() -> impl Strategy<Value = String> {
    prop_oneof![number(), clean_string()]
}

proptest! {
    #[test]
    fn a_result_has_id_and_value_unchanged(id_text in ids(), body in object_text()) {
        let frame = result(&id(&id_text), &raw(&body));
        prop_assert_eq!(
            text(&frame),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id_text},\"result\":{body}}}\n")
        );
        prop_assert_eq!(read_back(&frame), Message::Response(Response {
            id: Some(id(&id_text)),
            answer: Answer::Result(raw(&body)),
            marks: ResultMarks::of(&raw(&body)),
        }));
    }

    #[test]
    fn a_request_is_read_back(number in any::<u64>(), method in any::<String>(), body in object_text()) {
        prop_assert_eq!(read_back(&request(number, &method, raw(&body))), Message::Request(Request {
            id: id(&number.to_string()),
            method: method.into(),
            params: Some(raw(&body)),
        }));
    }

    #[test]
    fn a_notification_is_read_back(method in any::<String>(), body in proptest::option::of(object_text())) {
        let params = body.as_deref().map(raw);
        let frame = notification(&method, params.as_ref());
        prop_assert_eq!(
            read_back(&frame),
            Message::Notification(Notification { method: method.into(), params })
        );
    }

    #[test]
    fn an_error_is_read_back(id_text in ids(), code in any::<i64>(), message in any::<String>()) {
        let frame = error(Some(&id(&id_text)), code, &message);
        let Message::Response(Response { id: Some(found), answer: Answer::Error(body), .. }) =
            read_back(&frame)
        else {
            return Err(TestCaseError::fail("no error"));
        };
        prop_assert_eq!(found, id(&id_text));
        prop_assert_eq!(
            serde_json::from_slice::<Value>(body.as_bytes()).unwrap(),
            json!({ "code": code, "message": message })
        );
    }

    #[test]
    fn a_batch_contains_its_answers(bodies in prop::collection::vec(clean_tokens(), 0..5)) {
        let answers: Vec<Frame> =
            bodies.iter().map(|body| result(&id("1"), &raw(&body.concat()))).collect();
        let batch = Frame::batch(&answers);
        let whole = text(&batch);
        let elements = raw(whole.strip_suffix('\n').unwrap()).elements().unwrap();
        let lines: Vec<String> = elements.iter().map(|it| format!("{}\n", it.as_str())).collect();
        prop_assert_eq!(lines, answers.iter().map(text).collect::<Vec<_>>());
    }
}

/// Large bodies are not copied into the frame, which makes no visible difference.
#[test]
fn a_body_of_any_size_is_spliced_alike() {
    for size in [2, 3, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 1024 * 1024] {
        let body = format!("{{{}}}", " ".repeat(size - 2));
        let frame = result(&id("7"), &raw(&body));
        assert_eq!(
            text(&frame),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{body}}}\n"),
            "{size}"
        );
        let batch = Frame::batch(&[frame.clone(), frame.clone()]);
        let line = text(&frame);
        let line = line.trim_end();
        assert_eq!(text(&batch), format!("[{line},{line}]\n"), "{size}");
    }
}

#[test]
fn composed_messages_have_a_fixed_form() {
    let body = raw(r#"{ "a" : 1e400 }"#);
    let cases = [
        (
            result(&id("1.0"), &body),
            r#"{"jsonrpc":"2.0","id":1.0,"result":{ "a" : 1e400 }}"#,
        ),
        (
            error(None, -32700, "no \"x\""),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no \"x\""}}"#,
        ),
        (
            error(Some(&id(r#""\u0031""#)), 5, "a\nb"),
            r#"{"jsonrpc":"2.0","id":"\u0031","error":{"code":5,"message":"a\nb"}}"#,
        ),
        (
            request(3, "tools/call", &body),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{ "a" : 1e400 }}"#,
        ),
        (
            notification("x\"y", None),
            r#"{"jsonrpc":"2.0","method":"x\"y"}"#,
        ),
        (
            notification("m", Some(&body)),
            r#"{"jsonrpc":"2.0","method":"m","params":{ "a" : 1e400 }}"#,
        ),
        (
            error_as_sent(&id("7"), &body),
            r#"{"jsonrpc":"2.0","id":7,"error":{ "a" : 1e400 }}"#,
        ),
        (Frame::batch(&[]), "[]"),
    ];
    for (frame, expected) in cases {
        assert_eq!(text(&frame), format!("{expected}\n"));
    }
}

#[test]
fn an_answer_names_the_request_that_it_answers() {
    for request_id in ["7", r#""a\",\"result\":""#] {
        let request_id = id(request_id);
        let long = raw(&format!("{{\"text\":\"{}\"}}", "x".repeat(100_000)));
        for frame in [
            result(&request_id, &raw("{}")),
            result(&request_id, &long),
            error(Some(&request_id), -32603, "no"),
            error_as_sent(&request_id, &long),
        ] {
            assert_eq!(frame.answered_id().as_ref(), Some(&request_id));
        }
    }
    let answer = result(&id("7"), &raw("{}"));
    for frame in [
        request(7, "m", raw(r#"{"result":1}"#)),
        notification("m", None),
        error(None, -32700, "no"),
        Frame::batch(&[answer]),
    ] {
        assert_eq!(frame.answered_id(), None, "{}", text(&frame));
    }
}
