//! Adds members to an object of a JSON text and removes them, as replacements of parts of the text. Everything else
//! keeps its bytes.

use std::ops::Range;

use jsonc_parser::{ast::Object, common::Ranged};
use serde_json::Value;

use super::{
    render,
    style::{Style, line_indent, own_line_indent},
    trivia::{Piece, comma, end_of_remarks, is_break, pieces},
};

/// A part of the text and its replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) part: Range<usize>,
    pub(super) by: String,
}

impl Splice {
    fn insert(at: usize, by: String) -> Self {
        Self { part: at..at, by }
    }

    fn delete(part: Range<usize>) -> Self {
        let by = String::new();
        Self { part, by }
    }
}

/// Applies replacements to a text. They must not overlap.
pub(super) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| splice.part.start);
    let mut changed = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for Splice { part, by } in splices {
        changed.push_str(&text[at..part.start]);
        changed.push_str(&by);
        at = part.end;
    }
    changed.push_str(&text[at..]);
    changed
}

/// Adds a member after the last one of an object.
pub(super) fn append(
    text: &str,
    object: &Object<'_>,
    key: &str,
    value: &Value,
    style: &Style,
) -> Vec<Splice> {
    let Some(last) = object.properties.last() else {
        return vec![first(text, object, key, value, style)];
    };
    let inner_end = object.end() - 1;
    let comma = comma(text, last.end()..inner_end);
    // The last member shares its line with others or with the brace, so the new one goes there too.
    let Some(indent) = own_line_indent(text, last.start()) else {
        let member = render::short_member(key, value);
        return vec![match comma {
            Some(comma) => Splice::insert(comma + 1, format!(" {member},")),
            None => Splice::insert(last.end(), format!(", {member}")),
        }];
    };
    let member = render::member(key, value, indent, style);
    let line = format!("{}{indent}{member}", style.line_break);
    // A comment on the line of the last member belongs to it and stays there.
    let after = |at: usize| end_of_remarks(text, at..inner_end);
    match comma {
        Some(comma) => vec![Splice::insert(after(comma + 1), format!("{line},"))],
        // Without a comment, comma and line go to the same place. With one, the comma has to be in front of it.
        None if after(last.end()) == last.end() => {
            vec![Splice::insert(last.end(), format!(",{line}"))]
        }
        None => vec![
            Splice::insert(last.end(), ",".into()),
            Splice::insert(after(last.end()), line),
        ],
    }
}

/// Adds the first member to an object, after any comments in it.
fn first(text: &str, object: &Object<'_>, key: &str, value: &Value, style: &Style) -> Splice {
    let inner = object.start() + 1..object.end() - 1;
    let pieces = pieces(text, inner.clone());
    let is_comment = |piece: &Piece| matches!(piece, Piece::LineComment | Piece::BlockComment);
    let last_comment = pieces.iter().rfind(|(piece, _)| is_comment(piece));
    let at = last_comment.map_or(inner.start, |(_, range)| range.end);
    let around = line_indent(text, object.start());
    // The new member is aligned with the comment above it.
    let own_indent = last_comment.and_then(|(_, range)| own_line_indent(text, range.start));
    let indent = own_indent.map_or_else(|| format!("{around}{}", style.step), str::to_owned);
    let line_break = style.line_break;
    let mut by = format!(
        "{line_break}{indent}{}",
        render::member(key, value, &indent, style)
    );
    if style.trailing_commas {
        by.push(',');
    }
    if !text[at..inner.end].contains(is_break) {
        // The space before the brace is replaced too, because it would become the indentation of the brace.
        by.push_str(&format!("{line_break}{around}"));
        return Splice {
            part: at..inner.end,
            by,
        };
    }
    Splice::insert(at, by)
}

/// Removes a member from an object, with the comments on its last line. Comments above it stay.
pub(super) fn remove(text: &str, object: &Object<'_>, index: usize) -> Vec<Splice> {
    let inner = object.start() + 1..object.end() - 1;
    let property = &object.properties[index];
    let previous = index
        .checked_sub(1)
        .map(|before| &object.properties[before]);
    let next = object.properties.get(index + 1);
    let until = next.map_or(inner.end, Ranged::start);
    let own_comma = comma(text, property.end()..until);
    let member = Member {
        text,
        after: previous.map_or(inner.start, Ranged::end),
        start: property.start(),
        end: own_comma.map_or(property.end(), |comma| comma + 1),
        until,
        is_last: next.is_none(),
    };
    let part = member.whole();
    let mut splices = Vec::new();
    match previous {
        // The new last member gets a trailing comma only if the old one had one.
        Some(previous) if next.is_none() && own_comma.is_none() => {
            let comma = comma(text, previous.end()..property.start());
            splices.extend(comma.map(|comma| Splice::delete(comma..comma + 1)));
        }
        None if next.is_none() => {
            let left = [inner.start..part.start, part.end..inner.end];
            // Nothing is left in the object, not even a comment, so it becomes `{}`.
            if left.iter().all(|part| text[part.clone()].trim().is_empty()) {
                return vec![Splice::delete(inner)];
            }
        }
        _ => {}
    }
    splices.push(Splice::delete(part));
    splices
}

/// A member to remove, with its surroundings.
struct Member<'t> {
    text: &'t str,
    /// The end of the previous member, or the start of the object.
    after: usize,
    start: usize,
    /// The end of the member, comma included.
    end: usize,
    /// The start of the next member, or the end of the object.
    until: usize,
    is_last: bool,
}

impl Member<'_> {
    /// Returns the range to remove: the member with its comments and space.
    fn whole(&self) -> Range<usize> {
        let Some(indent) = own_line_indent(self.text, self.start) else {
            // The members are on one line, so only the space between them goes.
            if self.is_last {
                let before = self.text[self.after..self.start].trim_end_matches([' ', '\t']);
                return self.after + before.len()..self.end;
            }
            return self.start..self.space_end(self.end);
        };
        let end = end_of_remarks(self.text, self.end..self.until);
        let ends_line = self.text[self.space_end(end)..].starts_with(is_break);
        // Something else follows on the last line of the member, so that the line stays.
        if !ends_line && !self.is_last {
            return self.start..self.space_end(self.end);
        }
        let line_start = self.start - indent.len();
        if !ends_line && self.follows_a_line_comment() {
            // The brace follows on the same line, and must not become part of that comment.
            return self.start..end;
        }
        self.break_before(line_start)..end
    }

    /// Returns the end of the space that begins at `from`, within its line.
    fn space_end(&self, from: usize) -> usize {
        let rest = &self.text[from..self.until];
        let end = rest.find(|it: char| !it.is_whitespace() || is_break(it));
        end.map_or(self.until, |end| from + end)
    }

    /// Returns the start of the line break before a line.
    fn break_before(&self, line_start: usize) -> usize {
        let before = &self.text[..line_start];
        let before = before.strip_suffix('\n').unwrap_or(before);
        before.strip_suffix('\r').unwrap_or(before).len()
    }

    fn follows_a_line_comment(&self) -> bool {
        let pieces = pieces(self.text, self.after..self.start);
        let mut before = pieces.iter().rev().map(|(piece, _)| *piece);
        before.find(|piece| !matches!(piece, Piece::Space | Piece::Break))
            == Some(Piece::LineComment)
    }
}
