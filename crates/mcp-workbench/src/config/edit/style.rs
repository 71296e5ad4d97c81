//! The layout of a JSON text: line breaks, indentation, and trailing commas. Additions follow the layout of the text.

use jsonc_parser::{
    ast::{Object, Value},
    common::Ranged,
};

use super::trivia::{comma, is_break};

const DEFAULT_INDENT: &str = "  ";

/// The layout of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) line_break: &'static str,
    /// The indentation of one level.
    pub(super) step: String,
    /// True if the last member of a multi-line object is followed by a comma.
    pub(super) trailing_commas: bool,
}

/// The layout found while a text is read.
#[derive(Default)]
struct DetectedStyle {
    step: Option<String>,
    with_comma: usize,
    without_comma: usize,
}

impl Style {
    /// Detects the layout of a text.
    pub(super) fn of(text: &str, value: &Value<'_>) -> Self {
        let mut seen = DetectedStyle::default();
        seen.look_at(text, value);
        // In a file with several kinds of line breaks the first one decides.
        let first_break = text.find('\n').map(|at| &text[..at]);
        let windows = first_break.is_some_and(|line| line.ends_with('\r'));
        Self {
            line_break: if windows { "\r\n" } else { "\n" },
            step: seen.step.unwrap_or_else(|| DEFAULT_INDENT.into()),
            trailing_commas: seen.with_comma > seen.without_comma,
        }
    }
}

impl DetectedStyle {
    fn look_at(&mut self, text: &str, value: &Value<'_>) {
        match value {
            Value::Object(object) => {
                self.look_at_object(text, object);
                for property in &object.properties {
                    self.look_at(text, &property.value);
                }
            }
            Value::Array(array) => {
                for element in &array.elements {
                    self.look_at(text, element);
                }
            }
            _ => {}
        }
    }

    fn look_at_object(&mut self, text: &str, object: &Object<'_>) {
        let Some(last) = object.properties.last() else {
            return;
        };
        let Some(indent) = own_line_indent(text, last.start()) else {
            return;
        };
        let around = line_indent(text, object.start());
        let step = indent.strip_prefix(around).filter(|step| !step.is_empty());
        // The indentation that is found first counts.
        if let (None, Some(step)) = (&self.step, step) {
            self.step = Some(step.into());
        }
        match comma(text, last.end()..object.end() - 1) {
            Some(_) => self.with_comma += 1,
            None => self.without_comma += 1,
        }
    }
}

/// Returns the space before a position, if nothing else precedes it on its line.
pub(super) fn own_line_indent(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind(is_break)? + 1;
    let before = &text[start..at];
    before.trim_start().is_empty().then_some(before)
}

/// Returns the space at the beginning of the line of a position.
pub(super) fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind(is_break).map_or(0, |end| end + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}
