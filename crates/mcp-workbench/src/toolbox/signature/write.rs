//! Writes parameters as text. A text that is too long is shortened step by step: less depth and fewer enum values,
//! then fewer optional parameters, then no types.

use super::{
    name::shown_name,
    schema::{AllowedValues, Member, Members},
};

/// The maximum length of a list of parameters. The names of required parameters may exceed it.
pub(super) const MAX_CHARACTERS: usize = 240;

/// The amount of detail that is shown of a value.
#[derive(Debug, Clone, Copy)]
struct DetailLevel {
    /// The depth to which objects are shown with their members.
    depth: usize,
    /// The number of enum values that are shown.
    words: usize,
}

/// From the most detail to the least.
const DETAIL_LEVELS: [DetailLevel; 4] = [
    DetailLevel { depth: 2, words: 6 },
    DetailLevel { depth: 1, words: 6 },
    DetailLevel { depth: 1, words: 4 },
    DetailLevel { depth: 0, words: 3 },
];

/// Returns the parameters of a tool in parentheses.
pub(super) fn parameters(members: &Members) -> String {
    let all = |level: DetailLevel| {
        let shown = members.known.iter().map(|it| member(it, level));
        joined(shown.collect(), members.more)
    };
    let fits = |text: &String| text.chars().take(MAX_CHARACTERS + 1).count() <= MAX_CHARACTERS;
    if let Some(text) = DETAIL_LEVELS.into_iter().map(all).find(fits) {
        return text;
    }
    let least = DETAIL_LEVELS[DETAIL_LEVELS.len() - 1];
    let optional = members.known.iter().filter(|it| !it.is_required).count();
    // One less at a time. The reader has bounded their number.
    let fewer = (0..optional).rev().map(|kept| some(members, kept, least));
    fewer
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| names(members))
}

/// Returns the required parameters, and the first of the optional ones.
fn some(members: &Members, optional: usize, level: DetailLevel) -> String {
    let mut left = optional;
    let mut left_out = members.more;
    let mut shown = Vec::new();
    for it in &members.known {
        if it.is_required {
            shown.push(member(it, level));
        } else if left > 0 {
            left -= 1;
            shown.push(member(it, level));
        } else {
            left_out += 1;
        }
    }
    joined(shown, left_out)
}

/// Returns the names of the required parameters.
fn names(members: &Members) -> String {
    let (required, optional): (Vec<_>, Vec<_>) =
        members.known.iter().partition(|it| it.is_required);
    // Without these no call succeeds, so they are named however long that is.
    let shown = required.iter().map(|it| shown_name(&it.name).into_owned());
    joined(shown.collect(), members.more + optional.len())
}

fn joined(mut shown: Vec<String>, left_out: usize) -> String {
    if left_out > 0 {
        shown.push(format!("…{left_out} more optional"));
    }
    format!("({})", shown.join(", "))
}

fn member(member: &Member, level: DetailLevel) -> String {
    let name = shown_name(&member.name);
    let mark = if member.is_required { "" } else { "?" };
    let default = member.default.as_ref();
    // `null` is implied for an optional parameter.
    let shape = match &member.shape {
        AllowedValues::Union(shapes) if !member.is_required && default.is_none() => {
            let others = shapes.iter().filter(|it| !is_null(it));
            union(others, level)
        }
        shape => written(shape, level),
    };
    match default {
        Some(default) => format!("{name}{mark}: {shape} = {default}"),
        None => format!("{name}{mark}: {shape}"),
    }
}

fn is_null(shape: &AllowedValues) -> bool {
    matches!(shape, AllowedValues::Word(word) if word == "null")
}

fn written(shape: &AllowedValues, level: DetailLevel) -> String {
    match shape {
        AllowedValues::Any => "any".to_owned(),
        AllowedValues::Word(word) => word.clone(),
        AllowedValues::Words { values, more } => words(values, *more, level),
        AllowedValues::Array(items) => match &**items {
            AllowedValues::Any => "array".to_owned(),
            items => format!("{}[]", in_parentheses(items, level)),
        },
        AllowedValues::Tuple(places) => {
            let places: Vec<String> = places.iter().map(|it| written(it, level)).collect();
            format!("[{}]", places.join(", "))
        }
        AllowedValues::Object(members) => object(members, level),
        AllowedValues::Union(shapes) => union(shapes.iter(), level),
    }
}

fn words(values: &[String], more: usize, level: DetailLevel) -> String {
    let shown = values.len().min(level.words);
    let mut text = values[..shown].join("|");
    let left_out = values.len() - shown + more;
    if left_out > 0 {
        text.push_str(&format!("|…{left_out} more"));
    }
    text
}

fn union<'a>(shapes: impl Iterator<Item = &'a AllowedValues>, level: DetailLevel) -> String {
    let mut written_shapes: Vec<String> = shapes.map(|it| written(it, level)).collect();
    let mut seen = std::collections::HashSet::new();
    written_shapes.retain(|it| seen.insert(it.clone()));
    if written_shapes.is_empty() {
        return "null".to_owned();
    }
    written_shapes.join("|")
}

/// Returns a shape that can be followed by `[]`.
fn in_parentheses(shape: &AllowedValues, level: DetailLevel) -> String {
    let text = written(shape, level);
    match shape {
        AllowedValues::Union(_) | AllowedValues::Words { .. } if text.contains('|') => {
            format!("({text})")
        }
        _ => text,
    }
}

fn object(members: &Members, level: DetailLevel) -> String {
    if level.depth == 0 {
        return "object".to_owned();
    }
    let inside = DetailLevel {
        depth: level.depth - 1,
        ..level
    };
    if let Some(others) = &members.others {
        return format!("{{[key]: {}}}", written(others, inside));
    }
    let mut shown: Vec<String> = members.known.iter().map(|it| member(it, inside)).collect();
    if members.more > 0 {
        shown.push(format!("…{} more optional", members.more));
    }
    format!("{{{}}}", shown.join(", "))
}
