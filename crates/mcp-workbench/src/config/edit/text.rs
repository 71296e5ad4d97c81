//! A JSON text with comments whose objects can be changed in place.

use jsonc_parser::{
    CollectOptions,
    ast::{Object, ObjectProp, Value as Node},
    common::Ranged,
    parse_to_ast,
};
use serde_json::Value;

use super::{
    error::EditError,
    render,
    splice::{self, Splice},
    style::{Style, line_indent},
    trivia::{Piece, directly_above, pieces},
};
use crate::config::{
    problems::{SourceLocation, ValueFault},
    raw::{self, SYNTAX},
};

/// The byte order mark that some editors put at the beginning of a file.
const BOM: char = '\u{feff}';

/// A JSON object as text, with comments and trailing commas, that is changed in place. Bytes that a change does not
/// concern are preserved: comments, order, layout and line breaks. Of duplicate keys the first counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsoncText {
    /// The text without its BOM.
    text: String,
    has_bom: bool,
}

impl JsoncText {
    /// Parses a text that must be an object.
    pub(crate) fn parse(text: &str) -> Result<Self, EditError> {
        let plain = text.strip_prefix(BOM);
        let parsed = Self {
            text: plain.unwrap_or(text).to_owned(),
            has_bom: plain.is_some(),
        };
        parsed.with_object(&[], |_, _| ())?;
        Ok(parsed)
    }

    /// Returns the keys of the object at a path; none if the path does not exist.
    pub(crate) fn keys(&self, path: &[&str]) -> Result<Vec<String>, EditError> {
        let keys = self.with_object(path, |object, _| {
            let keys = object
                .properties
                .iter()
                .map(|it| it.name.as_str().to_owned());
            keys.collect()
        });
        Ok(keys?.unwrap_or_default())
    }

    /// Sets a member of the object at a path. A new one is added after the others; missing objects of the path are
    /// created.
    pub(crate) fn set(&mut self, path: &[&str], key: &str, value: &Value) -> Result<(), EditError> {
        let splices = self.with_object(path, |object, style| match find(object, key) {
            Some((_, property)) => vec![Splice {
                part: property.value.start()..property.value.end(),
                by: render::value(value, line_indent(&self.text, property.start()), style),
            }],
            None => splice::append(&self.text, object, key, value, style),
        })?;
        match (splices, path) {
            (Some(splices), _) => {
                self.text = splice::apply(&self.text, splices);
                Ok(())
            }
            // The object does not exist yet. It is added to its parent, with the new member in it.
            (None, [way @ .., last]) => {
                let mut object = serde_json::Map::new();
                object.insert(key.to_owned(), value.clone());
                self.set(way, last, &object.into())
            }
            (None, []) => unreachable!("the text is an object"),
        }
    }

    /// Removes a member of the object at a path. Returns whether it existed.
    pub(crate) fn remove(&mut self, path: &[&str], key: &str) -> Result<bool, EditError> {
        let splices = self.with_object(path, |object, _| {
            let (index, _) = find(object, key)?;
            Some(splice::remove(&self.text, object, index))
        })?;
        let Some(splices) = splices.flatten() else {
            return Ok(false);
        };
        self.text = splice::apply(&self.text, splices);
        Ok(true)
    }

    pub(crate) fn finish(self) -> String {
        if self.has_bom {
            return format!("{BOM}{}", self.text);
        }
        self.text
    }

    /// Returns whether a member of the object at a path is this boolean.
    pub(super) fn is_flag(&self, path: &[&str], key: &str, flag: bool) -> Result<bool, EditError> {
        let is = self.with_object(path, |object, _| {
            let found = find(object, key).map(|(_, property)| &property.value);
            matches!(found, Some(Node::BooleanLit(found)) if found.value == flag)
        });
        Ok(is?.unwrap_or_default())
    }

    /// Returns whether a key is the last of the object at a path, and no comment follows it.
    pub(super) fn is_bare_end(&self, path: &[&str], key: &str) -> Result<bool, EditError> {
        let is = self.with_object(path, |object, _| {
            let last = object.properties.last();
            last.filter(|last| last.name.as_str() == key)
                .is_some_and(|last| {
                    let behind = pieces(&self.text, last.end()..object.end() - 1);
                    let mut behind = behind.iter().map(|(piece, _)| *piece);
                    !behind.any(|it| matches!(it, Piece::LineComment | Piece::BlockComment))
                })
        });
        Ok(is?.unwrap_or_default())
    }

    /// Returns the line, counted from 1, of the comment directly above a member of the object at a path.
    pub(crate) fn comment_above(
        &self,
        path: &[&str],
        key: &str,
    ) -> Result<Option<usize>, EditError> {
        let line = self.with_object(path, |object, _| {
            let (index, property) = find(object, key)?;
            let before = index
                .checked_sub(1)
                .map(|before| &object.properties[before]);
            let after = before.map_or(object.start() + 1, Ranged::end);
            let at = directly_above(&self.text, after..property.start())?;
            Some(SourceLocation::of_byte(&self.text, at, "").line)
        });
        Ok(line?.flatten())
    }

    /// Calls a function with the object at a path and the layout of the text; returns `None` if the path does not
    /// exist. A `null` on the path counts as missing.
    fn with_object<T>(
        &self,
        path: &[&str],
        read: impl FnOnce(&Object<'_>, &Style) -> T,
    ) -> Result<Option<T>, EditError> {
        // Parsed again for each change, since every change moves the positions. These files are small.
        let parsed =
            parse_to_ast(&self.text, &CollectOptions::default(), &SYNTAX).map_err(|error| {
                EditError::Unusable {
                    place: SourceLocation::of_byte(&self.text, error.range().start, ""),
                    fault: raw::syntax_fault(&error),
                }
            })?;
        let root = parsed.value.as_ref().ok_or_else(|| EditError::Unusable {
            place: SourceLocation::of_byte(&self.text, 0, ""),
            fault: raw::empty_file(),
        })?;
        let mut object = self.object(root, "")?;
        let mut names = String::new();
        for key in path {
            names = raw::member(&names, key);
            match find(object, key).map(|(_, property)| &property.value) {
                None | Some(Node::NullKeyword(_)) => return Ok(None),
                Some(value) => object = self.object(value, &names)?,
            }
        }
        Ok(Some(read(object, &Style::of(&self.text, root))))
    }

    fn object<'n, 't>(&self, value: &'n Node<'t>, path: &str) -> Result<&'n Object<'t>, EditError> {
        if let Node::Object(object) = value {
            return Ok(object);
        }
        let fault = ValueFault::WrongType {
            expected: "an object",
            found: raw::json_type(value),
        };
        Err(EditError::Unusable {
            place: SourceLocation::of_byte(&self.text, value.start(), path),
            fault: fault.into(),
        })
    }
}

/// Returns the first member of an object with a key, and its index.
fn find<'o, 't>(object: &'o Object<'t>, key: &str) -> Option<(usize, &'o ObjectProp<'t>)> {
    let mut properties = object.properties.iter().enumerate();
    properties.find(|(_, property)| property.name.as_str() == key)
}
