//! Stores for a while the whole of results that clients received in part, so that clients can read them in pages. The
//! store is in memory and bounded in number, bytes and age; the oldest results go first. With a store of replicas each
//! result is there too, for the same time, so that every replica can read it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use indexmap::IndexMap;
use rawjson::RawJson;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until};

use super::Workbench;
use crate::{
    budget::{Address, Pages, Syntax, View},
    call::Owner,
    config::Config,
    store::{StoredAt, StoredKind},
    sync::lock,
};

/// The maximum number of stored results.
const MAX_RESULTS: usize = 100;
/// The maximum size of all stored results.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The maximum age of a stored result.
const MAX_AGE: Duration = Duration::from_hours(1);
/// The maximum size of a result in the store of the replicas. A larger one stays in the process that made it.
const MAX_SHARED_BYTES: usize = 8 * 1024 * 1024;
/// How often a result that is not in the store is looked for again: the client may read it before its replica has written it
/// there.
const SHARED_READS: usize = 4;
const SHARED_READ_PAUSE: Duration = Duration::from_millis(50);
/// The number of random bytes in an id, so that ids cannot be guessed.
const ID_BYTES: usize = 12;

pub(crate) struct Results {
    /// The smallest budget of all servers, in characters. A result with fewer bytes is within every budget.
    least_budget: AtomicUsize,
    store: Mutex<Store>,
    bounds: Bounds,
    /// Set while a task waits for the oldest result to expire.
    is_watched: AtomicBool,
}

struct Bounds {
    results: usize,
    bytes: usize,
    age: Duration,
}

#[derive(Default)]
struct Store {
    /// The results by id, the oldest first.
    by_id: IndexMap<String, (Instant, Arc<StoredResult>)>,
    bytes: usize,
}

/// A result that a client received in part, with its pages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredResult {
    pub id: String,
    /// The maximum length of a page.
    pub page_size: usize,
    owner: Owner,
    text: String,
    text_pages: Pages,
    /// The result as its server sent it.
    json: String,
    json_pages: Pages,
}

/// The reason why a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageError {
    /// The result is not stored, or belongs to another client.
    Gone,
    /// The result has fewer pages.
    Unknown { pages: usize },
    /// The result is not in this process, and the store of the replicas cannot be reached.
    Unreachable,
}

/// A result that is to be stored.
pub(super) struct WholeResult<'a> {
    pub(super) owner: Owner,
    /// The result as its server sent it.
    pub(super) json: &'a RawJson,
    /// The text that a model reads.
    pub(super) text: &'a str,
    pub(super) text_pages: Pages,
    pub(super) page_size: usize,
}

impl StoredResult {
    fn new(whole: WholeResult<'_>) -> Self {
        let json = whole.json.as_str();
        Self {
            id: new_id(),
            page_size: whole.page_size,
            owner: whole.owner,
            text_pages: whole.text_pages,
            json_pages: Pages::of(json, whole.page_size, Syntax::Json),
            text: whole.text.to_owned(),
            // Copied, because the original may be a small part of a large buffer.
            json: json.to_owned(),
        }
    }

    /// Returns the text that a model reads.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the result as its server sent it.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    /// Returns the page that contains a byte of the text.
    pub(crate) fn page_at(&self, at: usize) -> usize {
        self.text_pages.page_at(at)
    }

    /// Returns the number of pages.
    pub(crate) fn pages(&self, view: View) -> usize {
        match view {
            View::Text => self.text_pages.count(),
            View::Json => self.json_pages.count(),
        }
    }

    pub(crate) fn page(&self, view: View, page: usize) -> Result<&str, PageError> {
        let found = match view {
            View::Text => self.text_pages.page(&self.text, page),
            View::Json => self.json_pages.page(&self.json, page),
        };
        let pages = self.pages(view);
        found.ok_or(PageError::Unknown { pages })
    }

    /// Returns whether both have the same owner and content, whatever their ids.
    fn is_same(&self, other: &Self) -> bool {
        self.owner == other.owner
            && self.page_size == other.page_size
            && self.json == other.json
            && self.text == other.text
            && self.text_pages == other.text_pages
    }

    fn bytes(&self) -> usize {
        self.text.len() + self.json.len() + self.text_pages.bytes() + self.json_pages.bytes()
    }
}

/// Stores a result that a client receives in part. Returns `None` if it is too large.
pub(super) fn store_result(
    workbench: &Workbench,
    whole: WholeResult<'_>,
) -> Option<Arc<StoredResult>> {
    let stored = workbench.results.store_result(whole)?;
    share(workbench, &stored);
    let is_first = !workbench.results.is_watched.swap(true, Ordering::Relaxed);
    if let Some(this) = workbench.this.upgrade().filter(|_| is_first) {
        workbench.spawn(async move { remove_expired(&this).await });
    }
    Some(stored)
}

/// Puts a result into the store of the replicas, if its owner is known to them.
fn share(workbench: &Workbench, stored: &Arc<StoredResult>) {
    let Some((store, owner)) = workbench.pool.store().cloned().zip(stored.owner.shared()) else {
        return;
    };
    if stored.bytes() > MAX_SHARED_BYTES {
        return;
    }
    let stored = Arc::clone(stored);
    workbench.spawn(async move {
        let text = RawJson::of(&SharedResult::of(&stored));
        let at = StoredAt {
            kind: StoredKind::Result,
            owner: &owner,
            name: &stored.id,
        };
        // The result is in memory too, so nothing is lost here.
        if let Err(error) = store.set(at, text.as_bytes(), MAX_AGE).await {
            tracing::warn!("failed to share a result with the other replicas: {error}");
        }
    });
}

/// Returns the result of an address, if it is stored for this owner, here or in the store of the replicas.
pub(crate) async fn find_result(
    workbench: &Workbench,
    address: &Address,
    owner: Owner,
) -> Result<Arc<StoredResult>, PageError> {
    let found = workbench.results.find(address, owner);
    let shared = workbench.pool.store().zip(owner.shared());
    // Only what is missing here is looked for in the store.
    let (Err(PageError::Gone), Some((store, shared_owner))) = (&found, shared) else {
        return found;
    };
    let at = StoredAt {
        kind: StoredKind::Result,
        owner: &shared_owner,
        name: &address.id,
    };
    let read = async || {
        store.get(at).await.map_err(|error| {
            tracing::warn!("failed to read a result of another replica: {error}");
            PageError::Unreachable
        })
    };
    // The client has the address as soon as it has the cut result. The replica that made it may still be writing.
    let mut text = read().await?;
    for _ in 0..SHARED_READS {
        if text.is_some() {
            break;
        }
        sleep(SHARED_READ_PAUSE).await;
        text = read().await?;
    }
    let shared = text
        .and_then(|text| serde_json::from_slice::<SharedResult>(&text).ok())
        .ok_or(PageError::Gone)?;
    Ok(Arc::new(shared.into_result(&address.id, owner)))
}

/// A result as it is in the store of the replicas.
#[derive(Serialize, Deserialize)]
struct SharedResult {
    page_size: usize,
    text: String,
    /// The end of the first page of the text, which is what the client has seen.
    first_end: usize,
    json: String,
}

impl SharedResult {
    fn of(stored: &StoredResult) -> Self {
        Self {
            page_size: stored.page_size,
            first_end: stored.text_pages.first_end(&stored.text),
            text: stored.text.clone(),
            json: stored.json.clone(),
        }
    }

    fn into_result(self, id: &str, owner: Owner) -> StoredResult {
        StoredResult {
            id: id.to_owned(),
            page_size: self.page_size,
            owner,
            text_pages: Pages::after(&self.text, self.first_end, self.page_size, Syntax::Plain),
            json_pages: Pages::of(&self.json, self.page_size, Syntax::Json),
            text: self.text,
            json: self.json,
        }
    }
}

/// Removes results when they expire, until none is left. Without this task they would stay in memory if no client
/// asked again.
async fn remove_expired(workbench: &Workbench) {
    while let Some(next) = workbench.results.remove_expired() {
        tokio::select! {
            () = sleep_until(next) => {}
            () = workbench.announcing_stopped() => {
                // Another workbench may have results here too. It starts its own task with the next one.
                workbench.results.is_watched.store(false, Ordering::Relaxed);
                return;
            }
        }
    }
}

impl Results {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            least_budget: AtomicUsize::new(least_budget(config)),
            store: Mutex::default(),
            bounds: Bounds {
                results: MAX_RESULTS,
                bytes: MAX_BYTES,
                age: MAX_AGE,
            },
            is_watched: AtomicBool::new(false),
        }
    }

    /// Applies the budgets of a changed configuration. Stored results stay.
    pub(super) fn adapt(&self, config: &Config) {
        self.least_budget
            .store(least_budget(config), Ordering::Relaxed);
    }

    /// Returns whether a result could be over the budget of its server. Most are not, and cost nothing more than this
    /// check.
    pub(crate) fn could_be_over(&self, result: &RawJson) -> bool {
        result.as_bytes().len() > self.least_budget.load(Ordering::Relaxed)
    }

    /// Removes expired results. Returns the time at which the next one expires.
    fn remove_expired(&self) -> Option<Instant> {
        let mut store = self.store();
        store.remove_expired(Instant::now(), self.bounds.age);
        let oldest = store.by_id.first().map(|(_, (since, _))| *since);
        if oldest.is_none() {
            self.is_watched.store(false, Ordering::Relaxed);
        }
        Some(oldest? + self.bounds.age)
    }

    /// Stores a result. One that is already stored keeps its id.
    fn store_result(&self, whole: WholeResult<'_>) -> Option<Arc<StoredResult>> {
        let made = StoredResult::new(whole);
        let now = Instant::now();
        let mut store = self.store();
        store.remove_expired(now, self.bounds.age);
        // A client that repeats a call gets the address that it knows, and takes no more room.
        let same = store.by_id.values().find(|(_, it)| it.is_same(&made));
        let made = match same.map(|(_, same)| Arc::clone(same)) {
            Some(same) => {
                // Removed and inserted again below, so that it becomes the newest.
                store.forget(&same.id);
                same
            }
            None => Arc::new(made),
        };
        if made.bytes() > self.bounds.bytes {
            return None;
        }
        store.bytes += made.bytes();
        store
            .by_id
            .insert(made.id.clone(), (now, Arc::clone(&made)));
        while store.by_id.len() > self.bounds.results || store.bytes > self.bounds.bytes {
            store.remove_oldest();
        }
        Some(made)
    }

    /// Returns the result of an address, if it is stored for this owner. A result of another owner is treated as
    /// missing.
    fn find(&self, address: &Address, owner: Owner) -> Result<Arc<StoredResult>, PageError> {
        let mut store = self.store();
        store.remove_expired(Instant::now(), self.bounds.age);
        let found = store
            .by_id
            .get(&address.id)
            .filter(|(_, result)| result.owner == owner);
        found
            .map(|(_, result)| Arc::clone(result))
            .ok_or(PageError::Gone)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }
}

impl Store {
    fn remove_expired(&mut self, now: Instant, age: Duration) {
        while let Some((_, (since, _))) = self.by_id.first()
            && now.duration_since(*since) >= age
        {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        if let Some((_, (_, result))) = self.by_id.shift_remove_index(0) {
            self.bytes -= result.bytes();
        }
    }

    fn forget(&mut self, id: &str) {
        if let Some((_, result)) = self.by_id.shift_remove(id) {
            self.bytes -= result.bytes();
        }
    }
}

/// Returns the smallest budget of all servers, in characters.
fn least_budget(config: &Config) -> usize {
    let servers = config
        .toolboxes
        .values()
        .flat_map(|toolbox| toolbox.servers.values());
    let budgets = servers.filter_map(|server| server.max_result_chars);
    budgets.min().unwrap_or(usize::MAX)
}

fn new_id() -> String {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests;
