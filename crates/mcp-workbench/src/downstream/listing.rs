//! A server's tool list: the walk over its pages, the check of each definition, and the immutable result.

mod judged;
mod pinned;
mod schemas;
mod ui;
mod walk;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use ident::ToolName;
use rawjson::{Cursor, RawJson, unescape};
use serde::Serialize;

use super::{
    introduction::Introduction,
    skills::{InvalidSkill, Skill},
    snapshot::ServerSnapshot,
};
use crate::{
    call::Fingerprint,
    config::{Permissions, PinMode, Server, ToolFilters, Transport},
    era::{
        CacheHints, Era,
        headers::{self, ParameterHeader},
    },
    lock::{ServerPins, canonical},
    policy::{
        permissions::{HintHistory, Reason},
        scan::{self, Finding},
    },
    sha256::Sha256,
    shapes::{Shapes, ToolShape},
    visible::{visible, visible_word},
};

use judged::ScriptRules;
pub(crate) use pinned::PinRules;
use schemas::ParsedSchemas;
use ui::ToolUi;
pub(crate) use ui::{UI_SCHEME, with_ui_uris};
pub(crate) use walk::{ListWalk, Step};

/// The reason why a duplicate tool is withheld.
const DUPLICATE_NAME: &str = "duplicate tool name; only the first tool is used";

/// The reason why a duplicate skill is withheld.
const DUPLICATE_SKILL: &str = "duplicate uri; only the first tool or skill of this name is used";

/// The longest name of a tool that is offered. A name appears in messages, in the log and in the lock file, so the bound on the
/// whole list is not enough.
pub(crate) const MAX_NAME_BYTES: usize = 512;
/// The number of characters shown of a name or key in a broken definition.
const SHOWN_CHARACTERS: usize = 100;
/// The number of withheld tools of a list that are logged one by one.
const MAX_LOGGED: usize = 20;

/// Names of tools. A list may have many thousands of them.
type Names = HashSet<ToolName, foldhash::fast::RandomState>;

/// The offered tools of one server, unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolList {
    tools: Vec<ToolDefinition>,
    by_name: HashMap<ToolName, usize, foldhash::fast::RandomState>,
    /// Tools that the configuration denies, with the reasons.
    denied: HashMap<ToolName, Reason>,
    /// The annotations that the tools have had so far, if permission rules use them.
    said: HintHistory,
    /// The tools that scripts may call, if the configuration lists them.
    script_rules: ScriptRules,
    schemas: ParsedSchemas,
    /// Tools that are not offered, with the reasons.
    pub withheld: Vec<Withheld>,
    pub notices: Vec<String>,
    /// The bound of the configuration at which reading the list stopped, with the number of tools that fit.
    pub incomplete: Option<String>,
    /// The server's description of itself.
    pub introduction: Introduction,
    /// How long the list may be cached, and for whom.
    pub hints: CacheHints,
    /// The offered skills of the server.
    pub skills: Vec<Skill>,
    /// True if nothing unapproved is offered.
    pub is_enforced: bool,
}

impl Default for ToolList {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            by_name: HashMap::default(),
            denied: HashMap::new(),
            said: HintHistory::default(),
            script_rules: ScriptRules::default(),
            schemas: ParsedSchemas::default(),
            withheld: Vec::new(),
            notices: Vec::new(),
            incomplete: None,
            introduction: Introduction::default(),
            hints: CacheHints::NONE,
            skills: Vec::new(),
            is_enforced: false,
        }
    }
}

/// The rules that turn a server's snapshot into a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListRules<'a> {
    pub(crate) filters: &'a ToolFilters,
    /// The rules that deny calls or need the user's consent.
    pub(crate) permissions: &'a Permissions,
    /// The handling of arguments that are marked as headers.
    pub(crate) marks: HeaderMarks,
    /// The handling of tools that differ from the lock file.
    pub(crate) pins: Option<PinRules<'a>>,
    /// The shapes of results, if they are learned.
    pub(crate) shapes: Option<&'a Shapes>,
}

impl<'a> ListRules<'a> {
    /// Returns the rules for a server of an era.
    pub(crate) fn of(server: &'a Server, era: Era) -> Self {
        let marks = match (&server.transport, era) {
            (Transport::Remote(_), Era::Modern) => HeaderMarks::Followed,
            _ => HeaderMarks::Ignored,
        };
        Self {
            filters: &server.filters,
            permissions: &server.permissions,
            marks,
            pins: None,
            shapes: None,
        }
    }

    /// Adds the shapes of results, if the entry of the server enables them.
    pub(crate) fn with_shapes(self, server: &Server, shapes: &'a Shapes) -> Self {
        Self {
            shapes: server.learn_shapes.then_some(shapes),
            ..self
        }
    }

    /// Adds the pins of the server.
    pub(crate) fn with_pins(self, pins: &'a ServerPins, mode: PinMode) -> Self {
        Self {
            pins: Some(PinRules { pins, mode }),
            ..self
        }
    }

    /// Returns true if exactly this definition was approved with its finding.
    fn releases(&self, name: &ToolName, definition: &RawJson, code: &str) -> bool {
        let name = name.as_str();
        self.pins
            .is_some_and(|it| it.pins.releases(name, definition, code))
    }

    fn finding_reason(&self, name: &ToolName, finding: &str) -> String {
        let reason = |it: PinRules<'_>| it.pins.finding_reason(name.as_str(), finding);
        self.pins.map_or_else(|| finding.to_owned(), reason)
    }

    fn fault_reason(&self, fault: &str) -> String {
        let reason = |it: PinRules<'_>| it.pins.fault_reason(fault);
        self.pins.map_or_else(|| fault.to_owned(), reason)
    }
}

/// The handling of arguments that are marked as headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderMarks {
    /// Marked arguments are sent as headers, and a tool with invalid marks is withheld.
    Followed,
    /// The transport or the era has no such headers.
    Ignored,
}

/// One tool, byte for byte as its server defined it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolDefinition {
    pub name: ToolName,
    /// The complete definition, an object.
    pub definition: RawJson,
    /// The arguments that are also sent as headers.
    pub headers: Vec<ParameterHeader>,
    /// The reason to ask the user before each call; `None` if no question is needed.
    pub asks: Option<Reason>,
    /// The code of the finding that was approved, if the scanner has one.
    pub released: Option<&'static str>,
    /// Its user interface. It is boxed, because few tools have one.
    pub ui: Option<Box<ToolUi>>,
    /// The shape of its results.
    pub shape: ToolShape,
}

impl ToolDefinition {
    /// Returns the digest that a user's consent refers to.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        // In canonical form, as for pins: a server that reorders its keys has not changed the tool.
        Sha256::digest(canonical(&self.definition))
    }

    /// Returns the headers of a call with these arguments.
    pub(crate) fn headers(&self, arguments: &RawJson) -> Vec<(String, String)> {
        let values = self.headers.iter().filter_map(|marked| {
            let value = marked.value(arguments)?;
            Some((marked.header.clone(), headers::encode(&value).into_owned()))
        });
        values.collect()
    }
}

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Withheld {
    /// Its name with hidden characters made visible, or its position if it has no name.
    pub tool: String,
    pub reason: String,
    /// Its name as the server spells it, or its position if it has no name.
    #[serde(skip)]
    pub name: ToolName,
    #[serde(skip)]
    pub cause: Cause,
}

/// The kind of reason why a tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its definition cannot be passed on.
    Definition,
    /// The scanner has a finding that is not approved.
    Finding(Reviewable),
    /// The configuration does not permit it.
    NotPermitted,
    /// It differs from what was approved.
    NotApproved,
}

/// A definition with a finding, which the user can approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reviewable {
    /// The complete definition, an object.
    pub definition: RawJson,
    pub code: &'static str,
}

impl ToolList {
    /// Returns the tools in the server's order.
    pub(crate) fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Returns the size of the definitions of all tools.
    pub(crate) fn bytes(&self) -> usize {
        let tools = self.tools.iter();
        tools.map(|tool| tool.definition.as_bytes().len()).sum()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ToolDefinition> {
        Some(&self.tools[*self.by_name.get(name)?])
    }

    /// Creates the list of the tools that the rules let through.
    pub(crate) fn of(snapshot: &ServerSnapshot, rules: &ListRules<'_>) -> Self {
        let filters = rules.filters;
        let mut list = Self {
            hints: snapshot.hints,
            notices: snapshot.notices.clone(),
            incomplete: snapshot.incomplete.clone(),
            introduction: snapshot.introduction.clone(),
            ..Self::default()
        };
        list.notices.extend(list.introduction.left_out.clone());
        let count = snapshot.definitions.len();
        list.tools.reserve_exact(count);
        list.by_name.reserve(count);
        let mut names = Names::default();
        // Filters, duplicates and the scanner judge each tool here, permissions and pins the list afterwards. A step
        // does not see the tools that an earlier one has removed, so a tool is withheld for one reason.
        let mut members = Vec::new();
        for (index, definition) in snapshot.definitions.iter().enumerate() {
            match check_definition(definition, &mut members) {
                Ok(name) if !filters.allows(name.as_str()) => {
                    // A filter that excludes a tool has matched one.
                    names.insert(name);
                }
                Ok(name) if !names.insert(name.clone()) => {
                    let reason = rules.fault_reason(DUPLICATE_NAME);
                    list.withhold(&name, reason, Cause::Definition);
                }
                Ok(name) => list.offer_checked(name, definition, &members, rules),
                Err(fault) => {
                    let label = find(&members, "name")
                        .and_then(text)
                        .filter(|name| !name.trim().is_empty())
                        .map_or_else(|| format!("#{}", index + 1), Cow::into_owned);
                    let reason = rules.fault_reason(&fault);
                    let label = ToolName::from(&*shortened(&label));
                    list.withhold(&label, reason, Cause::Definition);
                }
            }
        }
        if list.withheld.len() > MAX_LOGGED {
            let count = list.withheld.len();
            tracing::warn!("{count} tools are withheld in all");
        }
        for entry in filters.unmatched(names.iter().map(ToolName::as_str)) {
            tracing::warn!("the tool filter '{}' matches no tool", visible(entry));
        }
        list.offer_skills(rules);
        let permissions = rules.permissions;
        for rule in permissions.unmatched(names.iter().map(ToolName::as_str)) {
            let rule = visible(rule);
            tracing::warn!("permission rule '{rule}' matches no tool");
        }
        list.judge(permissions);
        if let Some(pins) = &rules.pins {
            // Last, because the lock file is only about tools that passed all other rules.
            list.is_enforced = pins.pins.mode(pins.mode) == PinMode::Enforce;
            list.apply(pins.rule(&list));
        }
        list
    }

    /// Offers a tool with a valid definition, unless the scanner has a finding that is not approved.
    fn offer_checked(
        &mut self,
        name: ToolName,
        definition: &RawJson,
        members: &[Member<'_>],
        rules: &ListRules<'_>,
    ) {
        let finding = scan::hard(definition);
        let approvable = finding.as_ref().filter(|it| it.can_be_approved());
        let code = approvable.map(Finding::code);
        let released = code.filter(|code| rules.releases(&name, definition, code));
        if let (Some(finding), None) = (&finding, released) {
            let words = finding.to_string();
            self.log_withheld(&name, &words);
            let Some(code) = code else {
                return self.withhold(&name, rules.fault_reason(&words), Cause::Definition);
            };
            let definition = definition.clone();
            let cause = Cause::Finding(Reviewable { definition, code });
            return self.withhold(&name, rules.finding_reason(&name, &words), cause);
        }
        // The shape of a result that its server declares need not be learned.
        let is_declared = find(members, "outputSchema").is_some();
        let shapes = rules.shapes.filter(|_| !is_declared);
        let shape = shapes.map(|shapes| shapes.of(&name)).unwrap_or_default();
        // Looked for first, because most tools have none.
        let meta = find(members, "_meta").and_then(|_| definition.member("_meta"));
        match marked(definition, rules.marks) {
            Ok(headers) => self.offer(ToolDefinition {
                name,
                definition: definition.clone(),
                headers,
                asks: None,
                released,
                ui: meta.as_ref().and_then(ToolUi::of),
                shape,
            }),
            Err(fault) => {
                self.log_withheld(&name, &fault);
                self.withhold(&name, rules.fault_reason(&fault), Cause::Definition);
            }
        }
    }

    /// Offers the skills of the server that are valid. They are pinned by their URIs beside the tools.
    fn offer_skills(&mut self, rules: &ListRules<'_>) {
        // Taken out while the list changes.
        let entries = std::mem::take(&mut self.introduction.declared);
        for entry in entries.iter().flat_map(|it| &it.skills) {
            let entry = RawJson::parse(&entry.clone().into());
            let skill = entry.ok().as_ref().map(Skill::read);
            match skill {
                Some(Ok(skill)) if self.is_taken(&skill.uri) => {
                    let reason = rules.fault_reason(DUPLICATE_SKILL);
                    self.withhold(&ToolName::from(&*skill.uri), reason, Cause::Definition);
                }
                Some(Ok(skill)) => self.skills.push(skill),
                Some(Err(InvalidSkill { uri, reason })) => {
                    let name = uri.unwrap_or_else(|| "skill".to_owned());
                    let reason = rules.fault_reason(&reason);
                    self.withhold(&ToolName::from(&*name), reason, Cause::Definition);
                }
                None => {}
            }
        }
        self.introduction.declared = entries;
    }

    /// Returns true if a tool or a skill has this name.
    fn is_taken(&self, name: &str) -> bool {
        self.get(name).is_some()
            || self.withheld_as(name).is_some()
            || self.skills.iter().any(|skill| skill.uri == name)
    }

    fn offer(&mut self, tool: ToolDefinition) {
        self.by_name.insert(tool.name.clone(), self.tools.len());
        self.tools.push(tool);
    }

    /// Logs why a tool will be withheld. A server with thousands of such tools must not fill the log.
    fn log_withheld(&self, name: &ToolName, why: &str) {
        if self.withheld.len() < MAX_LOGGED {
            tracing::warn!("tool '{}': {why}", visible(name.as_str()));
        }
    }

    fn withhold(&mut self, name: &ToolName, reason: String, cause: Cause) {
        self.withheld.push(Withheld {
            tool: visible_word(name.as_str()).into_owned(),
            reason,
            name: name.clone(),
            cause,
        });
    }
}

/// Returns the names of the tools that the filters let through, even if their definitions are invalid.
pub(crate) fn listed_names(snapshot: &ServerSnapshot, filters: &ToolFilters) -> Vec<ToolName> {
    let names = snapshot.definitions.iter().filter_map(|definition| {
        let name = definition.member("name")?;
        Some(ToolName::from(name.as_text()?.as_ref()))
    });
    names.filter(|name| filters.allows(name.as_str())).collect()
}

/// Returns the arguments of a tool that are also sent as headers, or the problem with their marks.
fn marked(definition: &RawJson, marks: HeaderMarks) -> Result<Vec<ParameterHeader>, String> {
    if marks == HeaderMarks::Ignored {
        return Ok(Vec::new());
    }
    let schema = definition.member("inputSchema");
    let headers = schema.map_or(Ok(Vec::new()), |it| ParameterHeader::all_in(&it));
    headers.map_err(|fault| fault.to_string())
}

/// A member of a definition: its key, and its value as it was sent.
type Member<'a> = (Cow<'a, str>, &'a [u8]);

/// Returns the value of the first member `key`.
fn find<'a>(members: &[Member<'a>], key: &str) -> Option<&'a [u8]> {
    let mut members = members.iter();
    members.find(|it| it.0 == key).map(|it| it.1)
}

/// Returns the text of a string.
fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    value.starts_with(b"\"").then(|| unescape(value))
}

/// Returns the name of a tool with a valid definition, or the problem with the definition. Puts its members into `members`.
fn check_definition<'a>(
    definition: &'a RawJson,
    members: &mut Vec<Member<'a>>,
) -> Result<ToolName, String> {
    members.clear();
    let read = Cursor::new(definition).members_with_any_keys(|cursor, key| {
        members.push((key, cursor.written()?));
        Some(())
    });
    read.ok_or("the definition is not an object")?;
    // Clients differ in which of two members they read, so a model could see one that was not checked.
    let mut keys: HashSet<_, foldhash::fast::RandomState> = HashSet::default();
    if let Some(duplicate) = members.iter().find(|it| !keys.insert(&it.0)) {
        let key = shortened(&duplicate.0);
        let key = visible(&key);
        return Err(format!("the definition has the duplicate key '{key}'"));
    }
    let find = |key: &str| find(members, key);
    let name = find("name").ok_or("name is missing")?;
    let name = text(name).ok_or("name is not a string")?;
    if name.trim().is_empty() {
        return Err("name is empty".to_owned());
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(format!("name is longer than {MAX_NAME_BYTES} bytes"));
    }
    let schema = find("inputSchema").ok_or("inputSchema is missing")?;
    if !schema.starts_with(b"{") {
        return Err("inputSchema is not an object".to_owned());
    }
    // `null` counts as no description.
    if find("description").is_some_and(|it| !matches!(it.first(), Some(b'"' | b'n'))) {
        return Err("description is not a string".to_owned());
    }
    Ok(ToolName::from(name.as_ref()))
}

/// Returns a name or key as messages show it. It may be hundreds of kilobytes long.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
