//! The thread that writes the log, so that no call waits for the disk. Calls put their records into a bounded
//! queue; records that do not fit are counted.
//!
//! Waking a thread costs more than the rest of a record. So only the first record wakes the writer, which waits a
//! moment for others before it writes them all.

use std::{
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    file::LogFile,
    record::{LineFormat, Record, write_missed_line},
};
use crate::{config::Audit, sync::lock};

/// The maximum number of queued records.
const MAX_RECORDS: usize = 4096;
/// The approximate maximum size of the queued records. The last one may exceed it.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Time that the writer waits for more records after the first.
const GATHER_TIME: Duration = Duration::from_millis(5);
/// Lines are written in blocks of this size, and at the end of a batch.
const BLOCK_BYTES: usize = 64 * 1024;

/// The sending side of the writer's queue.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Completes when the thread ends.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// The state that the event loop and the thread share.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// The number of unrecorded calls since the last report.
    missed: AtomicU64,
}

/// Records in the order in which their calls ended. They stay boxed, so that a queue that was long once keeps
/// little memory.
type Records = Vec<Box<Record>>;

#[derive(Default)]
struct Queue {
    records: Records,
    /// Their approximate memory size.
    bytes: usize,
    is_closed: bool,
}

impl Writer {
    /// Starts the thread. It ends when the writer is dropped or closed.
    pub(super) fn start(audit: Audit, format: Arc<LineFormat>) -> Self {
        let shared = Arc::new(Shared::default());
        let (end, ended) = oneshot::channel();
        let thread = thread::Builder::new().name("audit".into());
        let queue = Arc::clone(&shared);
        let started = thread.spawn(move || {
            let mut writing = WriterThread {
                file: LogFile::new(audit),
                lines: Vec::new(),
                is_failing: false,
                missed: &queue.missed,
            };
            writing.write_all(&queue, &format);
            let _ = end.send(());
        });
        if let Err(error) = started {
            tracing::warn!("cannot start the audit log, calls are not recorded: {error}");
            shared.close();
        }
        Self {
            shared,
            ended: Mutex::new(Some(ended)),
        }
    }

    /// Queues a record. Never waits for the disk.
    pub(super) fn write(&self, record: Box<Record>) {
        let mut queue = self.shared.queue();
        if queue.is_closed || queue.is_full() {
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (was_empty, was_half_full) = (queue.records.is_empty(), queue.is_half_full());
        queue.bytes += record.size();
        queue.records.push(record);
        // The writer waits for the first record, and then until the queue is half full or the time is over.
        let is_wanted = was_empty || queue.is_half_full() != was_half_full;
        drop(queue);
        if is_wanted {
            self.shared.changed.notify_one();
        }
    }

    /// Closes the queue and waits until all records are written.
    pub(super) async fn close(&self) {
        self.shared.close();
        let ended = lock(&self.ended).take();
        if let Some(ended) = ended {
            let _ = ended.await;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    fn close(&self) {
        self.queue().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for records and moves them into `batch`, which is empty. Returns false if there will be no more.
    fn next_batch(&self, batch: &mut Records) -> bool {
        let is_idle = |queue: &mut Queue| queue.records.is_empty() && !queue.is_closed;
        let queue = self
            .changed
            .wait_while(self.queue(), is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        let can_wait = |queue: &mut Queue| !queue.is_half_full() && !queue.is_closed;
        let waited = self
            .changed
            .wait_timeout_while(queue, GATHER_TIME, can_wait);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.bytes = 0;
        mem::swap(&mut queue.records, batch);
        !batch.is_empty()
    }
}

impl Queue {
    fn is_full(&self) -> bool {
        self.records.len() >= MAX_RECORDS || self.bytes >= MAX_BYTES
    }

    fn is_half_full(&self) -> bool {
        self.records.len() >= MAX_RECORDS / 2 || self.bytes >= MAX_BYTES / 2
    }
}

/// The state of the thread.
struct WriterThread<'a> {
    file: LogFile,
    /// Lines that are not written yet.
    lines: Vec<u8>,
    /// True if the last write failed; the warning is logged once.
    is_failing: bool,
    missed: &'a AtomicU64,
}

impl WriterThread<'_> {
    /// Writes records until there will be no more.
    fn write_all(&mut self, queue: &Shared, format: &LineFormat) {
        let mut batch = Vec::new();
        while queue.next_batch(&mut batch) {
            for record in batch.drain(..) {
                record.write_line(&mut self.lines, format);
                if self.lines.len() >= BLOCK_BYTES {
                    self.flush();
                }
            }
            self.flush();
        }
        self.report_missed();
    }

    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        match self.file.write(&self.lines) {
            Ok(()) => {
                self.is_failing = false;
                self.report_missed();
            }
            Err(failure) => {
                // Lines are dropped rather than queued, so that a full disk costs no memory.
                self.missed.fetch_add(failure.lines, Ordering::Relaxed);
                if !self.is_failing {
                    let (file, error) = (self.file.path().display(), failure.error);
                    tracing::warn!(
                        "cannot write the audit log {file}; calls continue without being recorded: {error}"
                    );
                }
                self.is_failing = true;
            }
        }
        self.lines.clear();
        // One line with a large shape must not keep its memory.
        self.lines.shrink_to(2 * BLOCK_BYTES);
    }

    /// Writes the number of missing calls, if there are any.
    fn report_missed(&mut self) {
        let calls = self.missed.swap(0, Ordering::Relaxed);
        if calls == 0 {
            return;
        }
        let mut line = Vec::new();
        write_missed_line(&mut line, calls);
        if self.file.write(&line).is_err() {
            // Counted again, for the next attempt.
            self.missed.fetch_add(calls, Ordering::Relaxed);
        }
        tracing::warn!("{calls} calls are missing from the audit log");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;
    use crate::{
        audit::record::tests::{format, record},
        config::AuditArguments,
    };

    fn writer_without_thread() -> Writer {
        Writer {
            shared: Arc::default(),
            ended: Mutex::default(),
        }
    }

    fn put(writer: &Writer, arguments: &str) {
        let format = format(AuditArguments::Shape);
        writer.write(Box::new(record("read", arguments, &format)));
    }

    fn missed(writer: &Writer) -> u64 {
        writer.shared.missed.load(Ordering::Relaxed)
    }

    #[test]
    fn records_that_do_not_fit_are_counted() {
        let writer = writer_without_thread();
        for _ in 0..MAX_RECORDS + 3 {
            put(&writer, "{}");
        }
        assert_eq!(writer.shared.queue().records.len(), MAX_RECORDS);
        assert_eq!(missed(&writer), 3);
        let mut batch = Vec::new();
        assert!(writer.shared.next_batch(&mut batch));
        assert_eq!(batch.len(), MAX_RECORDS);
        put(&writer, "{}");
        assert_eq!(missed(&writer), 3, "there is room again");
    }

    #[test]
    fn the_memory_of_the_queue_is_bounded() {
        let writer = writer_without_thread();
        let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(50_000));
        for _ in 0..100 {
            put(&writer, &arguments);
        }
        let queue = writer.shared.queue();
        assert!(queue.bytes < MAX_BYTES + 60_000, "{}", queue.bytes);
        assert!(queue.records.len() > 75, "{}", queue.records.len());
        assert_eq!(queue.records.len() as u64 + missed(&writer), 100);
    }

    #[test]
    fn a_closed_queue_gives_its_records_and_takes_no_more() {
        let writer = writer_without_thread();
        put(&writer, "{}");
        writer.shared.close();
        put(&writer, "{}");
        let mut batch = Vec::new();
        assert!(writer.shared.next_batch(&mut batch));
        assert_eq!(batch.len(), 1);
        batch.clear();
        assert!(!writer.shared.next_batch(&mut batch));
        assert_eq!(missed(&writer), 1);
    }

    #[tokio::test]
    async fn closing_writes_every_record_in_order_and_the_missing_calls() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit {
            file: folder.path().join("audit.jsonl"),
            max_bytes: 10_000_000,
            files: 1,
            arguments: AuditArguments::Shape,
        };
        let format = Arc::new(format(audit.arguments));
        let writer = Writer::start(audit.clone(), Arc::clone(&format));
        writer.shared.missed.fetch_add(2, Ordering::Relaxed);
        for number in 0..1000 {
            writer.write(Box::new(record(&number.to_string(), "{}", &format)));
        }
        writer.close().await;
        let text = fs::read_to_string(&audit.file).unwrap();
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines: Vec<Value> = lines.map(Result::unwrap).collect();
        let (missing, calls): (Vec<_>, Vec<_>) =
            lines.iter().partition(|line| line["tool"].is_null());
        let tools: Vec<_> = calls.iter().map(|line| line["tool"].as_str()).collect();
        let expected: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        assert!(
            tools
                .into_iter()
                .eq(expected.iter().map(|it| Some(it.as_str())))
        );
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0]["not_noted"], 2);
    }

    #[tokio::test]
    async fn the_thread_ends_when_the_writer_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit {
            file: folder.path().join("audit.jsonl"),
            max_bytes: 10_000_000,
            files: 1,
            arguments: AuditArguments::Shape,
        };
        let file = audit.file.clone();
        let writer = Writer::start(audit, Arc::new(format(AuditArguments::Shape)));
        put(&writer, "{}");
        let ended = writer.ended.lock().unwrap().take().unwrap();
        drop(writer);
        ended.await.unwrap();
        assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 1);
    }
}
