//! Reads values from the syntax tree. Each value has a path, each problem gets its place, and reading continues after
//! a problem so that all are found.

use std::{
    collections::{HashMap, hash_map},
    ops::RangeInclusive,
};

use jsonc_parser::{ast::Value, common::Ranged};

use super::types::{BUDGETS, Text};
use crate::config::problems::{Fault, Findings, JsonType, KeyFault, SourceLocation, ValueFault};

/// Reads values of one file and records problems.
pub(in crate::config) struct Reader<'a> {
    /// The starts of the lines of the file, in bytes.
    line_starts: Vec<usize>,
    text: &'a str,
    findings: &'a mut Findings,
}

/// A value and its path.
#[derive(Debug, Clone)]
pub(in crate::config) struct Node<'v> {
    pub(super) value: &'v Value<'v>,
    pub(super) path: String,
}

/// A key of an object and its value.
#[derive(Debug, Clone)]
pub(super) struct Entry<'v> {
    pub(super) key: &'v str,
    /// The start of the key, in bytes.
    pub(super) key_start: usize,
    pub(super) node: Node<'v>,
}

impl<'a> Reader<'a> {
    /// Creates a reader for the content of the file.
    pub(super) fn new(text: &'a str, findings: &'a mut Findings) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            line_starts: std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
            text,
            findings,
        }
    }

    /// Returns the place of a byte of the file.
    pub(super) fn place(&self, at: usize, path: &str) -> SourceLocation {
        // The first line starts at 0, so that at least one start is not behind the byte.
        let line = self.line_starts.partition_point(|start| *start <= at);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..at).unwrap_or_default();
        SourceLocation {
            line,
            column: before.chars().count() + 1,
            path: path.into(),
        }
    }

    /// Records a fault at a byte of the file.
    pub(super) fn report(&mut self, at: usize, path: &str, fault: impl Into<Fault>) {
        let place = self.place(at, path);
        self.findings.add(place, fault);
    }

    /// Records a fault of a value.
    pub(in crate::config) fn report_value(&mut self, node: &Node<'_>, fault: impl Into<Fault>) {
        self.report(node.value.start(), &node.path, fault);
    }

    /// Records a fault of a string that was read.
    pub(super) fn report_text(&mut self, text: &Text, fault: impl Into<Fault>) {
        self.findings.add(text.place.clone(), fault);
    }

    /// Returns the entries of an object, duplicates included, and records the duplicates.
    pub(super) fn entries<'v>(&mut self, node: &Node<'v>) -> Option<Vec<Entry<'v>>> {
        let Value::Object(object) = node.value else {
            self.wrong_type(node, "an object");
            return None;
        };
        // Parsers silently use one of two equal keys, which would hide a mistake.
        let mut first_places = HashMap::new();
        for property in &object.properties {
            let (key, at) = (property.name.as_str(), property.name.start());
            match first_places.entry(key) {
                hash_map::Entry::Vacant(place) => {
                    place.insert(at);
                }
                hash_map::Entry::Occupied(first) => {
                    self.duplicate(key, *first.get(), at, &member(&node.path, key));
                }
            }
        }
        let entries = object.properties.iter().map(|property| Entry {
            key: property.name.as_str(),
            key_start: property.name.start(),
            node: Node {
                value: &property.value,
                path: member(&node.path, property.name.as_str()),
            },
        });
        Some(entries.collect())
    }

    /// Reads a string that must not be empty; `what` is a noun for the message.
    pub(super) fn filled_text(&mut self, node: &Node<'_>, what: &'static str) -> Option<Text> {
        let text = self.text(node)?;
        if text.written.trim().is_empty() {
            self.report_value(node, ValueFault::Empty { what });
            return None;
        }
        Some(text)
    }

    /// Reads a string. The fault for numbers and booleans advises to quote them.
    pub(in crate::config) fn text(&mut self, node: &Node<'_>) -> Option<Text> {
        let found = match node.value {
            Value::StringLit(string) if string.value.contains('\0') => {
                self.report_value(node, ValueFault::NulCharacter);
                return None;
            }
            Value::StringLit(string) => {
                return Some(Text {
                    written: string.value.clone().into_owned(),
                    place: self.place(string.start(), &node.path),
                });
            }
            Value::NumberLit(number) => number.value.into(),
            Value::BooleanLit(boolean) => boolean.value.to_string(),
            _ => {
                self.wrong_type(node, "a string");
                return None;
            }
        };
        self.report_value(node, ValueFault::Unquoted { found });
        None
    }

    /// Reads an array of strings.
    pub(super) fn texts(&mut self, node: &Node<'_>) -> Option<Vec<Text>> {
        let items = self.items(node)?;
        Some(items.iter().filter_map(|item| self.text(item)).collect())
    }

    /// Reads an array of strings that must not be empty.
    pub(super) fn filled_texts(
        &mut self,
        node: &Node<'_>,
        what: &'static str,
    ) -> Option<Vec<Text>> {
        let items = self.items(node)?;
        let texts = items.iter().filter_map(|item| self.filled_text(item, what));
        Some(texts.collect())
    }

    pub(super) fn flag(&mut self, node: &Node<'_>) -> Option<bool> {
        let Value::BooleanLit(boolean) = node.value else {
            self.wrong_type(node, "a boolean");
            return None;
        };
        Some(boolean.value)
    }

    /// Reads a positive integer within bounds.
    pub(super) fn positive(&mut self, node: &Node<'_>, least: u64, most: u64) -> Option<u64> {
        let Value::NumberLit(number) = node.value else {
            self.wrong_type(node, "a positive integer");
            return None;
        };
        let found: String = number.value.into();
        let is_whole = found.bytes().all(|byte| byte.is_ascii_digit());
        let fault = match found.parse::<u64>() {
            Ok(value) if (least..=most).contains(&value) => return Some(value),
            Ok(0) => ValueFault::NotPositive { found },
            // It may also have more digits than fit into 64 bits.
            _ if is_whole => ValueFault::OutOfRange { found, least, most },
            _ => ValueFault::NotPositive { found },
        };
        self.report_value(node, fault);
        None
    }

    /// Reads a number of characters, or 0 for no bound.
    pub(super) fn budget(&mut self, node: &Node<'_>) -> Option<u64> {
        self.limit(node, BUDGETS)
    }

    /// Reads a number in a range, or 0 for no limit.
    pub(super) fn limit(&mut self, node: &Node<'_>, range: RangeInclusive<u64>) -> Option<u64> {
        let (least, most) = range.into_inner();
        match node.value {
            Value::NumberLit(number) if number.value == "0" => Some(0),
            _ => self.positive(node, least, most),
        }
    }

    /// Records that a value has the wrong type.
    pub(super) fn wrong_type(&mut self, node: &Node<'_>, expected: &'static str) {
        let found = json_type(node.value);
        self.report_value(node, ValueFault::WrongType { expected, found });
    }

    /// Returns the items of an array.
    pub(in crate::config) fn items<'v>(&mut self, node: &Node<'v>) -> Option<Vec<Node<'v>>> {
        let Value::Array(array) = node.value else {
            self.wrong_type(node, "an array of strings");
            return None;
        };
        let items = array.elements.iter().enumerate().map(|(n, value)| Node {
            value,
            path: format!("{}[{n}]", node.path),
        });
        Some(items.collect())
    }

    /// Records a duplicate key whose first occurrence is at byte `first`.
    fn duplicate(&mut self, key: &str, first: usize, at: usize, path: &str) {
        let SourceLocation { line, column, .. } = self.place(first, path);
        let fault = KeyFault::Duplicate {
            key: key.into(),
            line,
            column,
        };
        self.report(at, path, fault);
    }
}

/// Returns the type of a value.
pub(in crate::config) fn json_type(value: &Value<'_>) -> JsonType {
    match value {
        Value::StringLit(_) => JsonType::String,
        Value::NumberLit(_) => JsonType::Number,
        Value::BooleanLit(_) => JsonType::Boolean,
        Value::Object(_) => JsonType::Object,
        Value::Array(_) => JsonType::Array,
        Value::NullKeyword(_) => JsonType::Null,
    }
}

/// Returns whether a value is `null`, which counts as missing for an optional key.
pub(super) fn is_null(node: &Node<'_>) -> bool {
    matches!(node.value, Value::NullKeyword(_))
}

/// Returns the path of a member: `toolboxes.dev`, or `toolboxes["my tools"]` if the name would be misread.
pub(in crate::config) fn member(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && !key.contains(|it: char| {
            it.is_whitespace() || it.is_control() || matches!(it, '.' | '[' | ']' | '"')
        });
    match (plain, path.is_empty()) {
        (true, true) => key.into(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}
