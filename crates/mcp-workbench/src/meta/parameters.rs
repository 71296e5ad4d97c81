//! Reading the parameters of a meta-tool: every problem is found, not just the first, and each is said
//! in fixed words. Keys that stand twice are refused, because two readers could take
//! different ones.

use std::{borrow::Cow, collections::HashSet, fmt};

use crate::wire::{Kind, RawJson};

/// One thing that is wrong with the parameters. `path` is empty for the parameters themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParameterProblem {
    /// A key that the tool does not take.
    Unrecognized {
        path: &'static str,
        key: String,
        hint: Option<&'static str>,
    },
    /// A key that stands twice.
    Doubled { path: &'static str, key: String },
    /// A key that must be there and is not.
    Required { path: &'static str },
    /// A value of another type.
    Expected {
        path: &'static str,
        expected: Kind,
        received: Kind,
    },
    /// A name that is empty or only white space.
    Empty { path: &'static str },
}

impl ParameterProblem {
    /// Whether this is an empty part of a tool's identifier.
    pub(super) fn is_empty_identifier_part(&self) -> bool {
        matches!(self, Self::Empty { path } if path.starts_with(IDENTIFIER_PREFIX))
    }

    /// The problem without the path's `tool.`.
    pub(super) fn short(&self) -> String {
        match self {
            Self::Empty { path } => {
                let part = path.strip_prefix(IDENTIFIER_PREFIX).unwrap_or(path);
                format!("{part} cannot be empty")
            }
            other => other.to_string(),
        }
    }
}

/// What the paths of the parts of an identifier begin with.
const IDENTIFIER_PREFIX: &str = "tool.";

impl fmt::Display for ParameterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecognized { path, key, hint } => {
                write!(f, "{}Unrecognized key: '{key}'", lead(path))?;
                match hint {
                    Some(hint) => write!(f, " ({hint})"),
                    None => Ok(()),
                }
            }
            Self::Doubled { path, key } => write!(f, "{}Duplicate key: '{key}'", lead(path)),
            Self::Required { path } => write!(f, "{path}: Required"),
            Self::Expected {
                path,
                expected,
                received,
            } => write!(
                f,
                "{}Expected {}, received {}",
                lead(path),
                expected.name(),
                received.name()
            ),
            Self::Empty { path } if path.starts_with(IDENTIFIER_PREFIX) => {
                write!(f, "{path}: cannot be empty")
            }
            Self::Empty { path } => write!(f, "{path} cannot be empty"),
        }
    }
}

fn lead(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}: ")
    }
}

/// A key that a tool takes.
pub(super) struct Key {
    /// Its name.
    pub(super) name: &'static str,
    /// Where it stands, for messages.
    pub(super) path: &'static str,
}

/// Reads one object of parameters.
pub(super) struct ParameterReader {
    found: Vec<(&'static str, RawJson)>,
}

impl ParameterReader {
    /// Takes the members that `keys` name; all others are problems. `hint` may explain a key that is
    /// not taken.
    pub(super) fn read(
        object: &RawJson,
        path: &'static str,
        keys: &[Key],
        hint: impl Fn(&str) -> Option<&'static str>,
        problems: &mut Vec<ParameterProblem>,
    ) -> Self {
        let mut found = Vec::new();
        let Some(members) = object.members() else {
            problems.push(ParameterProblem::Expected {
                path,
                expected: Kind::Object,
                received: object.kind(),
            });
            return Self { found };
        };
        let mut others = HashSet::new();
        for member in members {
            let known = keys.iter().find(|key| key.name == member.key);
            let is_doubled = match known {
                Some(key) => found.iter().any(|(name, _)| *name == key.name),
                None => !others.insert(member.key.clone()),
            };
            match known {
                _ if is_doubled => problems.push(ParameterProblem::Doubled {
                    path,
                    key: member.key.into_owned(),
                }),
                Some(key) => found.push((key.name, member.value)),
                None => problems.push(ParameterProblem::Unrecognized {
                    path,
                    hint: hint(&member.key),
                    key: member.key.into_owned(),
                }),
            }
        }
        Self { found }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &Key) -> Option<&RawJson> {
        self.found
            .iter()
            .find(|(name, _)| *name == key.name)
            .map(|(_, value)| value)
    }

    /// The value of a key that must be there.
    pub(super) fn required(
        &self,
        key: &Key,
        problems: &mut Vec<ParameterProblem>,
    ) -> Option<&RawJson> {
        let value = self.get(key);
        if value.is_none() {
            problems.push(ParameterProblem::Required { path: key.path });
        }
        value
    }

    /// The value of a key that must be a name.
    pub(super) fn name(
        &self,
        key: &Key,
        problems: &mut Vec<ParameterProblem>,
    ) -> Option<Cow<'_, str>> {
        let value = self.required(key, problems)?;
        let Some(text) = value.as_text() else {
            problems.push(ParameterProblem::Expected {
                path: key.path,
                expected: Kind::String,
                received: value.kind(),
            });
            return None;
        };
        if text.trim().is_empty() {
            problems.push(ParameterProblem::Empty { path: key.path });
            return None;
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests;
