//! Findings across several tools: names that look alike, a copy of another server's tool, and a text that
//! mentions another server's tool.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use rawjson::RawJson;

use super::{finding::excerpt, tree::Tree};
use crate::visible::{revealed, skeleton, with_lookalikes_numbered};

/// The length from which a name of several words counts as distinctive.
const MIN_DISTINCTIVE_LENGTH: usize = 8;
/// The number of characters of a name that are shown.
const NAME_LENGTH: usize = 80;
/// The maximum number of findings.
const MAX_FINDINGS: usize = 50;

/// The tools of one server.
pub struct ServerTools<'a> {
    /// The server's name in the configuration.
    pub server: &'a str,
    /// Its tools, by name and definition.
    pub tools: Vec<(&'a str, &'a RawJson)>,
}

/// A finding about two tools. It is always soft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossFinding {
    pub server: String,
    pub tool: String,
    /// The relation to the other tool.
    pub problem: CrossProblem,
    pub other_server: String,
    pub other_tool: String,
}

/// The relation of a tool to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossProblem {
    /// The names look the same but differ.
    Lookalike,
    /// The name and the description are the same.
    Copy,
    /// The definition mentions the other tool.
    Mention,
}

impl CrossFinding {
    /// Returns the stable code for programs.
    pub fn code(&self) -> &'static str {
        match self.problem {
            CrossProblem::Lookalike => "lookalike_name",
            CrossProblem::Copy => "copied_tool",
            CrossProblem::Mention => "mentions_other_server",
        }
    }
}

impl fmt::Display for CrossFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: &str| {
            let shown = match self.problem {
                CrossProblem::Lookalike => with_lookalikes_numbered(name),
                CrossProblem::Copy | CrossProblem::Mention => revealed(name).into_owned(),
            };
            excerpt(&shown, NAME_LENGTH)
        };
        let (tool, server) = (name(&self.tool), name(&self.server));
        let (other_tool, other_server) = (name(&self.other_tool), name(&self.other_server));
        let is = match self.problem {
            CrossProblem::Lookalike => "looks like",
            CrossProblem::Copy => "copies the name and description of",
            CrossProblem::Mention => "mentions",
        };
        write!(
            f,
            "tool '{tool}' of server '{server}' {is} tool '{other_tool}' of server '{other_server}'"
        )
    }
}

/// Compares the tools of a toolbox with each other.
pub fn across(lists: &[ServerTools<'_>]) -> Vec<CrossFinding> {
    let mut findings = names(lists);
    findings.extend(mentions(lists));
    findings.truncate(MAX_FINDINGS);
    findings
}

/// Finds names that look the same, if one of them is not ASCII, and copied tools.
fn names(lists: &[ServerTools<'_>]) -> Vec<CrossFinding> {
    let mut known: HashMap<String, Vec<Tool<'_>>> = HashMap::new();
    let mut findings = Vec::new();
    for list in lists {
        for (tool, definition) in &list.tools {
            let tool = Tool {
                server: list.server,
                name: tool,
                definition,
            };
            // Names that look the same have the same skeleton.
            let alike = known.entry(skeleton(tool.name)).or_default();
            for other in &*alike {
                if let Some(problem) = tool.problem(other) {
                    // The imitation is the name that is not ASCII, or else the later one.
                    let is_imitated = tool.name.is_ascii() && !other.name.is_ascii();
                    let (this, other) = if is_imitated {
                        (other, &tool)
                    } else {
                        (&tool, other)
                    };
                    findings.push(this.finding(problem, other.server, other.name));
                    if findings.len() == MAX_FINDINGS {
                        return findings;
                    }
                }
            }
            // Limits the comparisons if very many names look alike.
            if alike.len() < MAX_FINDINGS {
                alike.push(tool);
            }
        }
    }
    findings
}

/// A tool with its server.
struct Tool<'a> {
    server: &'a str,
    name: &'a str,
    definition: &'a RawJson,
}

impl Tool<'_> {
    fn problem(&self, other: &Self) -> Option<CrossProblem> {
        if self.name == other.name {
            if self.server == other.server {
                return None;
            }
            let text = |tool: &Self| {
                Some(
                    tool.definition
                        .member("description")?
                        .as_text()?
                        .into_owned(),
                )
            };
            let (this, other) = (text(self)?, text(other)?);
            return (this.trim() == other.trim()).then_some(CrossProblem::Copy);
        }
        // Different case is a habit, and `list1` and `listl` are a matter of fonts.
        let is_habit = (self.name.is_ascii() && other.name.is_ascii())
            || self.name.to_lowercase() == other.name.to_lowercase();
        (!is_habit).then_some(CrossProblem::Lookalike)
    }

    fn finding(&self, problem: CrossProblem, server: &str, tool: &str) -> CrossFinding {
        CrossFinding {
            server: self.server.to_owned(),
            tool: self.name.to_owned(),
            problem,
            other_server: server.to_owned(),
            other_tool: tool.to_owned(),
        }
    }
}

/// Finds definitions that mention a distinctive tool name that only another server has.
fn mentions(lists: &[ServerTools<'_>]) -> Vec<CrossFinding> {
    let mut owners: HashMap<&str, Vec<&str>> = HashMap::new();
    for list in lists {
        for (tool, _) in list.tools.iter().filter(|(tool, _)| is_distinctive(tool)) {
            owners.entry(tool).or_default().push(list.server);
        }
    }
    let mut findings = Vec::new();
    for list in lists {
        for (name, definition) in &list.tools {
            let tool = Tool {
                server: list.server,
                name,
                definition,
            };
            let tree = Tree::of(definition);
            // Each name is reported once per definition.
            let mut reported = HashSet::new();
            // A shorter text cannot contain a distinctive name.
            let texts = tree
                .texts()
                .filter(|it| !it.is_key && it.text.len() >= MIN_DISTINCTIVE_LENGTH);
            for word in texts.flat_map(|it| identifiers(it.text)) {
                let Some(servers) = owners.get(word) else {
                    continue;
                };
                let is_own = servers.contains(&list.server) || word == *name;
                if !is_own && reported.insert(word) {
                    findings.push(tool.finding(CrossProblem::Mention, servers[0], word));
                    if findings.len() == MAX_FINDINGS {
                        return findings;
                    }
                }
            }
        }
    }
    findings
}

/// Returns true if a name consists of several words, unlike a word of a language.
fn is_distinctive(name: &str) -> bool {
    let has_joint = name.contains(['_', '-', '.', '/']);
    let mut letters = name.chars();
    let has_hump = letters.any(char::is_lowercase) && letters.any(char::is_uppercase);
    name.chars().count() >= MIN_DISTINCTIVE_LENGTH && (has_joint || has_hump) && !name.contains(' ')
}

/// Returns the words of a text that may be tool names.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '/');
    let words = text.split(move |it: char| !is_part(it));
    words.map(|word| word.trim_matches(['.', '-', '/']))
}
