//! A server's list of tools: the walk over its pages, the check of each definition, and the immutable
//! result.

mod pinned;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Serialize;

use super::introduction::Introduction;
use crate::{
    config::ToolFilters,
    era::{
        CacheHints,
        headers::{self, ParameterHeader},
    },
    ident::ToolName,
    visible::visible,
    wire::{Kind, ObjectText, RawJson},
};

pub(super) use pinned::PinRules;

/// How many pages and tools of one list are read.
const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 10_000;
/// The largest definition that is offered.
const MAX_DEFINITION_BYTES: usize = 256 * 1024;

/// The tools of one server that are offered, as it described them.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolList {
    tools: Vec<ToolDefinition>,
    by_name: HashMap<ToolName, usize>,
    /// Tools that are not offered, and why.
    pub withheld: Vec<Withheld>,
    /// What else a reader should know of this list.
    pub notices: Vec<String>,
    /// What the server said of itself at its start.
    pub introduction: Introduction,
    /// How long the list may be kept, and by whom.
    pub hints: CacheHints,
}

impl Default for ToolList {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            by_name: HashMap::new(),
            withheld: Vec::new(),
            notices: Vec::new(),
            introduction: Introduction::default(),
            hints: CacheHints::NONE,
        }
    }
}

/// The rules by which a list is made of what a server says.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListRules<'a> {
    /// Which tools are offered.
    pub(super) filters: &'a ToolFilters,
    /// What is done about arguments that are marked for headers.
    pub(super) marks: Marks,
    /// What is done about tools that are not what the lock file has.
    pub(super) pins: Option<PinRules<'a>>,
}

/// What is done about arguments that are marked for headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    /// They are sent as headers, and a tool whose marks are wrong cannot be offered.
    Followed,
    /// There are no headers.
    Ignored,
}

/// One tool, byte for byte as its server described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: ToolName,
    /// The whole definition, an object.
    pub definition: RawJson,
    /// The arguments that are also sent as headers.
    pub headers: Vec<ParameterHeader>,
}

impl ToolDefinition {
    /// The headers of a call with these arguments.
    pub(super) fn headers(&self, arguments: &RawJson) -> Vec<(String, String)> {
        let values = self.headers.iter().filter_map(|marked| {
            let value = headers::encode(&marked.value(arguments)?);
            Some((marked.header.clone(), value))
        });
        values.collect()
    }
}

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// Its name, or its place where it has none.
    pub tool: String,
    /// Why it is not offered.
    pub reason: String,
    /// What kind of reason that is.
    #[serde(skip)]
    pub cause: Cause,
}

/// Why a tool is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its definition cannot be passed on.
    Definition,
    /// It is not what was approved.
    NotApproved,
}

impl ToolList {
    /// The tools in the server's order.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&ToolDefinition> {
        Some(&self.tools[*self.by_name.get(name)?])
    }

    /// The list without the tools that other filters do not let through; what they let through in addition is
    /// not known before the server is asked.
    pub(super) fn narrowed(self: &Arc<Self>, filters: &ToolFilters) -> Arc<Self> {
        let allows = |tool: &&ToolDefinition| filters.allows(tool.name.as_str());
        if self.tools.iter().all(|tool| allows(&tool)) {
            return Arc::clone(self);
        }
        Arc::new(self.without(|tool| !allows(&tool)))
    }

    /// The list without some tools.
    fn without(&self, leaves: impl Fn(&ToolDefinition) -> bool) -> Self {
        let mut list = Self {
            withheld: self.withheld.clone(),
            notices: self.notices.clone(),
            introduction: self.introduction.clone(),
            hints: self.hints,
            ..Self::default()
        };
        for tool in self.tools.iter().filter(|tool| !leaves(tool)) {
            let (definition, headers) = (tool.definition.clone(), tool.headers.clone());
            list.offer(tool.name.clone(), definition, headers);
        }
        list
    }

    /// The headers of a call with these parameters.
    pub(super) fn headers_of(&self, params: &RawJson) -> Vec<(String, String)> {
        // Almost no server marks arguments, and reading the parameters for nothing costs something.
        if self.tools.iter().all(|tool| tool.headers.is_empty()) {
            return Vec::new();
        }
        let name = params.member("name");
        let name = name.as_ref().and_then(RawJson::as_text);
        let tool = name.and_then(|name| self.get(&name));
        let arguments = params.member("arguments");
        match (tool, arguments) {
            (Some(tool), Some(arguments)) => tool.headers(&arguments),
            _ => Vec::new(),
        }
    }
}

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
    pub(super) fn tools() -> Self {
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
    pub(super) fn cut_short(&mut self, why: &str) -> Step {
        self.notices
            .push(format!("the list of tools was cut short {why}"));
        Step::Done
    }

    /// Whether a page has been read.
    pub(super) fn has_pages(&self) -> bool {
        self.pages > 0
    }

    /// The list of what the server offers and the filters let through.
    pub(super) fn finish(self, rules: &ListRules<'_>, introduction: Introduction) -> ToolList {
        let filters = rules.filters;
        let mut list = ToolList {
            hints: self.hints(),
            notices: self.notices,
            introduction,
            ..ToolList::default()
        };
        let mut names = HashSet::new();
        for (index, definition) in self.definitions.into_iter().enumerate() {
            match check_definition(&definition) {
                Ok(name) if !filters.allows(name.as_str()) => {
                    names.insert(name);
                }
                Ok(name) if !names.insert(name.clone()) => {
                    list.withhold(
                        name.as_str(),
                        "the server lists this name twice; the first is kept",
                        Cause::Definition,
                    );
                }
                Ok(name) => match marked(&definition, rules.marks) {
                    Ok(headers) => list.offer(name, definition, headers),
                    Err(fault) => {
                        tracing::warn!("tool '{}': {fault}", visible(name.as_str()));
                        list.withhold(name.as_str(), &fault, Cause::Definition);
                    }
                },
                Err(fault) => {
                    let label = definition
                        .member("name")
                        .and_then(|it| Some(it.as_text()?.into_owned()))
                        .filter(|name| !name.trim().is_empty());
                    let label = label.unwrap_or_else(|| format!("#{}", index + 1));
                    list.withhold(&label, &fault, Cause::Definition);
                }
            }
        }
        if let Some(rules) = &rules.pins {
            list.apply(rules.rule(&list));
        }
        for entry in filters.unmatched(names.iter().map(ToolName::as_str)) {
            tracing::warn!("the tool filter '{}' matches no tool", visible(entry));
        }
        list
    }
}

impl ToolList {
    fn offer(&mut self, name: ToolName, definition: RawJson, headers: Vec<ParameterHeader>) {
        self.by_name.insert(name.clone(), self.tools.len());
        self.tools.push(ToolDefinition {
            name,
            definition,
            headers,
        });
    }

    fn withhold(&mut self, tool: &str, reason: &str, cause: Cause) {
        self.withheld.push(Withheld {
            tool: visible(tool).into_owned(),
            reason: reason.to_owned(),
            cause,
        });
    }
}

/// The arguments of a tool that are also sent as headers; else what is wrong with how they are marked.
fn marked(definition: &RawJson, marks: Marks) -> Result<Vec<ParameterHeader>, String> {
    match (marks, definition.member("inputSchema")) {
        (Marks::Followed, Some(schema)) => {
            ParameterHeader::all_in(&schema).map_err(|fault| fault.to_string())
        }
        _ => Ok(Vec::new()),
    }
}

/// The name of a tool whose definition can be passed on; else what is wrong with it.
fn check_definition(definition: &RawJson) -> Result<ToolName, String> {
    let members = definition
        .members()
        .ok_or("the definition is not an object")?;
    if definition.as_bytes().len() > MAX_DEFINITION_BYTES {
        return Err(format!(
            "the definition is larger than {} KiB",
            MAX_DEFINITION_BYTES / 1024
        ));
    }
    let mut keys = HashSet::new();
    if let Some(doubled) = members.iter().find(|member| !keys.insert(&member.key)) {
        let key = visible(&doubled.key);
        return Err(format!("the definition has the key '{key}' twice"));
    }
    let find = |key: &str| members.iter().find(|it| it.key == key).map(|it| &it.value);
    let name = find("name").ok_or("name is missing")?;
    let name = name.as_text().ok_or("name is not a string")?;
    if name.trim().is_empty() {
        return Err("name is empty".to_owned());
    }
    let schema = find("inputSchema").ok_or("inputSchema is missing")?;
    if schema.kind() != Kind::Object {
        return Err("inputSchema is not an object".to_owned());
    }
    if find("description").is_some_and(|it| !matches!(it.kind(), Kind::String | Kind::Null)) {
        return Err("description is not a string".to_owned());
    }
    Ok(ToolName::from(name.as_ref()))
}

#[cfg(test)]
mod tests;
