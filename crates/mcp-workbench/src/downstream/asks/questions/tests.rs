//! Questions to clients of each era, and refusals.

use pretty_assertions::assert_eq;

use super::*;
use crate::downstream::test_client::{TestClient, json};

const FORM_PARAMS: &str = r#"{"message":"m"}"#;
const URL_PARAMS: &str = r#"{"mode":"url","url":"https://x"}"#;

fn request(key: &str, method: &str, params: &str) -> InputRequest {
    InputRequest {
        key: key.to_owned(),
        method: method.to_owned(),
        params: Some(json(params)),
    }
}

fn elicitation(params: &str) -> InputRequest {
    request("e", "elicitation/create", params)
}

#[test]
fn a_client_answers_only_what_it_has_declared() {
    let cases = [
        ("{}", elicitation(FORM_PARAMS), false),
        (r#"{"elicitation":{}}"#, elicitation(FORM_PARAMS), true),
        (
            r#"{"elicitation":{"form":{}}}"#,
            elicitation(FORM_PARAMS),
            true,
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            elicitation(FORM_PARAMS),
            false,
        ),
        (r#"{"elicitation":{}}"#, elicitation(URL_PARAMS), false),
        (
            r#"{"elicitation":{"url":{}}}"#,
            elicitation(URL_PARAMS),
            true,
        ),
        (
            r#"{"sampling":{}}"#,
            request("s", "sampling/createMessage", "{}"),
            true,
        ),
        (r#"{"roots":{}}"#, request("r", "roots/list", "{}"), true),
        (r#"{"roots":{}}"#, request("x", "x/other", "{}"), false),
    ];
    for (declared, request, expected) in cases {
        let client = TestClient::new(Era::Modern, declared).handle();
        let answering = Answerer {
            client: &client,
            roots: None,
        };
        let can = answering.client_can_answer(std::slice::from_ref(&request));
        assert_eq!(can, expected, "{declared} {request:?}");
    }
}

#[tokio::test]
async fn answers_have_the_keys_of_their_questions() {
    let mut client = TestClient::new(Era::Legacy, r#"{"elicitation":{"form":{},"url":{}}}"#);
    client.answer = Some(r#"{"action":"decline"}"#);
    let asked = Arc::clone(&client.asked);
    let client = client.handle();
    let roots = json(r#"{"roots":[]}"#);
    let answering = Answerer {
        client: &client,
        roots: Some(roots),
    };
    let requests = [
        request("1", "roots/list", "{}"),
        request("a b", "elicitation/create", FORM_PARAMS),
        request("url", "elicitation/create", URL_PARAMS),
    ];
    let responses = answering.ask(&requests).await.unwrap();
    assert_eq!(
        responses.as_str(),
        r#"{"1":{"roots":[]},"a b":{"action":"decline"},"url":{"action":"decline"}}"#
    );
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0], FORM_PARAMS);
    let id = json(&asked[1]).member("elicitationId").unwrap();
    assert_eq!(id.as_text().unwrap().len(), 32);
}

#[tokio::test]
async fn unanswerable_questions_are_refused_without_asking() {
    let client = TestClient::new(Era::Legacy, r#"{"elicitation":{}}"#);
    let asked = Arc::clone(&client.asked);
    let client = client.handle();
    let answering = Answerer {
        client: &client,
        roots: None,
    };
    let requests = [
        elicitation(FORM_PARAMS),
        request("u", "elicitation/create", URL_PARAMS),
        request("s", "sampling/createMessage", "{}"),
    ];
    let Err(CallError::Refused { error, .. }) = answering.ask(&requests).await else {
        panic!("it cannot be answered");
    };
    assert_eq!(
        error.as_str(),
        r#"{"code":-32021,"message":"the client cannot answer what the server asks","data":{"requiredCapabilities":{"elicitation":{"url":{}},"sampling":{}}}}"#
    );
    assert!(asked.lock().unwrap().is_empty());
    let unanswered = answering.ask(&requests[..1]).await;
    assert!(matches!(unanswered, Err(CallError::Unanswered { .. })));
}
