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

use super::output::ClientOutput;
use crate::{
    call::{AnswerFuture, Question},
    sync::lock,
    wire::{self, Answer, Response},
};

/// The questions to one client that are not answered yet.
#[derive(Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    asked: AtomicU64,
}

impl Questions {
    /// Asks a question on `output`; dropping the future withdraws it.
    pub(super) fn ask(
        self: &Arc<Self>,
        question: Question,
        params: Option<&RawJson>,
        output: ClientOutput,
    ) -> AnswerFuture {
        let id = self.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.open().insert(id, answer);
        let nothing = ObjectText::new().finish();
        output.send(wire::request(
            id,
            question.method(),
            params.unwrap_or(&nothing),
        ));
        let mut withdraw = Withdraw {
            questions: Arc::clone(self),
            output,
            id,
        };
        Box::pin(async move {
            let answer = answered.await.ok();
            withdraw.answered();
            answer
        })
    }

    /// Takes an answer of the client.
    pub(super) fn take(&self, response: Response) {
        let id = response.id.as_ref().and_then(wire::RequestId::as_u64);
        let asker = id.and_then(|id| self.open().remove(&id));
        if let Some(asker) = asker {
            // The server may have withdrawn the question just now.
            let _ = asker.send(response.answer);
        }
    }

    /// Fails all questions, because the client has disconnected.
    pub(super) fn give_up(&self) {
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
    id: u64,
}

impl Withdraw {
    fn answered(&mut self) {
        self.questions.open().remove(&self.id);
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        if self.questions.open().remove(&self.id).is_some() {
            let params = ObjectText::new().member("requestId", &self.id).finish();
            self.output
                .send(wire::notification("notifications/cancelled", Some(&params)));
        }
    }
}
