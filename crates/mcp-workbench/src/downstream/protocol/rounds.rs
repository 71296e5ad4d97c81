//! The rounds of a call to a modern server until there is a result for the caller: questions are put to the client
//! and the call is repeated with the answers, tasks are polled, and results are translated between the eras.

use std::time::Duration;

use rawjson::{ObjectText, RawJson};
use tokio::time::{Instant, sleep};

use crate::{
    alarm::timeout_at,
    call::{Call, Outcome, Question, Retry},
    downstream::{
        asks::{
            asking_server::AskingServer,
            questions::{Answerer, missing_capability, needed},
        },
        error::{CallError, TimeLimit},
        protocol::tasks,
        server::{FollowGuard, ServerHandle},
        session::{hops::report_question, reply::CompletedCall},
    },
    era::{
        Era, InputRequired, ResultType, result_type, to_legacy_result, to_modern_result,
        url_elicitations,
    },
    events::QuestionState,
};

/// Upper bound on the rounds of questions of one call.
const MAX_ROUNDS: usize = 10;
/// The pause before a call is repeated without a question; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Follows a call to a modern server until there is a result; its time counts from its sending. Dropping the future
/// withdraws open questions and tasks.
pub(crate) async fn follow(
    server: &ServerHandle,
    answered: CompletedCall,
) -> Result<RawJson, CallError> {
    let limit = server.about.entry().server.times.max_call;
    let began = answered.sent_at.unwrap_or_else(Instant::now);
    let followed = timeout_at(began + limit, follow_rounds(server, answered)).await;
    followed.unwrap_or(Err(CallError::Timeout {
        limit: TimeLimit::Total(limit),
        outcome: Outcome::Unknown,
    }))
}

async fn follow_rounds(
    server: &ServerHandle,
    mut answered: CompletedCall,
) -> Result<RawJson, CallError> {
    let mut rounds = 0;
    let mut pauses = 0;
    let mut followed = None;
    loop {
        let CompletedCall {
            call, answer, by, ..
        } = answered;
        let result = match answer {
            // First, so that each question names its server, whichever of the steps below passes it on.
            Ok(result) => asking(server).result(&result)?,
            Err(error) => return with_addresses(server, &call, error, by),
        };
        match result_type(&result) {
            ResultType::Complete => return Ok(for_client(server, &call, &result)),
            ResultType::Task => return tasks::follow(server, call, result).await,
            ResultType::Unknown => return Err(CallError::UnknownAnswer),
            ResultType::InputRequired => {}
        }
        let wanted = InputRequired::read(&result).ok_or(CallError::UnknownAnswer)?;
        let answering = answering(server, &call);
        // A modern client repeats the call itself, so no state has to be stored here.
        if call.context.client.era() == Era::Modern && answering.client_can_answer(&wanted.requests)
        {
            return Ok(result);
        }
        // A faulty server could ask forever, and every round may cost the user an answer.
        if rounds == MAX_ROUNDS {
            return Err(CallError::EndlessQuestions { rounds });
        }
        rounds += 1;
        // Between two rounds the server has no call, and would count as idle.
        followed.get_or_insert_with(|| FollowGuard::begin(server));
        let responses = if wanted.requests.is_empty() {
            // The server asks for nothing but a repetition, so it is given time.
            sleep(pause(pauses)).await;
            pauses += 1;
            None
        } else {
            Some(ask(server, &answering, &wanted).await?)
        };
        let state = wanted.state;
        answered = go_on(server, call, Retry { responses, state }).await?;
    }
}

/// Puts the questions of a server to the client.
async fn ask(
    server: &ServerHandle,
    answering: &Answerer<'_>,
    wanted: &InputRequired,
) -> Result<RawJson, CallError> {
    let report = |state| {
        let questions = wanted.requests.iter();
        for question in questions.filter_map(|it| Question::named(&it.method)) {
            report_question(&server.about, question, state);
        }
    };
    report(QuestionState::Asked);
    let answered = answering.ask(&wanted.requests).await;
    report(match answered {
        Ok(_) => QuestionState::Answered,
        Err(_) => QuestionState::Unanswered,
    });
    answered
}

/// Returns the parties that answer the server's questions during a call.
pub(crate) fn answering<'a>(server: &'a ServerHandle, call: &'a Call) -> Answerer<'a> {
    Answerer {
        client: &call.context.client,
        roots: server.about.entry().roots.clone(),
    }
}

/// Repeats a call with the answers to the server's questions.
async fn go_on(
    server: &ServerHandle,
    mut call: Call,
    retry: Retry,
) -> Result<CompletedCall, CallError> {
    call.context.retry = Some(Box::new(retry));
    call.context.reports.restart();
    let answered = server
        .call_once(call)
        .await
        .map_err(CallError::after_it_began)?;
    Ok(CompletedCall {
        answer: answered.answer.map_err(CallError::after_it_began),
        ..answered
    })
}

/// Returns the pause before a repetition: zero at first, then growing.
fn pause(pauses: u32) -> Duration {
    match pauses {
        0 => Duration::ZERO,
        _ => FIRST_PAUSE * (1 << (pauses - 1).min(6)),
    }
}

/// Translates the result of a modern server into the client's era.
fn for_client(server: &ServerHandle, call: &Call, result: &RawJson) -> RawJson {
    let method = call.request.method();
    let is_task = method.starts_with("tasks/");
    let result = if is_task {
        tasks::with_sealed_name(&server.about, &call.context.client, result)
    } else {
        result.clone()
    };
    let differs = is_task
        || matches!(
            method,
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete"
        );
    match call.context.client.era() {
        Era::Legacy if differs => to_legacy_result(method, &result),
        Era::Legacy | Era::Modern => result,
    }
}

/// Returns the result of a task as the response to its call.
pub(crate) fn result_of_task(call: &Call, result: &RawJson) -> RawJson {
    let method = call.request.method();
    match call.context.client.era() {
        Era::Legacy => to_legacy_result(method, result),
        Era::Modern => to_modern_result(method, result),
    }
}

pub(crate) fn asking(server: &ServerHandle) -> AskingServer {
    AskingServer::of(&server.about.entry())
}

/// Handles an error that sends the user to addresses: for a modern client, such an error of a legacy server becomes a
/// question.
fn with_addresses(
    server: &ServerHandle,
    call: &Call,
    error: CallError,
    by: Option<Era>,
) -> Result<RawJson, CallError> {
    let CallError::Refused {
        error: sent,
        code,
        message,
    } = error
    else {
        return Err(error);
    };
    let sent = asking(server).error(&sent)?;
    let wanted = url_elicitations(&sent);
    match (wanted, by, call.context.client.era()) {
        (Some(wanted), Some(Era::Legacy), Era::Modern) => as_question(call, &wanted),
        _ => Err(CallError::Refused {
            error: sent,
            code,
            message,
        }),
    }
}

/// Returns a question to a modern client that sends its user to addresses.
fn as_question(call: &Call, wanted: &InputRequired) -> Result<RawJson, CallError> {
    let answering = Answerer {
        client: &call.context.client,
        roots: None,
    };
    if answering.client_can_answer(&wanted.requests) {
        return Ok(wanted.to_result());
    }
    let question = Question::Elicitation;
    let first = wanted.requests.first();
    let needed = first.map_or_else(|| ObjectText::new().finish(), |it| needed(question, it));
    let required = ObjectText::new().raw(question.capability(), &needed);
    Err(missing_capability(&required.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::test_client::{TestClient, json};

    fn asked(capabilities: &'static str) -> Result<RawJson, CallError> {
        let call = TestClient::new(Era::Modern, capabilities).call();
        let error = r#"{"code":-32042,"message":"go","data":{"elicitations":[{"mode":"url","url":"https://x","elicitationId":"k"}]}}"#;
        as_question(&call, &url_elicitations(&json(error)).unwrap())
    }

    #[test]
    fn url_elicitation_errors_become_questions_for_modern_clients() {
        assert_eq!(
            asked(r#"{"elicitation":{"url":{}}}"#).unwrap().as_str(),
            r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","url":"https://x"}}}}"#
        );
        let Err(CallError::Refused { error, .. }) = asked(r#"{"elicitation":{}}"#) else {
            panic!("it cannot be answered");
        };
        let data = error.member("data").unwrap();
        assert_eq!(
            data.as_str(),
            r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#
        );
        assert_eq!(
            url_elicitations(&json(r#"{"code":-32000,"message":"no"}"#)),
            None
        );
    }

    #[test]
    fn the_pause_before_a_repetition_grows() {
        let pauses: Vec<_> = (0..4).map(|it| pause(it).as_millis()).collect();
        assert_eq!(pauses, [0, 50, 100, 200]);
        assert_eq!(pause(u32::MAX), FIRST_PAUSE * 64);
    }
}
