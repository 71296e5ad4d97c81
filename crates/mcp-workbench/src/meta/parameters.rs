//! Reading the parameters of a meta-tool: every problem is found, not just the first, and each is said
//! in fixed words. Keys that stand twice are refused, because two readers could take
//! different ones.

use std::{borrow::Cow, collections::HashSet, fmt, ops::RangeInclusive};

use crate::{
    near::nearest,
    wire::{Kind, RawJson},
};

/// One thing that is wrong with the parameters. `path` is empty for the parameters themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParameterProblem {
    /// A key that the tool does not take.
    Unrecognized {
        path: &'static str,
        key: String,
        hint: Option<Cow<'static, str>>,
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
    /// A word that is none of those that can stand there.
    UnknownWord {
        path: &'static str,
        known: &'static [&'static str],
        received: String,
    },
    /// A number that is no integer within the bounds.
    OutOfRange {
        path: &'static str,
        range: RangeInclusive<usize>,
        received: String,
    },
    /// A text with too many characters.
    TooLong {
        path: &'static str,
        longest: usize,
        received: usize,
    },
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
            Self::UnknownWord {
                path,
                known,
                received,
            } => {
                let words: Vec<String> = known.iter().map(|it| format!("'{it}'")).collect();
                let words = words.join(" | ");
                write!(f, "{path}: Expected {words}, received '{received}'")?;
                match nearest(received, known.iter().copied()) {
                    Some(near) => write!(f, " (did you mean '{near}'?)"),
                    None => Ok(()),
                }
            }
            Self::OutOfRange {
                path,
                range,
                received,
            } => {
                let (least, most) = (range.start(), range.end());
                write!(
                    f,
                    "{path}: Expected integer from {least} to {most}, received {received}"
                )
            }
            Self::TooLong {
                path,
                longest,
                received,
            } => write!(
                f,
                "{path}: Expected at most {longest} characters, received {received}"
            ),
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
    pub(super) fn read<H: Into<Cow<'static, str>>>(
        object: &RawJson,
        path: &'static str,
        keys: &[Key],
        hint: impl Fn(&str) -> Option<H>,
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
                    hint: hint(&member.key).map(Into::into),
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
        self.required(key, problems)?;
        self.optional_name(key, problems)
    }

    /// The value of a key that may be left out, and is a name otherwise.
    pub(super) fn optional_name(
        &self,
        key: &Key,
        problems: &mut Vec<ParameterProblem>,
    ) -> Option<Cow<'_, str>> {
        let text = self.text(key, problems)?;
        if text.trim().is_empty() {
            problems.push(ParameterProblem::Empty { path: key.path });
            return None;
        }
        Some(text)
    }

    /// The value of a key that may be left out, and is one of some words otherwise: its place among them.
    pub(super) fn word(
        &self,
        key: &Key,
        known: &'static [&'static str],
        problems: &mut Vec<ParameterProblem>,
    ) -> Option<usize> {
        let text = self.text(key, problems)?;
        let place = known.iter().position(|word| *word == text);
        if place.is_none() {
            problems.push(ParameterProblem::UnknownWord {
                path: key.path,
                known,
                received: text.into_owned(),
            });
        }
        place
    }

    /// The value of a key that may be left out, and is an integer otherwise.
    pub(super) fn integer(
        &self,
        key: &Key,
        range: RangeInclusive<usize>,
        problems: &mut Vec<ParameterProblem>,
    ) -> Option<usize> {
        let value = self.get(key)?;
        if value.kind() != Kind::Number {
            problems.push(ParameterProblem::Expected {
                path: key.path,
                expected: Kind::Number,
                received: value.kind(),
            });
            return None;
        }
        let number = value.as_str();
        let whole = number.strip_suffix(".0").unwrap_or(number);
        let whole = whole.parse().ok().filter(|it| range.contains(it));
        if whole.is_none() {
            problems.push(ParameterProblem::OutOfRange {
                path: key.path,
                range,
                received: number.to_owned(),
            });
        }
        whole
    }

    /// The value of a key that may be left out, and is a text otherwise.
    fn text(&self, key: &Key, problems: &mut Vec<ParameterProblem>) -> Option<Cow<'_, str>> {
        let value = self.get(key)?;
        let text = value.as_text();
        if text.is_none() {
            problems.push(ParameterProblem::Expected {
                path: key.path,
                expected: Kind::String,
                received: value.kind(),
            });
        }
        text
    }
}

/// What is said of a key that is nearly one of those that are taken.
pub(super) fn near_key(key: &str, keys: &[Key]) -> Option<String> {
    let near = nearest(key, keys.iter().map(|it| it.name))?;
    Some(format!("did you mean '{near}'?"))
}

#[cfg(test)]
mod tests;
