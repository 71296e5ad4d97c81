//! A client for unit tests with the capabilities that the test wants. It gives every question the same answer.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rawjson::RawJson;

use crate::{
    call::{
        AnswerFuture, Call, CallContext, CallReports, CallRequest, ClientCapabilities,
        ClientHandle, ClientId, Declaration, Owner, Principal, Question, Recipient, RoomFuture,
    },
    era::Era,
    wire::{Answer, Frame},
};

/// A client that only answers questions.
#[derive(Clone)]
pub(crate) struct TestClient {
    pub(crate) id: u64,
    pub(crate) era: Era,
    pub(crate) principal: Principal,
    pub(crate) capabilities: &'static str,
    pub(crate) log_level: Option<&'static str>,
    pub(crate) progress_token: Option<&'static str>,
    /// The result for every question; `None` if it does not answer.
    pub(crate) answer: Option<&'static str>,
    /// Set if an oversized result causes a panic.
    pub(crate) panics_over_budget: bool,
    /// The parameters of the questions that it got.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl TestClient {
    pub(crate) fn new(era: Era, capabilities: &'static str) -> Self {
        Self {
            id: 0,
            era,
            principal: Principal::Anybody,
            capabilities,
            log_level: None,
            progress_token: None,
            answer: None,
            panics_over_budget: false,
            asked: Arc::default(),
        }
    }

    pub(crate) fn handle(self) -> Arc<dyn ClientHandle> {
        Arc::new(self)
    }

    /// Creates a call of the client.
    pub(crate) fn call(self) -> Call {
        Call {
            request: CallRequest::Relayed {
                method: "tools/call",
                params: json("{}"),
            },
            context: CallContext {
                client: self.handle(),
                meta: None,
                retry: None,
                reports: CallReports::default(),
            },
        }
    }
}

pub(crate) fn json(text: &str) -> RawJson {
    RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

impl ClientHandle for TestClient {
    fn lasting(&self) -> Arc<dyn ClientHandle> {
        self.clone().handle()
    }

    fn is_full(&self) -> bool {
        false
    }

    fn room(&self) -> RoomFuture {
        Box::pin(std::future::ready(()))
    }

    fn id(&self) -> ClientId {
        ClientId(self.id)
    }

    fn principal(&self) -> Principal {
        self.principal
    }

    fn era(&self) -> Era {
        self.era
    }

    fn progress_token(&self) -> Option<RawJson> {
        self.progress_token.map(json)
    }

    fn declaration(&self) -> Arc<Declaration> {
        Arc::new(Declaration {
            capabilities: ClientCapabilities::of(Some(json(self.capabilities))),
            log_level: self.log_level,
        })
    }

    fn recipient(&self) -> Recipient {
        assert!(
            !self.panics_over_budget,
            "a bug in the last steps of a call"
        );
        Recipient {
            owner: Owner::of(self.principal, self.era, self.id()),
            knows_links: true,
        }
    }

    fn notify(&self, _: Frame) {}

    fn log(&self, _: &RawJson) {}

    fn ask(&self, _: Question, params: Option<&RawJson>) -> AnswerFuture {
        let params = params.map_or_else(String::new, |params| params.as_str().to_owned());
        self.asked.lock().unwrap().push(params);
        let answer = self.answer.map(|answer| Answer::Result(json(answer)));
        Box::pin(std::future::ready(answer))
    }
}
