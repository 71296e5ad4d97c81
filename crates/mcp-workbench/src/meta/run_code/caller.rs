//! The client of a run, as servers see it while its script calls them. Questions go to the client of the run; results stay
//! in the workbench, and the progress of calls becomes progress of the run.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use rawjson::{ObjectText, RawJson};
use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

use crate::{
    call::{
        AnswerFuture, Carrier, ClientHandle, ClientId, ClientIdentity, Declaration, Principal,
        Question, Recipient, RoomFuture, UserWait,
    },
    era::Era,
    sync::lock,
    visible::visible,
    wire::{self, Frame},
};

/// The shortest time between two reports of progress. Many calls may report at once.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The number of characters of the message of a server that a report of progress shows.
const MAX_MESSAGE: usize = 200;

/// A run, as far as its calls share it.
pub(super) struct SharedRun {
    /// The id of the run, for the audit log.
    pub(super) id: Arc<str>,
    /// The number of questions and waits for the user that are open. The time of the run stands still meanwhile.
    pub(super) open_questions: watch::Sender<usize>,
    pub(super) began: Instant,
    /// The time of the last report of progress.
    pub(super) reported: Mutex<Option<Instant>>,
}

impl SharedRun {
    /// Sends progress to a client that wants it, at most one report in [`PROGRESS_INTERVAL`].
    pub(super) fn report(&self, client: &dyn ClientHandle, message: &str) {
        let Some(token) = client.progress_token() else {
            return;
        };
        // Held until the report is sent: progress must only grow.
        let mut reported = lock(&self.reported);
        let now = Instant::now();
        if reported.is_some_and(|last| now < last + PROGRESS_INTERVAL) {
            return;
        }
        *reported = Some(now);
        let seconds = Duration::as_secs_f64(&(now - self.began));
        let params = ObjectText::new()
            .raw("progressToken", &token)
            .member("progress", &((seconds * 1000.0).round() / 1000.0))
            .member("message", message);
        client.notify(wire::notification(
            "notifications/progress",
            Some(&params.finish()),
        ));
    }
}

/// A call of a script, as far as its caller knows it.
pub(super) struct SharedCall {
    /// The function as a script writes it.
    pub(super) name: String,
    /// The number of waits for the user that are open. The server does not run the call meanwhile.
    waits: AtomicUsize,
}

impl SharedCall {
    pub(super) fn new(name: String) -> Self {
        let waits = AtomicUsize::new(0);
        Self { name, waits }
    }

    /// Returns whether the call waits for the user, and is not at its server.
    pub(super) fn waits_for_user(&self) -> bool {
        self.waits.load(Ordering::Relaxed) > 0
    }
}

/// The caller of a call of a script.
pub(super) struct ScriptCaller {
    pub(super) client: Arc<dyn ClientHandle>,
    pub(super) run: Arc<SharedRun>,
    pub(super) call: Arc<SharedCall>,
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

/// A wait of a call for the user.
struct OpenWait {
    call: Arc<SharedCall>,
    _question: OpenQuestion,
}

impl Drop for OpenWait {
    fn drop(&mut self) {
        self.call.waits.fetch_sub(1, Ordering::Relaxed);
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

    fn user(&self) -> Option<Arc<str>> {
        self.client.user()
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

    fn session(&self) -> Option<Arc<str>> {
        self.client.session()
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

    fn declaration(&self) -> Arc<Declaration> {
        self.client.declaration()
    }

    fn progress_token(&self) -> Option<RawJson> {
        self.client.progress_token()
    }

    fn notify(&self, frame: Frame) {
        self.client.notify(frame);
    }

    /// The progress of several calls at once would not grow, so it becomes progress of the run.
    fn report_progress(&self, params: &RawJson) {
        let text = |name: &str| Some(params.member(name)?.as_text()?.into_owned());
        let number = |name: &str| Some(params.member(name)?.as_str().to_owned());
        let message = text("message").unwrap_or_else(|| {
            let done = number("progress").unwrap_or_default();
            match number("total") {
                Some(total) => format!("{done} of {total}"),
                None => done,
            }
        });
        let message: String = message.chars().take(MAX_MESSAGE).collect();
        let message = format!("{}: {message}", self.call.name);
        self.run.report(&*self.client, &visible(&message));
    }

    fn lasting(&self) -> Arc<dyn ClientHandle> {
        Arc::new(Self {
            client: self.client.lasting(),
            run: Arc::clone(&self.run),
            call: Arc::clone(&self.call),
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
        let answer = self.client.ask(question, params);
        let question = OpenQuestion::new(&self.run);
        Box::pin(async move {
            let answer = answer.await;
            // Named here so that the future owns it: the question also ends if nobody waits for the answer any more.
            drop(question);
            answer
        })
    }

    /// Those who ask wait for the user meanwhile, so the question is not counted again.
    fn ask_user(&self, params: &RawJson) -> AnswerFuture {
        self.client.ask_user(params)
    }

    fn wait_for_user(&self) -> Option<UserWait> {
        self.call.waits.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(OpenWait {
            call: Arc::clone(&self.call),
            _question: OpenQuestion::new(&self.run),
        }))
    }
}
