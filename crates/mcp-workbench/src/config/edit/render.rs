//! Renders a value in the layout of the text that it is inserted into.

use serde_json::{Map, Value};

use super::style::Style;

/// The length up to which lists and plain objects are written on one line.
const MAX_LINE_CHARACTERS: usize = 80;

/// Renders a member of a multi-line object, without the space before it and without a comma. Its lines after the
/// first begin with `indent` or more.
pub(super) fn member(key: &str, value: &Value, indent: &str, style: &Style) -> String {
    format!("{}: {}", quoted(key), self::value(value, indent, style))
}

/// Renders the value of such a member.
pub(super) fn value(value: &Value, indent: &str, style: &Style) -> String {
    match value {
        // Servers and toolboxes are easier to read on several lines, short ones too.
        Value::Object(members) if !members.is_empty() => object(members, indent, style),
        other => spread(other, indent, style),
    }
}

/// Renders a member of an object on one line, without a comma.
pub(super) fn short_member(key: &str, value: &Value) -> String {
    format!("{}: {}", quoted(key), one_line(value))
}

/// Renders a value on one line.
pub(super) fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(key, value)| short_member(key, value));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(one_line).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}

/// Renders a value on one line if it is short and plain, otherwise on several.
fn spread(value: &Value, indent: &str, style: &Style) -> String {
    let short = one_line(value);
    let fits = short.len() <= MAX_LINE_CHARACTERS;
    match value {
        Value::Object(members) if !(fits && is_plain(members.values())) => {
            object(members, indent, style)
        }
        Value::Array(items) if !(fits && is_plain(items)) => {
            let inner = format!("{indent}{}", style.step);
            let items = items.iter().map(|item| spread(item, &inner, style));
            block(["[", "]"], items, indent, style)
        }
        _ => short,
    }
}

fn object(members: &Map<String, Value>, indent: &str, style: &Style) -> String {
    let inner = format!("{indent}{}", style.step);
    let members = members
        .iter()
        .map(|(key, value)| format!("{}: {}", quoted(key), spread(value, &inner, style)));
    block(["{", "}"], members, indent, style)
}

/// Renders each item on lines of its own, between brackets.
fn block(
    [open, close]: [&str; 2],
    items: impl Iterator<Item = String>,
    indent: &str,
    style: &Style,
) -> String {
    let line = format!("{}{indent}", style.line_break);
    let items: Vec<String> = items
        .map(|item| format!("{line}{}{item}", style.step))
        .collect();
    let comma = if style.trailing_commas { "," } else { "" };
    format!("{open}{}{comma}{line}{close}", items.join(","))
}

/// Returns whether no value is a list or an object.
fn is_plain<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    let mut values = values.into_iter();
    values.all(|value| !value.is_object() && !value.is_array())
}
