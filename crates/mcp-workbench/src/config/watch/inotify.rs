//! File notifications of the kernel (inotify). The runtime waits for its descriptor with all others, so there is no
//! thread.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::PathBuf,
};

use rustix::{
    fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init},
    io::Errno,
};
use tokio::io::{Interest, unix::AsyncFd};

use super::path_entries::path_entries;

/// The events that may replace a file or change its content. Single writes are not included, because a writer closes
/// the file in the end.
const WATCHED_EVENTS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The kernel's notifications about some files.
pub(super) struct Inotify {
    queue: AsyncFd<OwnedFd>,
    /// The watched names, by the folder that they are in.
    names: HashMap<i32, HashSet<OsString>>,
}

impl Inotify {
    pub(super) fn new(files: &[PathBuf]) -> io::Result<Self> {
        let queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut names: HashMap<i32, HashSet<OsString>> = HashMap::new();
        for place in files.iter().flat_map(|file| path_entries(file)) {
            // A folder that is watched already has the same number again.
            let folder = add_watch(&queue, &place.folder, WATCHED_EVENTS)?;
            names.entry(folder).or_default().insert(place.name);
        }
        #[expect(
            deprecated,
            reason = "its successor is unsafe because of values that change or close their descriptor, which an \
                      OwnedFd does not"
        )]
        let queue = AsyncFd::with_interest(queue, Interest::READABLE)?;
        Ok(Self { queue, names })
    }

    /// Waits for a relevant event. Cancel-safe.
    pub(super) async fn next(&mut self) {
        loop {
            let Ok(mut ready) = self.queue.readable().await else {
                // The runtime is shutting down.
                return std::future::pending().await;
            };
            if self.take() {
                return;
            }
            // After everything was read. An event that arrives in between makes the descriptor ready again.
            ready.clear_ready();
        }
    }

    /// Reads all pending events. Returns whether one of them is relevant.
    pub(super) fn take(&self) -> bool {
        // An event has at most 272 bytes: a name has up to 255.
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(self.queue.get_ref().as_fd(), &mut buffer);
        let mut counts = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name();
                    let name = name.map(|name| OsStr::from_bytes(name.to_bytes()));
                    counts |= self.counts(event.wd(), event.events(), name);
                }
                Err(Errno::INTR) => {}
                // Usually `WOULDBLOCK`, which means that the queue is empty.
                Err(_) => return counts,
            }
        }
    }

    /// Returns whether an event concerns a watched name or a folder itself, or reports that events were lost.
    fn counts(&self, folder: i32, events: ReadFlags, name: Option<&OsStr>) -> bool {
        match name {
            _ if events.contains(ReadFlags::QUEUE_OVERFLOW) => true,
            Some(name) => self.names.get(&folder).is_some_and(|it| it.contains(name)),
            // A change of the folder's own attributes may grant or revoke access.
            None => true,
        }
    }
}
