//! Finds characters without a visible form. A tool is withheld for the same characters that `clean` makes
//! visible.

use super::finding::Problem;
use crate::visible::{
    MAX_STRAYS, Standing, Unseen, is_bidi_control, is_private_use, is_tag, unseen,
};

/// The stray characters in a definition. A few are accidents; more of them are hidden text, even if each string
/// has only a few.
#[derive(Default)]
pub(super) struct Strays {
    /// The first stray character, and the location of its text.
    first: Option<(String, char)>,
    count: usize,
}

impl Strays {
    /// Returns the finding if there are too many.
    pub(super) fn too_many(self) -> Option<(String, Problem)> {
        let count = self.count;
        let (place, character) = self.first.filter(|_| count > MAX_STRAYS)?;
        Some((place, Problem::Strays { character, count }))
    }
}

/// Counts the strays of a text, and returns the problem if it has a hidden character.
pub(super) fn hard(
    text: &str,
    strays: &mut Strays,
    place: impl FnOnce() -> String,
) -> Option<Problem> {
    let found = unseen_in(text);
    count(&found, strays, place);
    hidden(&found)
}

/// Returns all problems of a text: the first hidden character, and strays.
pub(super) fn all(text: &str, strays: &mut Strays, place: impl FnOnce() -> String) -> Vec<Problem> {
    let found = unseen_in(text);
    let stray = count(&found, strays, place)
        .map(|(character, count)| Problem::ZeroWidth { character, count });
    hidden(&found).into_iter().chain(stray).collect()
}

fn unseen_in(text: &str) -> Vec<Unseen> {
    // Most texts are plain ASCII and need no further check.
    if text.bytes().all(|it| matches!(it, b' '..=b'~')) {
        return Vec::new();
    }
    unseen(text.char_indices())
}

/// Counts the strays of a text; returns the first one and their number.
fn count(
    found: &[Unseen],
    strays: &mut Strays,
    place: impl FnOnce() -> String,
) -> Option<(char, usize)> {
    let mut stray = found.iter().filter(|it| it.standing == Standing::Stray);
    let first = stray.next()?.character;
    let count = 1 + stray.count();
    strays.first.get_or_insert_with(|| (place(), first));
    strays.count += count;
    Some((first, count))
}

/// Returns the problem of the first hidden character.
fn hidden(found: &[Unseen]) -> Option<Problem> {
    let mut found = found.iter();
    let hidden = found.find(|it| it.standing == Standing::Hidden)?;
    Some(match hidden.character {
        // ESC, and the single characters for DCS, CSI, OSC, PM and APC.
        it @ ('\u{1b}' | '\u{90}' | '\u{9b}' | '\u{9d}'..='\u{9f}') => Problem::Escape(it),
        it if it.is_control() => Problem::Control(it),
        it if is_bidi_control(it) => Problem::Bidi(it),
        it if is_tag(it) => Problem::Tag(it),
        it if is_private_use(it) => Problem::PrivateUse(it),
        it => Problem::Invisible(it),
    })
}
