//! The whole of results that were over their budget, kept for a while so that their clients can read them in pages. In
//! memory, and bounded in number, bytes and age: the oldest go first.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use indexmap::IndexMap;
use tokio::time::{Instant, sleep_until};

use super::Workbench;
use crate::{
    budget::{Address, Cut, Pages, Syntax, View},
    call::Owner,
    config::Config,
    wire::RawJson,
};

/// How many results are kept.
const MAX_RESULTS: usize = 100;
/// How many bytes all of them have.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long one is kept.
const MAX_AGE: Duration = Duration::from_hours(1);
/// The random bytes of a name: nobody guesses one.
const ID_BYTES: usize = 12;

/// The results that are kept.
pub(crate) struct Results {
    /// The least budget of all servers, in characters: what has no more bytes is within all of them.
    least_budget: AtomicUsize,
    kept: Mutex<Kept>,
    bounds: Bounds,
    /// Whether somebody waits for the time of the oldest.
    is_watched: AtomicBool,
}

struct Bounds {
    results: usize,
    bytes: usize,
    age: Duration,
}

#[derive(Default)]
struct Kept {
    /// By their names, the oldest first.
    by_id: IndexMap<String, (Instant, Arc<KeptResult>)>,
    bytes: usize,
}

/// A result that is kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeptResult {
    pub id: String,
    /// The most characters of a page.
    pub page_size: usize,
    owner: Owner,
    text: String,
    text_pages: Pages,
    /// The result as its server sent it.
    json: String,
    json_pages: Pages,
}

/// Why a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageError {
    /// No such result is kept, or it is not this client's.
    Gone,
    /// The result does not have so many pages.
    Unknown { pages: usize },
}

impl KeptResult {
    fn new(owner: Owner, result: &RawJson, cut: &Cut<'_>, page_size: usize) -> Self {
        let json = result.as_str();
        Self {
            id: new_id(),
            page_size,
            owner,
            text_pages: cut.pages(page_size),
            json_pages: Pages::of(json, page_size, Syntax::Json),
            text: cut.text().to_owned(),
            // A copy: what was read may be a small part of a large buffer.
            json: json.to_owned(),
        }
    }

    /// The text that a model reads.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The page on which a byte of the text stands.
    pub(crate) fn page_at(&self, at: usize) -> usize {
        self.text_pages.page_at(at)
    }

    /// How many pages it has.
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

    /// Whether this is the same for its owner, whatever it is called.
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

/// Keeps a result that is cut; nothing comes back if it is too large to be kept.
pub(super) fn keep(
    workbench: &Workbench,
    owner: Owner,
    result: &RawJson,
    cut: &Cut<'_>,
    page_size: usize,
) -> Option<Arc<KeptResult>> {
    let kept = workbench.results.keep(owner, result, cut, page_size)?;
    let is_first = !workbench.results.is_watched.swap(true, Ordering::Relaxed);
    if let Some(this) = workbench.this.upgrade().filter(|_| is_first) {
        workbench.spawn(async move { forget_old(&this).await });
    }
    Some(kept)
}

/// Forgets results when their time has come, until none is left: nobody may ever ask for another.
async fn forget_old(workbench: &Workbench) {
    while let Some(next) = workbench.results.forget_old() {
        tokio::select! {
            () = sleep_until(next) => {}
            () = workbench.silent() => return,
        }
    }
}

impl Results {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            least_budget: AtomicUsize::new(least_budget(config)),
            kept: Mutex::default(),
            bounds: Bounds {
                results: MAX_RESULTS,
                bytes: MAX_BYTES,
                age: MAX_AGE,
            },
            is_watched: AtomicBool::new(false),
        }
    }

    /// Takes up the budgets of a changed configuration. What is kept stays.
    pub(super) fn adapt(&self, config: &Config) {
        self.least_budget
            .store(least_budget(config), Ordering::Relaxed);
    }

    /// Whether a result could be over the budget of its server: by far most are not, and nothing more is done for
    /// them.
    pub(crate) fn could_be_over(&self, result: &RawJson) -> bool {
        result.as_bytes().len() > self.least_budget.load(Ordering::Relaxed)
    }

    /// Forgets what is too old; returns when the next will be.
    fn forget_old(&self) -> Option<Instant> {
        let mut kept = self.kept();
        kept.forget_old(Instant::now(), self.bounds.age);
        let oldest = kept.by_id.first().map(|(_, (since, _))| *since);
        if oldest.is_none() {
            self.is_watched.store(false, Ordering::Relaxed);
        }
        Some(oldest? + self.bounds.age)
    }

    /// Keeps a result. One that is kept already keeps its name.
    fn keep(
        &self,
        owner: Owner,
        result: &RawJson,
        cut: &Cut<'_>,
        page_size: usize,
    ) -> Option<Arc<KeptResult>> {
        let made = KeptResult::new(owner, result, cut, page_size);
        let now = Instant::now();
        let mut kept = self.kept();
        kept.forget_old(now, self.bounds.age);
        let same = kept.by_id.values().find(|(_, it)| it.is_same(&made));
        let made = match same.map(|(_, same)| Arc::clone(same)) {
            Some(same) => {
                kept.forget(&same.id);
                same
            }
            None => Arc::new(made),
        };
        if made.bytes() > self.bounds.bytes {
            return None;
        }
        kept.bytes += made.bytes();
        kept.by_id.insert(made.id.clone(), (now, Arc::clone(&made)));
        while kept.by_id.len() > self.bounds.results || kept.bytes > self.bounds.bytes {
            kept.forget_oldest();
        }
        Some(made)
    }

    /// The result of an address, if it is kept for this owner. What is another's is as if it were not there.
    pub(crate) fn find(
        &self,
        address: &Address,
        owner: Owner,
    ) -> Result<Arc<KeptResult>, PageError> {
        let mut kept = self.kept();
        kept.forget_old(Instant::now(), self.bounds.age);
        let found = kept.by_id.get(&address.id);
        let found = found.filter(|(_, result)| result.owner == owner);
        found
            .map(|(_, result)| Arc::clone(result))
            .ok_or(PageError::Gone)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget_old(&mut self, now: Instant, age: Duration) {
        while let Some((_, (since, _))) = self.by_id.first()
            && now.duration_since(*since) >= age
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
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

/// The least budget of all servers, in characters.
fn least_budget(config: &Config) -> usize {
    let servers = { config.toolboxes.values() }.flat_map(|toolbox| toolbox.servers.values());
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
