//! The client of a run, as servers see it while its script calls them. Questions go to the client of the run; results and
//! progress stay in the workbench.

use std::sync::Arc;

use rawjson::RawJson;
use tokio::sync::watch;

use crate::{
    call::{
        AnswerFuture, Carrier, ClientCapabilities, ClientHandle, ClientId, ClientIdentity,
        Principal, Question, Recipient, RoomFuture,
    },
    era::Era,
    wire::Frame,
};

/// A run, as far as its calls share it.
pub(super) struct SharedRun {
    /// The id of the run, for the audit log.
    pub(super) id: Arc<str>,
    /// The number of questions that the client has not answered. The time of the run stands still meanwhile.
    pub(super) open_questions: watch::Sender<usize>,
}

/// The caller of the calls of a script.
pub(super) struct ScriptCaller {
    pub(super) client: Arc<dyn ClientHandle>,
    pub(super) run: Arc<SharedRun>,
}

/// A question that is open until this is dropped.
struct OpenQuestion(Arc<SharedRun>);

impl OpenQuestion {
    fn new(run: &Arc<SharedRun>) -> Self {
        run.open_questions.send_modify(|open| *open += 1);
        Self(Arc::clone(run))
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.open_questions.send_modify(|open| *open -= 1);
    }
}

impl ScriptCaller {
    fn counted(&self, answer: AnswerFuture) -> AnswerFuture {
        let question = OpenQuestion::new(&self.run);
        Box::pin(async move {
            let answer = answer.await;
            drop(question);
            answer
        })
    }
}

impl ClientHandle for ScriptCaller {
    fn id(&self) -> ClientId {
        self.client.id()
    }

    fn principal(&self) -> Principal {
        self.client.principal()
    }

    fn is_local(&self) -> bool {
        self.client.is_local()
    }

    fn identity(&self) -> Arc<ClientIdentity> {
        self.client.identity()
    }

    fn carrier(&self) -> Carrier {
        self.client.carrier()
    }

    fn revision(&self) -> Option<&'static str> {
        self.client.revision()
    }

    /// The workbench continues a call whose server asks or starts a task, as it does for legacy clients.
    fn era(&self) -> Era {
        Era::Legacy
    }

    fn own_era(&self) -> Era {
        self.client.own_era()
    }

    fn script_run(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.run.id))
    }

    fn capabilities(&self) -> ClientCapabilities {
        self.client.capabilities()
    }

    fn log_level(&self) -> Option<&'static str> {
        self.client.log_level()
    }

    /// The progress of several calls at once would not grow, so the run reports its own.
    fn progress_token(&self) -> Option<RawJson> {
        None
    }

    fn notify(&self, frame: Frame) {
        self.client.notify(frame);
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        Arc::new(Self {
            client: self.client.lasting(),
            run: Arc::clone(&self.run),
        })
    }

    fn is_full(&self) -> bool {
        self.client.is_full()
    }

    fn room(&self) -> RoomFuture {
        self.client.room()
    }

    fn log(&self, params: &RawJson) {
        self.client.log(params);
    }

    fn recipient(&self) -> Recipient {
        self.client.recipient()
    }

    fn can_answer(&self, question: Question) -> bool {
        self.client.can_answer(question)
    }

    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture {
        self.counted(self.client.ask(question, params))
    }

    fn ask_user(&self, params: &RawJson) -> AnswerFuture {
        self.counted(self.client.ask_user(params))
    }
}
