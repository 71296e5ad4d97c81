//! The audit log: one line of JSON per call, written by a thread of its own, so that a slow or full disk delays no
//! call. Calls that cannot be recorded are counted, and the number is recorded as soon as the log can be written.
//!
//! The log reads the end of every call from the event stream. Unlike other readers it loses none while its buffer has
//! room.

mod file;
mod line;
mod reader;
mod record;
mod shape;
mod writer;

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

pub(crate) use line::{redact_and_cut, write_redacted};
pub(crate) use reader::{AuditLine, Filter, LogReader};
use record::{LineFormat, Record};
use writer::Writer;

use crate::{
    config::{Audit, Config},
    events::{Event, EventDetail, Events, Reader},
    sync::lock,
};

/// Time limit for writing the last lines at the shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The audit log of a workbench, which may be off.
pub(crate) struct AuditLog {
    events: Arc<Events>,
    active: Mutex<Option<Arc<ActiveLog>>>,
}

/// An audit log that is on. It reads the event stream.
struct ActiveLog {
    audit: Audit,
    format: LineFormat,
    writer: Writer,
}

impl AuditLog {
    /// Creates a log of these events, which is off.
    pub(crate) fn new(events: &Arc<Events>) -> Self {
        Self {
            events: Arc::clone(events),
            active: Mutex::default(),
        }
    }

    /// Applies a configuration. Calls are recorded in the log that is on when they end.
    pub(crate) fn renew(&self, config: &Config) {
        let mut active = self.active();
        let next = config.audit.clone().map(|audit| {
            let format = LineFormat {
                secrets: Arc::clone(&self.events.secrets()),
                arguments: audit.arguments,
            };
            (audit, format)
        });
        let known = active.as_ref().map(|it| (&it.audit, &it.format));
        // An unchanged configuration must not restart the writer.
        if known == next.as_ref().map(|(audit, format)| (audit, format)) {
            return;
        }
        if let Some(log) = active.take() {
            self.events.unsubscribe(&(log as Arc<dyn Reader>));
        }
        *active = next.map(|(audit, format)| {
            let writer = Writer::start(audit.clone());
            let log = Arc::new(ActiveLog {
                audit,
                format,
                writer,
            });
            self.events.subscribe(Arc::clone(&log) as Arc<dyn Reader>);
            log
        });
    }

    /// Stops when all records are written, or [`CLOSE_TIMEOUT`] have passed.
    pub(crate) async fn close(&self) {
        // The lock is released before waiting.
        let last = self.active().take();
        if let Some(log) = last {
            self.events
                .unsubscribe(&(Arc::clone(&log) as Arc<dyn Reader>));
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, log.writer.close()).await;
        }
    }

    fn active(&self) -> MutexGuard<'_, Option<Arc<ActiveLog>>> {
        lock(&self.active)
    }
}

impl Reader for ActiveLog {
    fn detail(&self) -> EventDetail {
        EventDetail::Operations
    }

    fn take(&self, event: &Event<'_>) {
        if let Event::OperationEnded(end) = event
            && let Some(record) = Record::of(end)
        {
            self.writer
                .append(|line| record.write_line(line, &self.format));
        }
    }
}
