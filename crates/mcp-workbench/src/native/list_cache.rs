//! The merged lists that were read from servers and have not changed since.

use std::{collections::HashMap, sync::Arc, time::Duration};

#[cfg(test)]
use ident::ServerName;
use tokio::{sync::broadcast::error::TryRecvError, time::Instant};

use super::merged::{Family, Merged};
use crate::downstream::{Change, Events};

/// The cached lists of servers that are identified by `S`.
pub(super) struct ListCache<S> {
    /// Counts the changes that servers have announced.
    generation: u64,
    lists: HashMap<Family, CachedList<S>>,
    events: Events,
}

/// A merged list with its expiry time.
struct CachedList<S> {
    merged: Arc<Merged<S>>,
    /// `None` if the list is valid until a server announces a change.
    until: Option<Instant>,
}

impl<S> CachedList<S> {
    /// Caches a list that was read at `now`. A lifetime that the servers gave limits it; otherwise it is valid until
    /// a server announces a change.
    fn new(merged: Arc<Merged<S>>, now: Instant) -> Self {
        let time = Duration::from_millis(merged.hints.ttl_ms);
        // 0 is what a server that names no lifetime gets. Its list is valid until it announces a change.
        let until = now.checked_add(time).filter(|_| !time.is_zero());
        Self { merged, until }
    }

    fn is_current(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl<S> ListCache<S> {
    /// Creates an empty cache for servers that announce their changes on `events`.
    pub(super) fn new(events: Events) -> Self {
        Self {
            generation: 0,
            lists: HashMap::new(),
            events,
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns a cached list that is still valid.
    pub(super) fn get(&self, family: Family) -> Option<Arc<Merged<S>>> {
        let cached = self.lists.get(&family)?;
        let current = cached.is_current(Instant::now());
        current.then(|| Arc::clone(&cached.merged))
    }

    /// Caches a list, unless a server has announced a change since the generation in which it was read.
    pub(super) fn put(&mut self, family: Family, merged: Arc<Merged<S>>, generation: u64) {
        if self.generation == generation {
            let cached = CachedList::new(merged, Instant::now());
            self.lists.insert(family, cached);
        }
    }

    /// Drops the cached lists that have changed.
    pub(super) fn take_events(&mut self) {
        loop {
            match self.events.try_recv() {
                Ok(event) => match event.change {
                    Change::Prompts => self.forget(&[Family::Prompts]),
                    Change::Resources => self.forget(&[Family::Resources, Family::Templates]),
                    Change::Resource(_) => {}
                },
                // The missed events may be about any list.
                Err(TryRecvError::Lagged(_)) => self.clear(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.generation += 1;
        self.lists.clear();
    }

    fn forget(&mut self, families: &[Family]) {
        self.generation += 1;
        // A list that is being read at this moment is outdated too, and `put` drops it by the generation.
        for family in families {
            self.lists.remove(family);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::merged::ServerItems, *};
    use crate::era::{CacheHints, CacheScope};

    #[test]
    fn a_list_is_cached_until_its_lifetime_ends() {
        let now = Instant::now();
        let cached = |ttl_ms| {
            let hints = CacheHints {
                ttl_ms,
                scope: CacheScope::Public,
            };
            let list = ServerItems {
                server: ServerName::from("a"),
                items: Vec::new(),
                hints,
            };
            CachedList::new(Arc::new(Merged::by_key(vec![list], "uri", |_| None)), now)
        };
        let later = |ms| now + Duration::from_millis(ms);
        assert!(cached(100).is_current(later(99)));
        assert!(!cached(100).is_current(later(100)));
        assert!(cached(0).is_current(later(1_000_000)));
        assert!(cached(u64::MAX).is_current(later(1_000_000)));
    }
}
