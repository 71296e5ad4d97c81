//! The audit log: one line of JSON a call, written by a thread of its own, so that a slow or full disk is nobody's
//! problem. What cannot be noted is counted, and the number is noted as soon as something can be.
//!
//! A call that begins gets a [`AuditEntry`], which is told the end; one that is dropped before that was cancelled. Where
//! nothing is to be noted, there is none, and finding that out is one look at a flag.

mod file;
mod reader;
mod record;
mod shape;
mod time;
mod writer;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

pub use reader::{Filter, Line, LogReader};
pub use record::Ended;
use record::Record;
pub use time::moment;
use writer::Writer;

use crate::{
    call::ClientHandle,
    config::{Audit, Config, NotedArguments, Secrets, Transport},
    ident::ToolIdentifier,
    wire::RawJson,
};

/// How long the last lines may take to be written at the end.
const LAST_LINES: Duration = Duration::from_millis(500);

/// Where calls are noted.
#[derive(Default)]
pub struct AuditLog {
    is_on: AtomicBool,
    now: Mutex<Option<Arc<Running>>>,
}

/// A log that is written.
struct Running {
    audit: Audit,
    /// What must not be in it.
    secrets: Secrets,
    writer: Writer,
}

/// A call that is under way. It is noted when it ends, and as cancelled if it is dropped before.
pub struct AuditEntry {
    log: Arc<Running>,
    record: Option<Record>,
    began: Instant,
}

impl AuditLog {
    /// The log that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let log = Self::default();
        log.renew(config);
        log
    }

    /// Whether calls are noted.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Takes up what another configuration says.
    pub fn renew(&self, config: &Config) {
        let mut now = self.now();
        let secrets = secrets_of(config);
        let known = now.as_ref().map(|it| (&it.audit, &it.secrets));
        if known == config.audit.as_ref().map(|audit| (audit, &secrets)) {
            return;
        }
        let next = config.audit.clone().map(|audit| {
            let writer = Writer::start(audit.clone());
            Arc::new(Running {
                audit,
                secrets,
                writer,
            })
        });
        self.is_on.store(next.is_some(), Ordering::Relaxed);
        // Calls that are under way are noted where they began.
        *now = next;
    }

    /// Begins to note a call; nothing if calls are not noted.
    pub fn begin(
        &self,
        tool: &ToolIdentifier,
        arguments: &RawJson,
        client: &dyn ClientHandle,
    ) -> Option<AuditEntry> {
        if !self.is_on() {
            return None;
        }
        let log = self.now().clone()?;
        let mut record = Record::new(tool, arguments, client, &log.secrets);
        if log.audit.arguments == NotedArguments::Values {
            record.add_values(arguments, &log.secrets);
        }
        Some(AuditEntry {
            log,
            record: Some(record),
            began: Instant::now(),
        })
    }

    /// Stops, when what was noted is written or a moment has passed.
    pub async fn close(&self) {
        self.is_on.store(false, Ordering::Relaxed);
        let last = self.now().take();
        if let Some(log) = last {
            let _ = tokio::time::timeout(LAST_LINES, log.writer.close()).await;
        }
    }

    fn now(&self) -> MutexGuard<'_, Option<Arc<Running>>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditEntry {
    /// The call has ended.
    pub fn end(mut self, ended: Ended) {
        self.write(ended);
    }

    fn write(&mut self, ended: Ended) {
        if let Some(record) = self.record.take() {
            let line = record.into_line(ended, self.began.elapsed());
            self.log.writer.write(line);
        }
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        self.write(Ended::Cancelled);
    }
}

/// Everything that the servers of a configuration have taken from variables.
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
