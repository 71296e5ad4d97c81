//! Reads the parameters of a meta-tool. It reports all problems at once, in fixed words. Duplicate keys are refused,
//! because two readers could use different ones.

use std::{borrow::Cow, collections::HashSet, fmt, ops::RangeInclusive};

use rawjson::{Kind, RawJson};

use crate::{
    jq::{Filter, FilterError},
    near::nearest,
};

/// A problem with the parameters. `path` is empty for the parameters themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParameterProblem {
    /// A key that the tool does not have.
    Unrecognized {
        path: &'static str,
        key: String,
        hint: Option<Cow<'static, str>>,
    },
    Duplicate {
        path: &'static str,
        key: String,
    },
    Required {
        path: &'static str,
    },
    /// A value of the wrong type.
    Expected {
        path: &'static str,
        expected: Kind,
        received: Kind,
    },
    /// A name that is empty or only white space.
    Empty {
        path: &'static str,
    },
    /// A word that is not one of the allowed ones.
    UnknownWord {
        path: &'static str,
        known: &'static [&'static str],
        received: String,
    },
    /// A number that is not an integer within the bounds.
    OutOfRange {
        path: &'static str,
        range: RangeInclusive<usize>,
        received: String,
    },
    /// A text that is not a filter.
    Filter {
        path: &'static str,
        error: FilterError,
    },
    /// A text with too many characters.
    TooLong {
        path: &'static str,
        longest: usize,
        received: usize,
    },
}

impl ParameterProblem {
    /// Returns whether this is an empty part of a tool's identifier.
    pub(super) fn is_empty_identifier_part(&self) -> bool {
        matches!(self, Self::Empty { path } if path.starts_with(IDENTIFIER_PREFIX))
    }

    /// Returns the problem without the prefix `tool.` of its path.
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

/// The prefix of the paths of the parts of an identifier.
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
            Self::Duplicate { path, key } => write!(f, "{}Duplicate key: '{key}'", lead(path)),
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
            Self::Filter { path, error } => write!(f, "{path}: {error}"),
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

/// A key that a tool has.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// The path for messages.
    pub(super) path: &'static str,
}

/// Reads one object of parameters.
pub(super) struct ParameterReader {
    found: Vec<(&'static str, RawJson)>,
}

impl ParameterReader {
    /// Takes the members with these keys; all others are problems. `hint` may explain an unknown key.
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
            let is_duplicate = match known {
                Some(key) => found.iter().any(|(name, _)| *name == key.name),
                None => !others.insert(member.key.clone()),
            };
            match known {
                _ if is_duplicate => problems.push(ParameterProblem::Duplicate {
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

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &Key) -> Option<&RawJson> {
        self.found
            .iter()
            .find(|(name, _)| *name == key.name)
            .map(|(_, value)| value)
    }

    /// Returns the value of a required key.
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

    /// Returns the value of a required key that must be a name.
    pub(super) fn name(
        &self,
        key: &Key,
        problems: &mut Vec<ParameterProblem>,
    ) -> Option<Cow<'_, str>> {
        self.required(key, problems)?;
        self.optional_name(key, problems)
    }

    /// Returns the value of an optional key that must be a name.
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

    /// Returns the value of an optional key that must be one of some words, as an index into them.
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

    /// Returns the value of an optional key that must be an integer.
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
        // Some models write integers with a fraction.
        let whole = number
            .strip_suffix(".0")
            .unwrap_or(number)
            .parse()
            .ok()
            .filter(|it| range.contains(it));
        if whole.is_none() {
            problems.push(ParameterProblem::OutOfRange {
                path: key.path,
                range,
                received: number.to_owned(),
            });
        }
        whole
    }

    /// Returns the value of an optional key that must be a filter.
    pub(super) fn filter(&self, key: &Key, problems: &mut Vec<ParameterProblem>) -> Option<Filter> {
        let text = self.optional_name(key, problems)?;
        let path = key.path;
        Filter::new(&text)
            .map_err(|error| problems.push(ParameterProblem::Filter { path, error }))
            .ok()
    }

    /// Returns the value of an optional key that must be a text.
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

/// Returns a hint if a key is similar to a known one.
pub(super) fn near_key(key: &str, keys: &[Key]) -> Option<String> {
    let near = nearest(key, keys.iter().map(|it| it.name))?;
    Some(format!("did you mean '{near}'?"))
}

#[cfg(test)]
mod tests;
