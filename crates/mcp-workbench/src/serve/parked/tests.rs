//! Calls that wait, on a clock that only moves when nothing else does.

use super::*;
use crate::{
    call::{ClientCapabilities, ClientHandle, ClientIdentity, Question},
    serve::{
        Whereabouts,
        exchange::{Attached, ModernCaller},
        output::{ClientOutput, PipeOutput, QueuedFrames},
    },
    wire::{Answer, Message},
};

fn request(params: &str) -> Request {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    match Message::parse(&text.into()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn attached() -> (Attached, QueuedFrames) {
    let (output, frames) = PipeOutput::channel();
    let attached = Attached {
        identity: ClientIdentity::default(),
        output: ClientOutput::Pipe(output),
        log_level: None,
        progress_token: None,
    };
    (attached, frames)
}

fn everything() -> ClientCapabilities {
    let declared = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;
    ClientCapabilities::of(Some(RawJson::parse(&declared.into()).unwrap()))
}

/// A call that asks so many questions at once and answers with what it was told.
fn asking(questions: usize) -> RunningCall {
    let (attached, _) = attached();
    let exchange = Exchange::new(
        (Principal::Anybody, Whereabouts::Anywhere),
        attached,
        everything(),
        true,
    );
    let client = ModernCaller(Arc::clone(&exchange));
    RunningCall::new(exchange, async move {
        let asked: Vec<_> = (0..questions)
            .map(|_| client.ask(Question::Elicitation, None))
            .collect();
        let mut told = String::new();
        for answer in asked {
            match answer.await {
                Some(Answer::Result(answer)) => told.push_str(answer.as_str()),
                _ => told.push('-'),
            }
        }
        Reply::Error {
            code: 0,
            message: told,
        }
    })
}

async fn park(calls: &ParkedCalls, principal: Principal) -> RawJson {
    match calls.run(asking(1), &request("{}"), principal).await {
        Reply::Result(result) => result.member("requestState").unwrap(),
        _ => panic!("nothing was asked"),
    }
}

fn take(calls: &ParkedCalls, state: &RawJson, principal: Principal) -> Result<RunningCall, String> {
    let Handle::Ours(handle) = calls.handle(Some(state)) else {
        return Err("not ours".to_owned());
    };
    calls
        .take(handle, &request("{}"), principal)
        .map_err(|refusal| match refusal {
            Reply::Error { message, .. } => message,
            Reply::Result(_) | Reply::ErrorAsSent(_) => panic!("another refusal"),
        })
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_while_and_then_it_is_over() {
    let calls = ParkedCalls::default();
    let early = park(&calls, Principal::Anybody).await;
    tokio::select! {
        () = calls.expire() => {}
        () = sleep(PATIENCE.saturating_sub(Duration::from_secs(1))) => {}
    }
    let late = park(&calls, Principal::Anybody).await;
    assert_eq!(calls.table().calls.len(), 2);
    tokio::select! {
        () = calls.expire() => {}
        () = sleep(Duration::from_secs(2)) => {}
    }
    let refused = take(&calls, &early, Principal::Anybody).err().unwrap();
    assert!(refused.contains("came too late"), "{refused}");
    assert!(take(&calls, &late, Principal::Anybody).is_ok());
    assert!(
        take(&calls, &late, Principal::Anybody).is_err(),
        "used twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_its_principals_and_its_requests() {
    let calls = ParkedCalls::default();
    let state = park(&calls, Principal::Holder(1)).await;
    for other in [Principal::Anybody, Principal::Holder(0)] {
        assert!(take(&calls, &state, other).is_err());
    }
    let Handle::Ours(handle) = calls.handle(Some(&state)) else {
        panic!("not ours");
    };
    let other = calls.take(handle, &request(r#"{"a":1}"#), Principal::Holder(1));
    assert!(other.is_err(), "another request");
    let same = r#"{"_meta":{"x":1},"inputResponses":{},"requestState":"s"}"#;
    let same = calls.take(handle, &request(same), Principal::Holder(1));
    assert!(same.is_ok());
}

#[tokio::test(start_paused = true)]
async fn beyond_so_many_calls_of_one_principal_the_oldest_ends() {
    let calls = ParkedCalls::default();
    let other = park(&calls, Principal::Holder(0)).await;
    let mut states = Vec::new();
    for _ in 0..=MAX_PARKED {
        states.push(park(&calls, Principal::Anybody).await);
    }
    assert!(take(&calls, &states[0], Principal::Anybody).is_err());
    for state in &states[1..] {
        assert!(take(&calls, state, Principal::Anybody).is_ok());
    }
    assert!(take(&calls, &other, Principal::Holder(0)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_at_once_is_told_at_once_and_answered_in_parts() {
    let calls = ParkedCalls::default();
    let asked = calls
        .run(asking(2), &request("{}"), Principal::Anybody)
        .await;
    let Reply::Result(asked) = asked else {
        panic!("nothing was asked");
    };
    let keys: Vec<String> = InputRequired::read(&asked)
        .unwrap()
        .requests
        .into_iter()
        .map(|request| request.key)
        .collect();
    assert_eq!(keys.len(), 2);
    let mut state = asked.member("requestState").unwrap();
    for key in &keys {
        let call = take(&calls, &state, Principal::Anybody).unwrap();
        let (attached, _) = attached();
        call.exchange().attach(attached, everything());
        let answers = format!(r#"{{"{key}":{{"of":"{key}"}}}}"#);
        let answers = RawJson::parse(&answers.into()).unwrap();
        call.exchange().take_answers(Some(&answers));
        match calls.run(call, &request("{}"), Principal::Anybody).await {
            Reply::Result(asked) => {
                let left = InputRequired::read(&asked).unwrap().requests;
                assert_eq!(left[0].key, keys[1]);
                state = asked.member("requestState").unwrap();
            }
            Reply::Error { message, .. } => {
                let [first, second] = &keys[..] else { panic!() };
                let told = format!(r#"{{"of":"{first}"}}{{"of":"{second}"}}"#);
                assert_eq!(message, told);
            }
            Reply::ErrorAsSent(error) => panic!("{error:?}"),
        }
    }
    assert!(calls.table().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_answers_nobody_and_can_be_asked_nothing() {
    let calls = ParkedCalls::default();
    let state = park(&calls, Principal::Anybody).await;
    let call = take(&calls, &state, Principal::Anybody).unwrap();
    let client = ModernCaller(Arc::clone(call.exchange()));
    assert!(client.can_answer(Question::Roots));
    drop(call);
    assert!(!client.can_answer(Question::Roots));
    assert_eq!(client.progress_token(), None);
}
