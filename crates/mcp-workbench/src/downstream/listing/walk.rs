//! The walk over the pages of a server's list.

use std::{borrow::Cow, collections::HashSet};

use rawjson::{Cursor, Kind, ObjectText, RawJson};

use crate::{
    config::ListBounds,
    downstream::{introduction::Introduction, snapshot::ServerSnapshot},
    era::{CacheHints, Era},
};

/// Upper bound on the pages of one list.
pub(super) const MAX_PAGES: usize = 100;

/// A walk over the pages of a list.
#[derive(Debug)]
pub(crate) struct ListWalk {
    /// The member of a page that holds its items.
    items: &'static str,
    bounds: ListBounds,
    definitions: Vec<RawJson>,
    pages: usize,
    /// The size of all pages. Items share the buffers of their pages, so this is the memory that the list needs.
    bytes: usize,
    cursor: Option<RawJson>,
    seen: HashSet<RawJson>,
    notices: Vec<String>,
    /// The bound at which reading stopped, with the number of items that fit.
    incomplete: Option<String>,
    /// The strictest hints of all pages; `None` before the first.
    hints: Option<CacheHints>,
}

/// The member that leads to the next page.
const NEXT_CURSOR: &str = "nextCursor";

/// A page, read in one pass: it may have megabytes.
struct Page<'a> {
    items: Vec<RawJson>,
    /// The other members that are needed.
    others: Vec<(Cow<'a, str>, RawJson)>,
}

impl<'a> Page<'a> {
    /// Reads a page with its items in the member `items`; `None` if it is not one. Of duplicate members the first counts.
    fn read(page: &'a RawJson, name: &str) -> Option<Self> {
        let mut items = None;
        let mut others = Vec::new();
        Cursor::new(page).members_with_any_keys(|cursor, key| {
            if key == name && items.is_none() {
                let items = items.insert(Vec::new());
                return cursor.elements(|cursor| {
                    items.push(cursor.raw()?);
                    Some(())
                });
            }
            let value = cursor.raw()?;
            // A page may have millions of members, and each would take more than its text.
            let is_needed = key == NEXT_CURSOR || CacheHints::MEMBERS.contains(&&*key);
            if is_needed && !others.iter().any(|(known, _)| *known == key) {
                others.push((key, value));
            }
            Some(())
        })?;
        let items = items?;
        Some(Self { items, others })
    }
}

/// The next step after a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    /// The list is complete, or reading stopped.
    Done,
}

impl ListWalk {
    /// Creates a walk over a tool list.
    pub(crate) fn tools(bounds: ListBounds) -> Self {
        Self::new("tools", bounds)
    }

    /// Creates a walk over a list whose pages have their items in the member `items`.
    pub(crate) fn new(items: &'static str, bounds: ListBounds) -> Self {
        Self {
            items,
            bounds,
            definitions: Vec::new(),
            pages: 0,
            bytes: 0,
            cursor: None,
            seen: HashSet::new(),
            notices: Vec::new(),
            incomplete: None,
            hints: None,
        }
    }

    /// Returns the cache hints of the list: how long it is valid, and for whom.
    pub(crate) fn hints(&self) -> CacheHints {
        self.hints.unwrap_or(CacheHints::NONE)
    }

    /// Returns the size of the pages that were read.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the message about the bound at which reading stopped.
    pub(crate) fn incomplete(&self) -> Option<&str> {
        self.incomplete.as_deref()
    }

    /// Returns all items that were read.
    pub(crate) fn into_items(self) -> Vec<RawJson> {
        self.definitions
    }

    /// Returns the parameters of the next request.
    pub(crate) fn params(&self) -> RawJson {
        match &self.cursor {
            Some(cursor) => ObjectText::new().raw("cursor", cursor).finish(),
            None => ObjectText::new().finish(),
        }
    }

    /// Takes a page; returns `None` if it is not a page of such a list.
    pub(crate) fn accept(&mut self, page: &RawJson) -> Option<Step> {
        let Page { items, others } = Page::read(page, self.items)?;
        self.pages += 1;
        let member = |name: &str| {
            let member = others.iter().find(|(key, _)| key == name);
            member.map(|(_, value)| value.clone())
        };
        let hints = CacheHints::read(member);
        self.hints = Some(self.hints.map_or(hints, |before| before.and(hints)));
        // `null` means that there is no next page.
        let next = member(NEXT_CURSOR).filter(|it| it.kind() == Kind::String);
        self.take_items(items, page.as_bytes().len(), next.is_some());
        let Some(cursor) = next.filter(|_| self.incomplete.is_none()) else {
            return Some(Step::Done);
        };
        if !self.seen.insert(cursor.clone()) {
            return Some(self.cut_short(" because the server repeated a cursor"));
        }
        if self.pages == MAX_PAGES {
            return Some(self.cut_short(&format!(": it has more than {MAX_PAGES} pages")));
        }
        self.cursor = Some(cursor);
        Some(Step::Next)
    }

    /// Takes as many items of a page as fit.
    fn take_items(&mut self, mut items: Vec<RawJson>, page_bytes: usize, has_next: bool) {
        let ListBounds { tools, bytes } = self.bounds;
        let room = bytes.saturating_sub(self.bytes);
        self.bytes += page_bytes;
        let mut exceeded = None;
        if page_bytes > room {
            let mut used = 0;
            let fitting = items.iter().take_while(|item| {
                used += item.as_bytes().len();
                used <= room
            });
            let fitting = fitting.count();
            // A page has more than its items, so all of them may fit even if the page does not. Then only the pages
            // after it are too much.
            if fitting < items.len() || has_next {
                exceeded = Some(format!(
                    "the list is larger than maxToolListBytes ({bytes})"
                ));
            }
            items.truncate(fitting);
        }
        self.definitions.append(&mut items);
        if self.definitions.len() > tools {
            self.definitions.truncate(tools);
            exceeded = Some(format!("the list has more than maxTools ({tools})"));
        }
        self.incomplete = exceeded.map(|bound| {
            let count = self.definitions.len();
            format!("only the first {count} are listed, because {bound}")
        });
    }

    /// Adds a notice that later pages are missing. The items of earlier pages stay.
    pub(crate) fn cut_short(&mut self, why: &str) -> Step {
        self.notices
            .push(format!("the tool list is incomplete{why}"));
        Step::Done
    }

    pub(crate) fn has_pages(&self) -> bool {
        self.pages > 0
    }

    /// Returns the snapshot of the server, with its introduction.
    pub(crate) fn into_snapshot(self, era: Era, introduction: Introduction) -> ServerSnapshot {
        ServerSnapshot {
            era,
            introduction,
            hints: self.hints(),
            notices: self.notices,
            incomplete: self.incomplete,
            definitions: self.definitions,
        }
    }
}
