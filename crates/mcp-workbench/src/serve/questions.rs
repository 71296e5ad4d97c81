//! The questions of servers to a legacy client, under our own ids, until the client answers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use rawjson::{ObjectText, RawJson};
use tokio::sync::oneshot;

use super::{
    output::ClientOutput,
    replica::{HandleOwner, Replica},
};
use crate::{
    call::{AnswerFuture, Question},
    seal::SealPurpose,
    sync::lock,
    wire::{self, Answer, RequestId, Response},
};

/// The questions to one client that are not answered yet.
pub(super) struct Questions {
    replica: Arc<Replica>,
    open: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    asked: AtomicU64,
}

impl Questions {
    pub(super) fn new(replica: Arc<Replica>) -> Self {
        Self {
            replica,
            open: Mutex::default(),
            asked: AtomicU64::new(0),
        }
    }

    /// Asks a question on `output`; dropping the future withdraws it.
    pub(super) fn ask(
        self: &Arc<Self>,
        question: Question,
        params: Option<&RawJson>,
        output: ClientOutput,
    ) -> AnswerFuture {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let id = self.id(number);
        let (answer, answered) = oneshot::channel();
        // Before the question is sent, so that no answer can come too early.
        self.open().insert(number, answer);
        let nothing = ObjectText::new().finish();
        output.send(wire::named_request(
            &id,
            question.method(),
            params.unwrap_or(&nothing),
        ));
        let mut withdraw = Withdraw {
            questions: Arc::clone(self),
            output,
            number,
            id,
        };
        Box::pin(async move {
            let answer = answered.await.ok();
            withdraw.answered();
            answer
        })
    }

    /// Begins with ids that no earlier host of the client has used, so that a late answer to one of its questions is not taken
    /// for another.
    #[cfg(unix)]
    pub(super) fn resume(&self) {
        let now = std::time::SystemTime::now();
        let since = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        // Microseconds are exact in JavaScript.
        let first = u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 2);
        self.asked.store(first, Ordering::Relaxed);
    }

    /// Takes an answer of the client.
    pub(super) fn take(&self, response: Response) {
        let number = response.id.as_ref().and_then(|id| self.number(id));
        let asker = number.and_then(|number| self.open().remove(&number));
        if let Some(asker) = asker {
            // The server may have withdrawn the question just now.
            let _ = asker.send(response.answer);
        }
    }

    /// Returns the id of a question. If a session can be in several processes, it names the process.
    fn id(&self, number: u64) -> RequestId {
        let id = if self.replica.has_others() {
            RawJson::of(&self.replica.handle(SealPurpose::Question, number))
        } else {
            RawJson::of(&number)
        };
        RequestId::from_json(id).expect("a text or a number")
    }

    fn number(&self, id: &RequestId) -> Option<u64> {
        if !self.replica.has_others() {
            return id.as_u64();
        }
        match self
            .replica
            .place(SealPurpose::Question, &id.to_json().as_text()?)?
        {
            HandleOwner::Here(number) => Some(number),
            HandleOwner::Elsewhere(_) => None,
        }
    }

    /// Fails all questions, because the client has disconnected.
    pub(super) fn give_up(&self) {
        // A dropped sender ends the wait of its server.
        self.open().clear();
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        lock(&self.open)
    }
}

/// Cancels a question at the client, unless it was answered.
struct Withdraw {
    questions: Arc<Questions>,
    output: ClientOutput,
    number: u64,
    id: RequestId,
}

impl Withdraw {
    fn answered(&mut self) {
        self.questions.open().remove(&self.number);
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        if self.questions.open().remove(&self.number).is_some() {
            let params = ObjectText::new()
                .raw("requestId", &self.id.to_json())
                .finish();
            self.output
                .send(wire::notification("notifications/cancelled", Some(&params)));
        }
    }
}
