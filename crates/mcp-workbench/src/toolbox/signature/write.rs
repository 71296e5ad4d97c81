//! Parameters as text. What is too long is said in fewer words, step by step: shallower objects and shorter lists of
//! words, then fewer optional parameters, then no types.

use super::{
    name::shown_name,
    schema::{Member, Members, Shape},
};

/// The most characters of a list of parameters, as long as the names of those that are required leave room for more.
pub(super) const LONGEST: usize = 240;

/// How much is said of a value.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// How deep objects are shown with their members.
    depth: usize,
    /// How many words of an enum are shown.
    words: usize,
}

/// From the most that is said to the least.
const ROOMS: [Room; 4] = [
    Room { depth: 2, words: 6 },
    Room { depth: 1, words: 6 },
    Room { depth: 1, words: 4 },
    Room { depth: 0, words: 3 },
];

/// The parameters of a tool in parentheses.
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

/// The parameters that are required, and the first of the others.
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

/// The names of the parameters that are required.
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
    // What may be left out may be nothing.
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

/// A shape before `[]`.
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
