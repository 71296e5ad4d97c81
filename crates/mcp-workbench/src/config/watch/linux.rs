//! Being told by the kernel (inotify). A descriptor that the runtime waits for with all others: no thread.

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

use super::places::places;

/// What may put another file in a place, or other bytes into it. Single writes are not told: whoever writes
/// closes the file in the end.
const TOLD: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// What the kernel tells about some files.
pub(super) struct Notices {
    queue: AsyncFd<OwnedFd>,
    /// The names that count, by the folder that they are in.
    names: HashMap<i32, HashSet<OsString>>,
}

impl Notices {
    pub(super) fn new(files: &[PathBuf]) -> io::Result<Self> {
        let queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut names: HashMap<i32, HashSet<OsString>> = HashMap::new();
        for place in files.iter().flat_map(|file| places(file)) {
            let folder = add_watch(&queue, &place.folder, TOLD)?;
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

    /// Waits for something that counts. Cancel-safe.
    pub(super) async fn next(&mut self) {
        loop {
            let Ok(mut ready) = self.queue.readable().await else {
                // Without the runtime nothing is waited for any more.
                return std::future::pending().await;
            };
            if self.take() {
                return;
            }
            ready.clear_ready();
        }
    }

    /// Takes all that was told; true if something of it counts.
    pub(super) fn take(&self) -> bool {
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
                Err(_) => return counts,
            }
        }
    }

    /// Whether it is about a name that counts, about a folder itself, or that something was left out.
    fn counts(&self, folder: i32, events: ReadFlags, name: Option<&OsStr>) -> bool {
        match name {
            _ if events.contains(ReadFlags::QUEUE_OVERFLOW) => true,
            Some(name) => self.names.get(&folder).is_some_and(|it| it.contains(name)),
            // A change of the folder's own attributes may let us in or keep us out.
            None => true,
        }
    }
}
