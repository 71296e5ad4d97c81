//! The rules of `permissions`, which decide which tools of a server may be called. The module `policy` applies them.

use ident::ClientName;

use super::{glob::Glob, problems::ValueFault};
use crate::near::nearest;

/// Starts a word about the hints of a tool. `\` before it makes it an ordinary character.
const MARK: char = '@';
const WORDS: &[&str] = &["@readOnly", "@destructive"];

/// The rules of one server. The default has none, and allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Tools that run without asking; `None` if the file has no such list.
    pub allow: Option<Vec<PermissionRule>>,
    /// Tools that the user is asked about.
    pub ask: Vec<PermissionRule>,
    /// Tools that do not run.
    pub deny: Vec<PermissionRule>,
    /// Tools that scripts may call; `None` if the file has no such list.
    pub code: Option<Vec<PermissionRule>>,
    /// The rules of the client that is served, which apply as well.
    pub client: Option<Box<ClientRules>>,
}

/// The rules of a client for the tools of all servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRules {
    pub name: ClientName,
    pub rules: Permissions,
}

impl Permissions {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.allow.is_none()
            && self.ask.is_empty()
            && self.deny.is_empty()
            && self.code.is_none()
            && self.client.is_none()
    }

    /// Returns the rules, as written, whose patterns match none of `tools` (all tools of the server). A rule of only
    /// `*` is never returned.
    pub fn unmatched<'a, 'b>(&'a self, tools: impl Iterator<Item = &'b str>) -> Vec<&'a str> {
        let tools: Vec<&str> = tools.collect();
        let rules = self
            .allow
            .iter()
            .flatten()
            .chain(&self.ask)
            .chain(&self.deny)
            .chain(self.code.iter().flatten());
        let unmatched = rules.filter(|rule| match &rule.target {
            RuleTarget::Name(glob) => {
                !glob.is_everything() && !tools.iter().any(|tool| glob.matches(tool))
            }
            // Hints can come and go with every version of a server, so a rule about them is not a mistake.
            RuleTarget::Hint(_) => false,
        });
        unmatched.map(PermissionRule::written).collect()
    }
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    written: String,
    target: RuleTarget,
}

/// The tools that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RuleTarget {
    Name(Glob),
    /// Tools with this hint of their server.
    Hint(ToolHint),
}

/// A hint of a server about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolHint {
    ReadOnly,
    Destructive,
}

impl PermissionRule {
    pub fn new(written: &str) -> Result<Self, ValueFault> {
        let target = match written {
            "@readOnly" => RuleTarget::Hint(ToolHint::ReadOnly),
            "@destructive" => RuleTarget::Hint(ToolHint::Destructive),
            word if word.starts_with(MARK) => {
                return Err(ValueFault::UnknownWord {
                    near: nearest(word, WORDS.iter().copied()),
                    found: word.to_owned(),
                    known: WORDS,
                });
            }
            // In `toolFilters` it excludes tools. Here a reader could take it for either, and this is about what may
            // run.
            word if word.starts_with('!') => {
                return Err(ValueFault::Negated {
                    found: word.to_owned(),
                });
            }
            name => {
                let escaped = name.strip_prefix('\\').filter(|it| it.starts_with(MARK));
                RuleTarget::Name(Glob::new(escaped.unwrap_or(name)))
            }
        };
        Ok(Self {
            written: written.to_owned(),
            target,
        })
    }

    pub fn written(&self) -> &str {
        &self.written
    }

    /// Returns whether the rule applies to a tool with this name and these hints.
    pub fn matches(&self, tool: &str, holds: impl Fn(ToolHint) -> bool) -> bool {
        match &self.target {
            RuleTarget::Name(glob) => glob.matches(tool),
            RuleTarget::Hint(hint) => holds(*hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_pattern_or_a_word_and_never_both() {
        let rule = |written: &str| PermissionRule::new(written).unwrap();
        let matches = |written: &str, tool: &str, hint: Option<ToolHint>| {
            rule(written).matches(tool, |it| Some(it) == hint)
        };
        let (read_only, destructive) = (Some(ToolHint::ReadOnly), Some(ToolHint::Destructive));
        let cases = [
            ("read_*", "read_file", None, true),
            ("read_*", "write", read_only, false),
            ("@readOnly", "anything", read_only, true),
            ("@readOnly", "anything", destructive, false),
            ("@readOnly", "@readOnly", None, false),
            ("@destructive", "x", destructive, true),
            (r"\@readOnly", "@readOnly", None, true),
            (r"\@readOnly", "x", read_only, false),
            (r"\@*", "@destructive", None, true),
            ("readOnly", "readOnly", None, true),
            ("readOnly", "x", read_only, false),
            ("*", "@readOnly", None, true),
            (r"\!x", "!x", None, true),
            (r"\\@x", r"\@x", None, true),
        ];
        for (written, tool, hint, expected) in cases {
            assert_eq!(matches(written, tool, hint), expected, "{written} {tool}");
            assert_eq!(rule(written).written(), written);
        }
    }

    #[test]
    fn rules_that_match_nothing_are_named() {
        let rules = |written: &[&str]| -> Vec<PermissionRule> {
            written
                .iter()
                .map(|it| PermissionRule::new(it).unwrap())
                .collect()
        };
        let permissions = Permissions {
            allow: Some(rules(&["read", "raed", "@readOnly"])),
            ask: rules(&["*", "write_*"]),
            deny: rules(&["delte_*"]),
            code: Some(rules(&["raed_*", "read"])),
            client: None,
        };
        let tools = ["read", "delete_all"];
        assert_eq!(
            permissions.unmatched(tools.into_iter()),
            ["raed", "write_*", "delte_*", "raed_*"]
        );
    }

    #[test]
    fn unknown_words_in_rules_are_refused() {
        let refused = ["@readonly", "@", "@*", "@idempotent", "!delete_*", "!"];
        for written in refused {
            assert!(PermissionRule::new(written).is_err(), "{written}");
        }
    }
}
