//! The thread that writes the log: it alone waits for the disk. Calls leave their lines in a queue with an end; what
//! finds no place there is counted.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use tokio::sync::oneshot;

use super::{file::LogFile, record::dropped_line};
use crate::config::Audit;

/// How many lines wait at most.
const QUEUE: usize = 1024;

/// The way to the thread.
pub(super) struct Writer {
    /// Nothing when the log is closed.
    queue: Mutex<Option<SyncSender<Vec<u8>>>>,
    /// How many calls were not noted since the last time that it was said.
    missed: Arc<AtomicU64>,
    /// Tells that the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Writer {
    /// Starts the thread. It ends when this is dropped or closed.
    pub(super) fn start(audit: Audit) -> Self {
        let (queue, lines) = mpsc::sync_channel(QUEUE);
        let (end, ended) = oneshot::channel();
        let missed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&missed);
        let thread = thread::Builder::new().name("audit".into());
        let started = thread.spawn(move || {
            write_all(&lines, &mut LogFile::new(audit), &counted);
            let _ = end.send(());
        });
        if let Err(error) = started {
            tracing::warn!("calls are not noted: {error}");
        }
        Self {
            queue: Mutex::new(Some(queue)),
            missed,
            ended: Mutex::new(Some(ended)),
        }
    }

    /// Leaves a line to be written. Never waits.
    pub(super) fn write(&self, line: Vec<u8>) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = queue.as_ref().is_some_and(|it| it.try_send(line).is_ok());
        if !taken {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes no more, and waits until everything is written.
    pub(super) async fn close(&self) {
        let queue = self
            .queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(queue);
        let ended = self
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ended) = ended {
            let _ = ended.await;
        }
    }
}

/// Writes lines until there will be no more.
fn write_all(lines: &Receiver<Vec<u8>>, file: &mut LogFile, missed: &AtomicU64) {
    let mut is_failing = false;
    while let Ok(line) = lines.recv() {
        match file.write(&line) {
            Ok(()) => {
                is_failing = false;
                say_missed(file, missed);
            }
            Err(error) => {
                missed.fetch_add(1, Ordering::Relaxed);
                if !is_failing {
                    let file = file.path().display();
                    tracing::warn!("the audit log {file} cannot be written, calls go on: {error}");
                }
                is_failing = true;
            }
        }
    }
    say_missed(file, missed);
}

/// Notes how many calls are not in the log, if it can.
fn say_missed(file: &mut LogFile, missed: &AtomicU64) {
    let calls = missed.swap(0, Ordering::Relaxed);
    if calls == 0 {
        return;
    }
    if file.write(&dropped_line(calls)).is_err() {
        missed.fetch_add(calls, Ordering::Relaxed);
    }
    tracing::warn!("{calls} calls are not in the audit log");
}
