//! The latest calls with their messages on both hops, for the page and its commands. It reads the event stream from the
//! first time that somebody looks, and keeps a bounded number of calls and bytes, without secrets.

mod note;
mod record;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::watch;

pub(crate) use note::Note;
pub(crate) use record::CallRecord;

use crate::{
    events::{Event, EventDetail, Events, Reader},
    sync::lock,
};

/// The most calls that are stored.
const MAX_CALLS: usize = 500;
/// The most bytes of messages that are stored for all calls.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The most notes that are stored.
const MAX_NOTES: usize = 200;

/// The number of changes so far, by what changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Changes {
    pub calls: u64,
    pub servers: u64,
    pub approvals: u64,
    pub trust: u64,
}

/// The latest calls.
pub(crate) struct History {
    events: Arc<Events>,
    calls: Mutex<Calls>,
    notes: Mutex<VecDeque<Note>>,
    changes: watch::Sender<Changes>,
}

#[derive(Default)]
struct Calls {
    /// The calls in the order in which they began.
    records: VecDeque<CallRecord>,
    bytes: usize,
}

impl History {
    /// Starts recording calls.
    pub(crate) fn begin(events: &Arc<Events>) -> Arc<Self> {
        let history = Arc::new(Self {
            events: Arc::clone(events),
            calls: Mutex::default(),
            notes: Mutex::default(),
            changes: watch::channel(Changes::default()).0,
        });
        events.subscribe(Arc::clone(&history) as Arc<dyn Reader>);
        history
    }

    /// Returns all calls without their messages, oldest first.
    pub(crate) fn summaries(&self) -> Vec<CallRecord> {
        let calls = self.calls();
        calls.records.iter().map(CallRecord::summary).collect()
    }

    /// Returns a call with its messages.
    pub(crate) fn call(&self, id: u64) -> Option<CallRecord> {
        let calls = self.calls();
        calls.records.iter().find(|it| it.id == id).cloned()
    }

    /// Returns what happened besides calls, oldest first.
    pub(crate) fn notes(&self) -> Vec<Note> {
        lock(&self.notes).iter().cloned().collect()
    }

    /// Subscribes to the numbers of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut CallRecord)) {
        let mut calls = self.calls();
        // Calls that end are among the latest.
        let Some(record) = calls.records.iter_mut().rev().find(|it| it.id == id) else {
            return;
        };
        let before = record.bytes();
        change(record);
        let after = record.bytes();
        // Added first: the numbers are unsigned, and a record may become smaller.
        calls.bytes = calls.bytes + after - before;
        calls.fit();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        lock(&self.calls)
    }
}

impl Calls {
    fn add(&mut self, record: CallRecord) {
        self.bytes += record.bytes();
        self.records.push_back(record);
        self.fit();
    }

    /// Drops the oldest calls until the bounds hold.
    fn fit(&mut self) {
        while (self.records.len() > MAX_CALLS || self.bytes > MAX_BYTES)
            && let Some(oldest) = self.records.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }
}

impl Reader for History {
    fn detail(&self) -> EventDetail {
        EventDetail::Messages
    }

    fn take(&self, event: &Event<'_>) {
        let secrets = self.events.secrets();
        match event {
            Event::OperationBegan(operation) => {
                self.calls().add(CallRecord::begin(operation, &secrets));
            }
            Event::OperationEnded(end) => {
                self.change(end.operation.id, |record| record.end(end, &secrets));
            }
            Event::HopBegan(hop) => self.change(hop.operation, |record| record.begin_hop(hop)),
            Event::HopEnded(end) => {
                self.change(end.hop.operation, |record| record.end_hop(end, &secrets));
            }
            Event::Budget(cut) => {
                self.change(cut.operation, |record| record.cut_bytes = Some(cut.bytes));
            }
            Event::Server(_)
            | Event::Approval(_)
            | Event::Trust(_)
            | Event::Question(_)
            | Event::Session(_) => {}
        }
        if let Some(note) = Note::of(event, &secrets) {
            let mut notes = lock(&self.notes);
            if notes.len() >= MAX_NOTES {
                notes.pop_front();
            }
            notes.push_back(note);
        }
        self.changes.send_modify(|changes| {
            let count = match event {
                Event::Server(_) | Event::Session(_) => &mut changes.servers,
                Event::Approval(_) | Event::Question(_) => &mut changes.approvals,
                Event::Trust(_) => &mut changes.trust,
                _ => &mut changes.calls,
            };
            *count += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{CallOutcome, EventClient, OperationReply, OperationStart};
    use rawjson::RawJson;

    fn begin(events: &Arc<Events>, params: &str) -> crate::events::OperationGuard {
        let params = RawJson::parse(&params.to_owned().into()).unwrap();
        events.begin(OperationStart {
            request_id: None,
            method: "tools/list".into(),
            target: None,
            tool: None,
            arguments: None,
            params: Some(&params),
            meta: None,
            client: EventClient::unknown(),
        })
    }

    #[test]
    fn calls_and_bytes_are_bounded() {
        let events = Arc::<Events>::default();
        let history = History::begin(&events);
        for _ in 0..MAX_CALLS + 5 {
            begin(&events, "{}").end(CallOutcome::Ok(2), None);
        }
        assert_eq!(history.summaries().len(), MAX_CALLS);
        assert_eq!(history.summaries()[0].id, 6, "the oldest are dropped");
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(60_000));
        for _ in 0..300 {
            begin(&events, &large).end(CallOutcome::Ok(2), None);
        }
        let calls = history.calls();
        assert!(calls.bytes <= MAX_BYTES, "{}", calls.bytes);
        let sum: usize = calls.records.iter().map(CallRecord::bytes).sum();
        assert_eq!(sum, calls.bytes);
    }

    #[test]
    fn a_call_is_kept_with_its_messages_and_listed_without() {
        let events = Arc::<Events>::default();
        let history = History::begin(&events);
        let reply = RawJson::parse(&r#"{"tools":[]}"#.into()).unwrap();
        begin(&events, r#"{"cursor":"x"}"#)
            .end(CallOutcome::Ok(12), Some(OperationReply::Result(&reply)));
        let whole = serde_json::to_value(history.call(1).unwrap()).unwrap();
        assert_eq!(whole["request"], serde_json::json!({"cursor": "x"}));
        assert_eq!(whole["reply"], serde_json::json!({"tools": []}));
        assert_eq!(whole["outcome"], "ok");
        let listed = serde_json::to_value(&history.summaries()[0]).unwrap();
        assert!(listed.get("request").is_none(), "{listed}");
        assert_eq!(history.changes().borrow().calls, 2);
    }
}
