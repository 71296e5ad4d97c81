//! Exchanges that wait, on a clock that only moves when nothing else does.

use pretty_assertions::assert_eq;
use tokio::{io::DuplexStream, time::sleep};

use super::*;
use crate::{
    call::{ClientHandle, Question},
    era::{InputRequired, RequestMeta},
    serve::{
        batch::ReplyPlace,
        connection::Connection,
        modern::ModernRequest,
        test_pipe::{connect, read_message},
    },
    wire::{Answer, Message},
};

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{}}}"#;

fn request(params: &str) -> Request {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    match Message::parse(&text.into()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

/// A client that is connected, and the other end of its pipe.
struct Client {
    connection: Arc<Connection>,
    pipe: DuplexStream,
}

impl Client {
    fn new(principal: Principal) -> Self {
        let (connection, pipe) = connect(r#"{"toolboxes":{}}"#, principal);
        Self { connection, pipe }
    }

    fn parked(&self) -> &ParkedCalls {
        self.connection.parked()
    }

    /// Attaches a request to an exchange.
    fn attach(&self, exchange: &Arc<Exchange>) {
        let mut meta = RequestMeta::read(&RawJson::parse(&META.into()).unwrap());
        let mut said = ModernRequest::new(&mut meta, None).ok().unwrap();
        let place = ReplyPlace::Line(self.connection.output());
        assert!(exchange.attach(&self.connection, request("{}"), place, &mut said));
    }

    /// Returns an exchange that asks so many questions at once and replies with the answers.
    fn asking(&self, questions: usize) -> Arc<Exchange> {
        let exchange = Exchange::new(&self.connection, true);
        self.attach(&exchange);
        let client = Arc::clone(&exchange);
        exchange.run(Box::pin(async move {
            let asked: Vec<_> = (0..questions)
                .map(|_| client.ask(Question::Elicitation, None))
                .collect();
            let mut heard = String::new();
            for answer in asked {
                match answer.await {
                    Some(Answer::Result(answer)) => heard.push_str(answer.as_str()),
                    _ => heard.push('-'),
                }
            }
            Reply::Error {
                code: 0,
                message: heard,
            }
        }));
        exchange
    }

    /// Returns the next response that is written.
    async fn answer(&mut self) -> RawJson {
        read_message(&mut self.pipe).await
    }

    /// Returns the state that the client must return with its answers.
    async fn parked_state(&mut self) -> RawJson {
        let answer = self.answer().await;
        let result = answer.member("result").expect("nothing was asked");
        result.member("requestState").unwrap()
    }

    fn take(&self, state: &RawJson, principal: Principal) -> Result<Arc<Exchange>, String> {
        let Handle::Ours(handle) = self.parked().handle(Some(state)) else {
            return Err("not ours".to_owned());
        };
        let taken = self.parked().take(handle, &request("{}"), principal);
        taken.map_err(|refusal| match refusal {
            Reply::Error { message, .. } => message,
            _ => panic!("another refusal"),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_exchange_expires() {
    let mut client = Client::new(Principal::Anybody);
    client.asking(1);
    let early = client.parked_state().await;
    let connection = Arc::clone(&client.connection);
    let calls = connection.parked();
    tokio::select! {
        () = calls.expire() => {}
        () = sleep(PARKING_TIMEOUT.saturating_sub(Duration::from_secs(1))) => {}
    }
    client.asking(1);
    let late = client.parked_state().await;
    assert_eq!(calls.table().exchanges.len(), 2);
    tokio::select! {
        () = calls.expire() => {}
        () = sleep(Duration::from_secs(2)) => {}
    }
    let refused = client.take(&early, Principal::Anybody).err().unwrap();
    assert!(refused.contains("expired"), "{refused}");
    assert!(client.take(&late, Principal::Anybody).is_ok());
    assert!(
        client.take(&late, Principal::Anybody).is_err(),
        "used twice"
    );
}

#[tokio::test(start_paused = true)]
async fn an_exchange_belongs_to_its_principal_and_request() {
    let mut client = Client::new(Principal::Holder(1));
    client.asking(1);
    let state = client.parked_state().await;
    for other in [Principal::Anybody, Principal::Holder(0)] {
        assert!(client.take(&state, other).is_err());
    }
    let calls = client.parked();
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
async fn the_number_of_exchanges_of_a_principal_is_bounded() {
    let mut client = Client::new(Principal::Anybody);
    let mut states = Vec::new();
    let mut exchanges = Vec::new();
    for _ in 0..=MAX_PARKED {
        exchanges.push(client.asking(1));
        states.push(client.parked_state().await);
    }
    assert!(client.take(&states[0], Principal::Anybody).is_err());
    let first = &exchanges[0];
    assert!(
        !first.can_answer(Question::Roots),
        "it can be asked nothing"
    );
    for state in &states[1..] {
        assert!(client.take(state, Principal::Anybody).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_together_and_answered_in_parts() {
    let mut client = Client::new(Principal::Anybody);
    client.asking(2);
    let asked = client.answer().await.member("result").unwrap();
    let asked = InputRequired::read(&asked).unwrap();
    let keys: Vec<String> = asked.requests.into_iter().map(|it| it.key).collect();
    assert_eq!(keys.len(), 2);
    let mut state = asked.state.unwrap();
    for (index, key) in keys.iter().enumerate() {
        let exchange = client.take(&state, Principal::Anybody).unwrap();
        client.attach(&exchange);
        let answers = format!(r#"{{"{key}":{{"of":"{key}"}}}}"#);
        exchange.resume(Some(&RawJson::parse(&answers.into()).unwrap()));
        let answer = client.answer().await;
        if index == 0 {
            let left = InputRequired::read(&answer.member("result").unwrap()).unwrap();
            assert_eq!(left.requests[0].key, keys[1]);
            state = left.state.unwrap();
        } else {
            let [first, second] = &keys[..] else { panic!() };
            let heard = format!(r#"{{"of":"{first}"}}{{"of":"{second}"}}"#);
            let message = answer.member("error").unwrap().member("message").unwrap();
            assert_eq!(message.as_text().unwrap(), heard);
        }
    }
    assert!(client.parked().table().exchanges.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_comes_while_the_client_is_away_waits_for_it() {
    let mut client = Client::new(Principal::Anybody);
    let exchange = client.asking(1);
    let state = client.parked_state().await;
    exchange.reply(Reply::internal_error("done"));
    let exchange = client.take(&state, Principal::Anybody).unwrap();
    client.attach(&exchange);
    exchange.resume(None);
    let error = client.answer().await.member("error").unwrap();
    assert_eq!(error.member("message").unwrap().as_text().unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_answered_and_can_be_asked_nothing() {
    let client = Client::new(Principal::Anybody);
    let exchange = Exchange::new(&client.connection, true);
    client.attach(&exchange);
    exchange.run(Box::pin(std::future::pending()));
    assert!(exchange.can_answer(Question::Roots));
    client.connection.in_flight().cancel_all();
    client.connection.all_answered().await;
    assert!(!exchange.can_answer(Question::Roots));
}
