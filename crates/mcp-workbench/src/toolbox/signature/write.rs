//! Writes parameters as text. A text that is too long is shortened step by step: less depth and fewer enum values,
//! then fewer optional parameters, then no types.

use super::{
    name::shown_name,
    schema::{Member, Members, Shape},
};

/// The maximum length of a list of parameters. The names of required parameters may exceed it.
pub(super) const LONGEST: usize = 240;

/// The amount of detail that is shown of a value.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// The depth to which objects are shown with their members.
    depth: usize,
    /// The number of enum values that are shown.
    words: usize,
}

/// From the most detail to the least.
const ROOMS: [Room; 4] = [
    Room { depth: 2, words: 6 },
    Room { depth: 1, words: 6 },
    Room { depth: 1, words: 4 },
    Room { depth: 0, words: 3 },
];

/// Returns the parameters of a tool in parentheses.
pub(super) fn parameters(members: &Members) -> String {
    let all = |room: Room| {
        let shown = members.known.iter().map(|it| member(it, room));
        joined(shown.collect(), members.more)
    };
    let fits = |text: &String| text.chars().take(LONGEST + 1).count() <= LONGEST;
    if let Some(text) = ROOMS.into_iter().map(all).find(fits) {
        return text;
    }
    let least = ROOMS[ROOMS.len() - 1];
    let optional = members.known.iter().filter(|it| !it.is_required).count();
    let fewer = (0..optional).rev().map(|kept| some(members, kept, least));
    fewer
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| names(members))
}

/// Returns the required parameters, and the first of the optional ones.
fn some(members: &Members, optional: usize, room: Room) -> String {
    let mut left = optional;
    let mut left_out = members.more;
    let mut shown = Vec::new();
    for it in &members.known {
        if it.is_required {
            shown.push(member(it, room));
        } else if left > 0 {
            left -= 1;
            shown.push(member(it, room));
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
    let shown = required.iter().map(|it| shown_name(&it.name).into_owned());
    joined(shown.collect(), members.more + optional.len())
}

fn joined(mut shown: Vec<String>, left_out: usize) -> String {
    if left_out > 0 {
        shown.push(format!("…{left_out} more optional"));
    }
    format!("({})", shown.join(", "))
}

fn member(member: &Member, room: Room) -> String {
    let name = shown_name(&member.name);
    let mark = if member.is_required { "" } else { "?" };
    let default = member.default.as_ref();
    // `null` is implied for an optional parameter.
    let shape = match &member.shape {
        Shape::Union(shapes) if !member.is_required && default.is_none() => {
            let others = shapes.iter().filter(|it| !is_null(it));
            union(others, room)
        }
        shape => written(shape, room),
    };
    match default {
        Some(default) => format!("{name}{mark}: {shape} = {default}"),
        None => format!("{name}{mark}: {shape}"),
    }
}

fn is_null(shape: &Shape) -> bool {
    matches!(shape, Shape::Word(word) if word == "null")
}

fn written(shape: &Shape, room: Room) -> String {
    match shape {
        Shape::Any => "any".to_owned(),
        Shape::Word(word) => word.clone(),
        Shape::Words { kept, more } => words(kept, *more, room),
        Shape::Array(items) => match &**items {
            Shape::Any => "array".to_owned(),
            items => format!("{}[]", in_parentheses(items, room)),
        },
        Shape::Tuple(places) => {
            let places: Vec<String> = places.iter().map(|it| written(it, room)).collect();
            format!("[{}]", places.join(", "))
        }
        Shape::Object(members) => object(members, room),
        Shape::Union(shapes) => union(shapes.iter(), room),
    }
}

fn words(kept: &[String], more: usize, room: Room) -> String {
    let shown = kept.len().min(room.words);
    let mut text = kept[..shown].join("|");
    let left_out = kept.len() - shown + more;
    if left_out > 0 {
        text.push_str(&format!("|…{left_out} more"));
    }
    text
}

fn union<'a>(shapes: impl Iterator<Item = &'a Shape>, room: Room) -> String {
    let mut written_shapes: Vec<String> = shapes.map(|it| written(it, room)).collect();
    let mut seen = std::collections::HashSet::new();
    written_shapes.retain(|it| seen.insert(it.clone()));
    if written_shapes.is_empty() {
        return "null".to_owned();
    }
    written_shapes.join("|")
}

/// Returns a shape that can be followed by `[]`.
fn in_parentheses(shape: &Shape, room: Room) -> String {
    let text = written(shape, room);
    match shape {
        Shape::Union(_) | Shape::Words { .. } if text.contains('|') => format!("({text})"),
        _ => text,
    }
}

fn object(members: &Members, room: Room) -> String {
    if room.depth == 0 {
        return "object".to_owned();
    }
    let inside = Room {
        depth: room.depth - 1,
        ..room
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
