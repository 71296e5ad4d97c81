//! The walk over the pages of a server's list.

use std::collections::HashSet;

use crate::{
    downstream::{introduction::Introduction, told::Told},
    era::{CacheHints, Era},
    wire::{Kind, ObjectText, RawJson},
};

/// How many pages and tools of one list are read.
pub(super) const MAX_PAGES: usize = 100;
pub(super) const MAX_TOOLS: usize = 10_000;

/// A walk over the pages of a list.
#[derive(Debug)]
pub struct ListWalk {
    /// The member of a page that holds its items.
    items: &'static str,
    definitions: Vec<RawJson>,
    pages: usize,
    cursor: Option<RawJson>,
    seen: HashSet<RawJson>,
    notices: Vec<String>,
    /// The strictest of what the pages say; nothing before the first.
    hints: Option<CacheHints>,
}

/// What comes after a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// There is another page: ask again.
    Next,
    /// The list is complete, or as complete as it will get.
    Done,
}

impl ListWalk {
    /// A walk over a list of tools.
    pub(crate) fn tools() -> Self {
        Self::new("tools")
    }

    /// A walk over a list whose pages have their items in the member `items`.
    pub fn new(items: &'static str) -> Self {
        Self {
            items,
            definitions: Vec::new(),
            pages: 0,
            cursor: None,
            seen: HashSet::new(),
            notices: Vec::new(),
            hints: None,
        }
    }

    /// How long what was read may be kept, and by whom.
    pub fn hints(&self) -> CacheHints {
        self.hints.unwrap_or(CacheHints::NONE)
    }

    /// All items that were read.
    pub fn into_items(self) -> Vec<RawJson> {
        self.definitions
    }

    /// The parameters of the next request.
    pub fn params(&self) -> RawJson {
        match &self.cursor {
            Some(cursor) => ObjectText::new().raw("cursor", cursor).finish(),
            None => ObjectText::new().finish(),
        }
    }

    /// Takes a page; `None` if it is no page of such a list.
    pub fn accept(&mut self, page: &RawJson) -> Option<Step> {
        let tools = page.member(self.items)?.elements()?;
        self.pages += 1;
        let hints = CacheHints::of(page);
        self.hints = Some(self.hints.map_or(hints, |before| before.and(hints)));
        self.definitions.extend(tools);
        if self.definitions.len() > MAX_TOOLS {
            self.definitions.truncate(MAX_TOOLS);
            return Some(self.cut_short(&format!("after {MAX_TOOLS} tools")));
        }
        let next = page
            .member("nextCursor")
            .filter(|it| it.kind() == Kind::String);
        let Some(cursor) = next else {
            return Some(Step::Done);
        };
        if !self.seen.insert(cursor.clone()) {
            return Some(self.cut_short("because the server gave the same cursor twice"));
        }
        if self.pages == MAX_PAGES {
            return Some(self.cut_short(&format!("after {MAX_PAGES} pages")));
        }
        self.cursor = Some(cursor);
        Some(Step::Next)
    }

    /// Notes that a later page could not be read; what came before it counts.
    pub(crate) fn cut_short(&mut self, why: &str) -> Step {
        self.notices
            .push(format!("the list of tools was cut short {why}"));
        Step::Done
    }

    /// Whether a page has been read.
    pub(crate) fn has_pages(&self) -> bool {
        self.pages > 0
    }

    /// What the server has told, with what it said of itself.
    pub(crate) fn told(self, era: Era, introduction: Introduction) -> Told {
        Told {
            era,
            introduction,
            hints: self.hints(),
            notices: self.notices,
            definitions: self.definitions,
        }
    }
}
