//! The audit log: one line of JSON per call, written by a thread of its own, so that a slow or full disk delays no
//! call. Calls that cannot be recorded are counted, and the number is recorded as soon as the log can be written.
//!
//! A call that begins gets an [`AuditEntry`]. If the entry is dropped before its end, the call counts as
//! cancelled. While the log is off, a call only reads a flag.

mod file;
mod line;
mod reader;
mod record;
mod shape;
mod time;
mod writer;

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ident::ToolIdentifier;
use rawjson::RawJson;
pub(crate) use reader::{Filter, Line, LogReader};
pub(crate) use record::AuditOutcome;
use record::{LineFormat, Record};
pub(crate) use time::moment;
use writer::Writer;

use crate::{
    call::ClientHandle,
    config::{Audit, Config, Secrets, Transport},
    sync::lock,
};

/// Time limit for writing the last lines at the shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The audit log of a workbench, which may be off.
#[derive(Default)]
pub(crate) struct AuditLog {
    is_on: AtomicBool,
    active: Mutex<Option<Arc<ActiveLog>>>,
}

/// An audit log that is on.
struct ActiveLog {
    audit: Audit,
    format: Arc<LineFormat>,
    writer: Writer,
}

/// A call in progress. It is recorded when it ends, and as cancelled if it is dropped before.
pub(crate) struct AuditEntry {
    log: Arc<ActiveLog>,
    record: Option<Box<Record>>,
}

impl AuditLog {
    /// Returns the log that a configuration asks for.
    pub(crate) fn new(config: &Config) -> Self {
        let log = Self::default();
        log.renew(config);
        log
    }

    /// Returns true if calls are recorded.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Applies a changed configuration. Calls in progress are recorded in the log in which they began.
    pub(crate) fn renew(&self, config: &Config) {
        let mut active = self.active();
        let next = config.audit.clone().map(|audit| {
            let format = LineFormat {
                secrets: secrets_of(config),
                arguments: audit.arguments,
                client: config.client.clone(),
            };
            (audit, format)
        });
        let known = active.as_ref().map(|it| (&it.audit, &*it.format));
        // An unchanged configuration must not restart the writer.
        if known == next.as_ref().map(|(audit, format)| (audit, format)) {
            return;
        }
        // The flag is only a shortcut: `begin` reads the log itself under the lock.
        self.is_on.store(next.is_some(), Ordering::Relaxed);
        *active = next.map(|(audit, format)| {
            let format = Arc::new(format);
            let writer = Writer::start(audit.clone(), Arc::clone(&format));
            Arc::new(ActiveLog {
                audit,
                format,
                writer,
            })
        });
    }

    /// Begins the entry of a call; returns `None` if the log is off.
    pub(crate) fn begin(
        &self,
        tool: &ToolIdentifier,
        arguments: &RawJson,
        client: &dyn ClientHandle,
    ) -> Option<AuditEntry> {
        if !self.is_on() {
            return None;
        }
        let log = self.active().clone()?;
        let record = Box::new(Record::begin(tool, arguments, client, &log.format));
        Some(AuditEntry {
            log,
            record: Some(record),
        })
    }

    /// Stops when all records are written, or [`CLOSE_TIMEOUT`] have passed.
    pub(crate) async fn close(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        // The lock is released before waiting.
        let last = self.active().take();
        if let Some(log) = last {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, log.writer.close()).await;
        }
    }

    fn active(&self) -> MutexGuard<'_, Option<Arc<ActiveLog>>> {
        lock(&self.active)
    }
}

impl AuditEntry {
    /// Records the end of the call.
    pub(crate) fn end(mut self, outcome: AuditOutcome) {
        self.write(outcome);
    }

    fn write(&mut self, outcome: AuditOutcome) {
        if let Some(mut record) = self.record.take() {
            record.end(outcome);
            self.log.writer.write(record);
        }
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        self.write(AuditOutcome::Cancelled);
    }
}

/// Returns the values that the servers of a configuration take from variables.
fn secrets_of(config: &Config) -> Secrets {
    let mut secrets = Secrets::default();
    let servers = config.toolboxes.values().flat_map(|it| it.servers.values());
    for server in servers {
        match &server.transport {
            Transport::Stdio(launch) => secrets.merge(&launch.secrets),
            Transport::Remote(endpoint) => secrets.merge(&endpoint.secrets),
            Transport::Unset(_) => {}
        }
    }
    secrets
}
