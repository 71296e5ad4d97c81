//! Text of others in sentences of ours. Escape sequences, control characters, bidirectional marks, embeddings,
//! overrides and isolates, and TAG characters are shown as `⟦U+001B⟧` instead of being passed on to a terminal, a log
//! or a model. The flags of England, Scotland and Wales, which are made of TAG characters, stay.

use std::borrow::Cow;

/// The emoji that begins the flag of a subdivision.
const FLAG: char = '\u{1F3F4}';
/// How many TAG characters follow it.
const FLAG_TAGS: usize = 6;
/// What a TAG character is beyond the ASCII character that it repeats.
const TAGS: u32 = 0xE0000;
/// The TAG character that ends a sequence of them.
const TAG_END: u32 = 0xE007F;

/// The text with what is meant not to be seen made visible; line breaks and tabs become spaces.
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, Flags::Kept, |character| match character {
        '\n' | '\t' => Shown::Space,
        _ if is_hidden(character) => Shown::Number,
        _ => Shown::AsItIs,
    })
}

/// The same for text of several lines: line breaks and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    shown(text, Flags::Kept, |character| match character {
        '\n' | '\t' => Shown::AsItIs,
        _ if is_hidden(character) => Shown::Number,
        _ => Shown::AsItIs,
    })
}

/// The text with every character made visible that has no look of its own, zero-width ones included: for whoever wants
/// to see what is really there. It takes emoji of several characters apart too.
pub fn revealed(text: &str) -> Cow<'_, str> {
    shown(text, Flags::Numbered, |character| match character {
        '\n' | '\t' => Shown::Space,
        _ if is_hidden(character) || is_zero_width(character) => Shown::Number,
        _ => Shown::AsItIs,
    })
}

/// One hidden character as it is shown.
pub fn number(character: char) -> String {
    format!("\u{27E6}U+{:04X}\u{27E7}", u32::from(character))
}

/// A JSON document of ours with hidden characters escaped. It says the same to a program and does nothing to a
/// terminal.
pub fn escaped(document: &str) -> Cow<'_, str> {
    let is_raw = |character: char| character != '\n' && is_hidden(character);
    if !document.chars().any(is_raw) {
        return Cow::Borrowed(document);
    }
    let mut text = String::with_capacity(document.len() + 16);
    for character in document.chars() {
        if is_raw(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// C0, DEL and C1 controls, bidirectional marks, embeddings, overrides and isolates, and the TAG block.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{061C}' | '\u{200E}'..='\u{200F}')
        || is_bidi_control(character)
        || is_tag(character)
}

/// Finds the TAG characters and isolates of a text that belong where they are: the flags of England, Scotland and Wales,
/// and isolates that are closed in the line in which they are opened, in a text with letters that read from right to
/// left. Takes the characters with their positions, and returns the positions, sorted.
pub fn in_place(characters: impl Iterator<Item = (usize, char)>) -> Vec<usize> {
    let mut found = Vec::new();
    let mut flag: Option<Vec<(usize, char)>> = None;
    let mut isolates = Isolates::default();
    let mut reads_from_right = false;
    for (at, character) in characters {
        flag = match flag.take() {
            _ if character == FLAG => Some(Vec::new()),
            Some(mut tags) if is_tag(character) && tags.len() < FLAG_TAGS => {
                tags.push((at, character));
                if is_subdivision(&tags.iter().map(|it| it.1)) {
                    found.extend(tags.iter().map(|it| it.0));
                }
                Some(tags)
            }
            _ => None,
        };
        isolates.take(at, character);
        reads_from_right |= is_right_to_left(character) && character.is_alphabetic();
    }
    isolates.end_line();
    if reads_from_right {
        found.append(&mut isolates.closed);
        found.sort_unstable();
    }
    found
}

/// The isolates of a text, line by line.
#[derive(Default)]
struct Isolates {
    /// The positions of those in lines in which all are closed.
    closed: Vec<usize>,
    /// The positions of those in this line.
    line: Vec<usize>,
    /// How many are open.
    open: usize,
    /// Whether this line closes one that is not open.
    is_broken: bool,
}

impl Isolates {
    fn take(&mut self, at: usize, character: char) {
        match character {
            '\u{2066}'..='\u{2068}' => self.open += 1,
            '\u{2069}' => match self.open.checked_sub(1) {
                Some(open) => self.open = open,
                None => self.is_broken = true,
            },
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => return self.end_line(),
            _ => return,
        }
        self.line.push(at);
    }

    /// Ends a line, which closes whatever is open in it.
    fn end_line(&mut self) {
        if self.open == 0 && !self.is_broken {
            self.closed.append(&mut self.line);
        }
        self.line.clear();
        self.open = 0;
        self.is_broken = false;
    }
}

/// Returns whether tags are those of a subdivision that has a flag. Only these three are emoji in general use: any
/// others could spell out text.
fn is_subdivision(tags: &(impl Iterator<Item = char> + Clone)) -> bool {
    let spelled = |name: &str| {
        let name = name.chars().map(|it| u32::from(it) + TAGS);
        tags.clone().map(u32::from).eq(name.chain([TAG_END]))
    };
    ["gbeng", "gbsct", "gbwls"].into_iter().any(spelled)
}

/// The bytes of a flag of England, Scotland or Wales at the beginning of a text.
fn flag_length(text: &str) -> Option<usize> {
    let tags = text.strip_prefix(FLAG)?;
    let tags = tags.chars().take(FLAG_TAGS);
    let length: usize = tags.clone().map(char::len_utf8).sum();
    is_subdivision(&tags).then_some(FLAG.len_utf8() + length)
}

/// Letters, marks and digits of scripts that read from right to left.
pub fn is_right_to_left(character: char) -> bool {
    matches!(character,
        '\u{0590}'..='\u{08FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && character != '\u{061C}'
}

/// Bidirectional isolates, with what ends them.
pub fn is_isolate(character: char) -> bool {
    matches!(character, '\u{2066}'..='\u{2069}')
}

/// Bidirectional embeddings, overrides and isolates, with what ends them. The marks, which only say of themselves in
/// which direction they read, are not among them.
pub fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The TAG block, which repeats ASCII without a look.
pub fn is_tag(character: char) -> bool {
    matches!(character, '\u{E0000}'..='\u{E007F}')
}

/// Characters without a look of their own that are neither controls nor bidirectional: spaces without width, joiners,
/// variation selectors, fillers and invisible operators.
pub fn is_zero_width(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200D}'
            | '\u{2028}'..='\u{2029}'
            | '\u{2060}'..='\u{2064}'
            | '\u{206A}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0100}'..='\u{E01EF}'
    )
}

/// How a character is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    AsItIs,
    Space,
    Number,
}

/// How the flags of England, Scotland and Wales are shown, which are made of hidden characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flags {
    Kept,
    Numbered,
}

fn shown(text: &str, flags: Flags, how: impl Fn(char) -> Shown) -> Cow<'_, str> {
    if text.chars().all(|it| how(it) == Shown::AsItIs) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 16);
    let mut flag_end = 0;
    for (at, character) in text.char_indices() {
        if character == FLAG && flags == Flags::Kept {
            flag_end = flag_length(&text[at..]).map_or(flag_end, |length| at + length);
        }
        if at < flag_end {
            visible.push(character);
            continue;
        }
        match how(character) {
            Shown::AsItIs => visible.push(character),
            Shown::Space => visible.push(' '),
            Shown::Number => visible.push_str(&number(character)),
        }
    }
    Cow::Owned(visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        let cases = [
            ("plain, with ümlaut and 👩‍💻", "plain, with ümlaut and 👩‍💻"),
            ("\u{1b}[2J", "⟦U+001B⟧[2J"),
            ("a\r\nb\tc", "a⟦U+000D⟧ b c"),
            ("\u{202E}evil\u{2069}", "⟦U+202E⟧evil⟦U+2069⟧"),
            ("\u{E0041}", "⟦U+E0041⟧"),
            ("\u{9b}31m\u{7f}\0", "⟦U+009B⟧31m⟦U+007F⟧⟦U+0000⟧"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("a\r\nb\tc\u{1b}"), "a⟦U+000D⟧\nb\tc⟦U+001B⟧");
    }

    const SCOTLAND: &str = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";

    /// The characters of a text that are in place.
    fn kept(text: &str) -> String {
        let in_place = in_place(text.char_indices()).into_iter();
        in_place
            .filter_map(|at| text[at..].chars().next())
            .collect()
    }

    #[test]
    fn flags_stay_and_other_tags_are_shown() {
        for text in [SCOTLAND, &format!("a\u{1F3F4}{SCOTLAND}{SCOTLAND}b")] {
            assert_eq!(visible(&format!("{text}\u{1b}")), format!("{text}⟦U+001B⟧"));
            assert_eq!(
                kept(text).chars().count(),
                6 * text.matches(SCOTLAND).count()
            );
        }
        assert!(revealed(SCOTLAND).starts_with("\u{1F3F4}⟦U+E0067⟧"));
        let end = "\u{E007F}";
        let flags = [
            // Without its base, its end, or one of its letters; in upper case; another subdivision; and text behind it.
            SCOTLAND.replace('\u{1F3F4}', ""),
            SCOTLAND.replace(end, ""),
            SCOTLAND.replace('\u{E0074}', ""),
            SCOTLAND.replace('\u{E0067}', "\u{E0047}"),
            SCOTLAND.replace("\u{E0073}\u{E0063}\u{E0074}", "\u{E0063}\u{E0061}\u{E0062}"),
            SCOTLAND.replace('\u{1F3F4}', "\u{1F3F4}\u{FE0F}"),
            SCOTLAND.replace('\u{1F3F4}', "\u{1F600}"),
        ];
        for text in &flags {
            assert_eq!(kept(text), "", "{text:?}");
            assert!(!visible(text).chars().any(is_tag), "{text:?}");
        }
        let longer = format!("{SCOTLAND}\u{E0041}");
        assert_eq!(visible(&longer), format!("{SCOTLAND}⟦U+E0041⟧"));
        assert_eq!(kept(&longer).chars().count(), 6);
    }

    #[test]
    fn isolates_are_in_place_where_they_are_closed_in_text_from_right_to_left() {
        let rows = [
            ("שלום \u{2068}Bob\u{2069}!", 2),
            ("\u{2067}א \u{2066}a \u{2068}b\u{2069}\u{2069} ב\u{2069}", 6),
            ("\u{2066}a\u{2069}\nمرحبا", 2),
            // One line is in order, the other is not.
            ("א \u{2066}a\u{2069}\n\u{2067}b", 2),
            ("\u{2066}a\u{2069}", 0),
            ("\u{2066}١٢\u{2069}", 0),
            ("א \u{2066}a", 0),
            ("א a\u{2069}", 0),
            ("א \u{2069}a\u{2066}", 0),
            ("א \u{2066}a\nb\u{2069}", 0),
            ("א \u{2066}a\u{2069}\u{2069}", 0),
            ("א \u{202E}a\u{202C}", 0),
        ];
        for (text, count) in rows {
            assert_eq!(kept(text).chars().count(), count, "{text:?}");
        }
    }

    #[test]
    fn what_has_no_width_can_be_shown_too() {
        assert_eq!(visible("a\u{200b}b"), "a\u{200b}b");
        assert_eq!(
            revealed("a\u{200b}b\u{fe0f}\u{202e}"),
            "a⟦U+200B⟧b⟦U+FE0F⟧⟦U+202E⟧"
        );
    }

    #[test]
    fn a_document_says_the_same_when_it_is_escaped() {
        let value =
            serde_json::json!({"a\u{7f}": "\u{1b}\u{9b}\u{202e}\u{e0041}\u{200f}\u{1f600} ok"});
        let document = serde_json::to_string_pretty(&value).unwrap();
        let text = escaped(&document);
        let hidden = text.chars().filter(|it| *it != '\n' && is_hidden(*it));
        assert_eq!(hidden.count(), 0, "{text:?}");
        assert!(
            text.contains(r"\u001b\u009b\u202e\udb40\udc41\u200f😀 ok"),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
    }
}
