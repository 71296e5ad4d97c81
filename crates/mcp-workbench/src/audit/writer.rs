//! The thread that writes the log, so that no call waits for the disk. Calls append their lines to a bounded
//! buffer; lines that do not fit are counted.
//!
//! Waking a thread costs more than a line. So only the first line wakes the writer, which waits a moment for others
//! before it writes them all.

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

use super::{file::LogFile, record::write_missed_line};
use crate::{config::Audit, sync::lock};

/// The maximum size of the waiting lines. The last one may exceed it.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Time that the writer waits for more lines after the first.
const GATHER_TIME: Duration = Duration::from_millis(5);
/// A buffer keeps at most this much memory, or for a while what the last batch needed.
const KEPT_BYTES: usize = 128 * 1024;
/// How long a buffer keeps more than that without new lines. While lines keep coming, it would only grow again.
const KEEP_TIME: Duration = Duration::from_millis(100);

/// The sending side of the writer's buffer.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Completes when the thread ends.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// The state that the event loop and the thread share.
#[derive(Default)]
struct Shared {
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
    /// The number of unrecorded calls since the last report.
    missed: AtomicU64,
}

/// Lines in the order in which their calls ended.
#[derive(Default)]
struct WaitingLines {
    lines: Vec<u8>,
    is_closed: bool,
}

impl Writer {
    /// Starts the thread. It ends when the writer is dropped or closed.
    pub(super) fn start(audit: Audit) -> Self {
        let shared = Arc::new(Shared::default());
        let (end, ended) = oneshot::channel();
        let thread = thread::Builder::new().name("audit".into());
        let waiting = Arc::clone(&shared);
        let started = thread.spawn(move || {
            let mut writing = WriterThread {
                file: LogFile::new(audit),
                is_failing: false,
                missed: &waiting.missed,
            };
            writing.write_all(&waiting);
            // Nobody waits unless the log is being closed.
            let _ = end.send(());
        });
        if let Err(error) = started {
            tracing::warn!("cannot start the audit log, calls are not recorded: {error}");
            // Lines are now counted as missing. Nobody would ever take them out of the buffer.
            shared.close();
        }
        Self {
            shared,
            ended: Mutex::new(Some(ended)),
        }
    }

    /// Appends the line that `write_line` writes. Never waits for the disk.
    pub(super) fn append(&self, write_line: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.shared.waiting();
        if waiting.is_closed || waiting.lines.len() >= MAX_BYTES {
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (was_empty, was_half_full) = (waiting.lines.is_empty(), waiting.is_half_full());
        write_line(&mut waiting.lines);
        // The writer waits for the first line, and then until the buffer is half full or the time is over.
        let is_wanted = was_empty || waiting.is_half_full() != was_half_full;
        drop(waiting);
        if is_wanted {
            self.shared.changed.notify_one();
        }
    }

    /// Closes the buffer and waits until all lines are written.
    pub(super) async fn close(&self) {
        self.shared.close();
        let ended = lock(&self.ended).take();
        if let Some(ended) = ended {
            // If the thread panicked, nothing more will be written.
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
    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        lock(&self.waiting)
    }

    fn close(&self) {
        self.waiting().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for lines and moves them into `batch`, which is empty. Returns false if there will be no more.
    fn next_batch(&self, batch: &mut Vec<u8>) -> bool {
        let is_idle = |waiting: &mut WaitingLines| waiting.lines.is_empty() && !waiting.is_closed;
        let waited = self
            .changed
            .wait_timeout_while(self.waiting(), KEEP_TIME, is_idle);
        let (mut waiting, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            waiting.lines.shrink_to(KEPT_BYTES);
            batch.shrink_to(KEPT_BYTES);
        }
        let waiting = self
            .changed
            .wait_while(waiting, is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        let can_wait = |waiting: &mut WaitingLines| !waiting.is_half_full() && !waiting.is_closed;
        let waited = self
            .changed
            .wait_timeout_while(waiting, GATHER_TIME, can_wait);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // Both buffers keep their memory for the next lines.
        mem::swap(&mut waiting.lines, batch);
        !batch.is_empty()
    }
}

impl WaitingLines {
    fn is_half_full(&self) -> bool {
        self.lines.len() >= MAX_BYTES / 2
    }
}

/// The state of the thread.
struct WriterThread<'a> {
    file: LogFile,
    /// True if the last write failed; the warning is logged once.
    is_failing: bool,
    missed: &'a AtomicU64,
}

impl WriterThread<'_> {
    /// Writes lines until there will be no more.
    fn write_all(&mut self, shared: &Shared) {
        let mut batch = Vec::new();
        while shared.next_batch(&mut batch) {
            self.write(&batch);
            let used = batch.len();
            batch.clear();
            // A burst must not keep its memory while a few lines follow it.
            batch.shrink_to(KEPT_BYTES.max(used));
        }
        self.report_missed();
    }

    fn write(&mut self, lines: &[u8]) {
        match self.file.write(lines) {
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
    use crate::config::AuditArguments;

    fn writer_without_thread() -> Writer {
        Writer {
            shared: Arc::default(),
            ended: Mutex::default(),
        }
    }

    fn append(writer: &Writer, text: &str) {
        writer.append(|line| line.extend_from_slice(format!("{text}\n").as_bytes()));
    }

    fn missed(writer: &Writer) -> u64 {
        writer.shared.missed.load(Ordering::Relaxed)
    }

    fn audit(folder: &tempfile::TempDir) -> Audit {
        Audit {
            file: folder.path().join("audit.jsonl"),
            max_bytes: 10_000_000,
            files: 1,
            arguments: AuditArguments::Shape,
        }
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let writer = writer_without_thread();
        let long = "x".repeat(64 * 1024 - 1);
        let fitting = MAX_BYTES / (64 * 1024);
        for _ in 0..fitting + 3 {
            append(&writer, &long);
        }
        assert_eq!(writer.shared.waiting().lines.len(), MAX_BYTES);
        assert_eq!(missed(&writer), 3);
        let mut batch = Vec::new();
        assert!(writer.shared.next_batch(&mut batch));
        assert_eq!(batch.len(), MAX_BYTES);
        append(&writer, "{}");
        assert_eq!(missed(&writer), 3, "there is room again");
    }

    #[test]
    fn the_buffers_of_a_burst_are_freed_when_it_is_over() {
        let writer = writer_without_thread();
        let shared = &writer.shared;
        shared.waiting().lines.reserve(MAX_BYTES);
        let mut batch = Vec::with_capacity(MAX_BYTES);
        thread::scope(|scope| {
            let next = scope.spawn(|| shared.next_batch(&mut batch));
            while shared.waiting().lines.capacity() > KEPT_BYTES {
                thread::yield_now();
            }
            append(&writer, "{}");
            assert!(next.join().unwrap());
        });
        assert_eq!(batch, b"{}\n");
        assert!(batch.capacity() <= KEPT_BYTES);
        assert!(shared.waiting().lines.capacity() <= KEPT_BYTES);
    }

    #[test]
    fn a_closed_buffer_gives_its_lines_and_takes_no_more() {
        let writer = writer_without_thread();
        append(&writer, "1");
        writer.shared.close();
        append(&writer, "2");
        let mut batch = Vec::new();
        assert!(writer.shared.next_batch(&mut batch));
        assert_eq!(batch, b"1\n");
        batch.clear();
        assert!(!writer.shared.next_batch(&mut batch));
        assert_eq!(missed(&writer), 1);
    }

    #[tokio::test]
    async fn closing_writes_every_line_in_order_and_the_missing_calls() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(&folder);
        let writer = Writer::start(audit.clone());
        writer.shared.missed.fetch_add(2, Ordering::Relaxed);
        for number in 0..1000 {
            append(&writer, &number.to_string());
        }
        writer.close().await;
        let text = fs::read_to_string(&audit.file).unwrap();
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines: Vec<Value> = lines.map(Result::unwrap).collect();
        let (calls, missing): (Vec<_>, Vec<_>) = lines.iter().partition(|it| it.is_number());
        let numbers: Vec<_> = calls.iter().map(|it| it.as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0]["not_noted"], 2);
    }

    #[tokio::test]
    async fn the_thread_ends_when_the_writer_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let audit = audit(&folder);
        let file = audit.file.clone();
        let writer = Writer::start(audit);
        append(&writer, "{}");
        let ended = writer.ended.lock().unwrap().take().unwrap();
        drop(writer);
        ended.await.unwrap();
        assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 1);
    }
}
