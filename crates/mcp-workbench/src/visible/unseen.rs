//! Characters without a visible form, and whether they belong where they are.
//!
//! Languages and emoji need some of them in some places: the non-joiner in Persian, joiners in Hindi and in families,
//! variation selectors behind symbols, TAG characters in three flags, isolates in text from right to left. There they are
//! [in place](Standing::InPlace). Others get into honest text by accident and are [stray](Standing::Stray). The rest
//! carries text that nobody sees.

use super::table::{INVISIBLE, PRIVATE_USE, SPACES};

/// The maximum number of stray characters in a definition or a message. More of them could encode the bits of a text.
pub(crate) const MAX_STRAYS: usize = 3;

/// Characters that are drawn as nothing without a property that says so: the blank Braille pattern, the null notehead
/// and the filler of the Khitan script.
const BLANKS: [char; 3] = ['\u{2800}', '\u{1D159}', '\u{16FE4}'];

/// The emoji that begins the flag of a subdivision.
const FLAG: char = '\u{1F3F4}';
/// The number of TAG characters that follow it.
const FLAG_TAGS: usize = 6;
/// The distance of a TAG character from the ASCII character that it repeats.
const TAGS: u32 = 0xE0000;
/// The TAG character that ends a sequence of them.
const TAG_END: u32 = 0xE007F;

/// A character without a visible form in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unseen {
    pub at: usize,
    pub character: char,
    pub standing: Standing,
}

/// The judgement of a character without a visible form at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A language or an emoji needs it there.
    InPlace,
    /// Nothing needs it there, but honest text has such characters by accident, for example from a web page.
    Stray,
    /// No honest text has it there.
    Hidden,
}

/// Returns whether a character has no visible form, wherever it is. Tabs and line feeds are among them.
pub(crate) fn is_unseen(character: char) -> bool {
    // Nearly all characters end here, without a search in the tables.
    if character < '\u{7F}' {
        return character < ' ';
    }
    character.is_control()
        || BLANKS.contains(&character)
        || is_in(INVISIBLE, character)
        || is_private_use(character)
}

/// Returns whether a character looks like a plain space and is another.
pub(crate) fn is_other_space(character: char) -> bool {
    is_in(SPACES, character)
}

/// Returns whether Unicode leaves the meaning of a character to private agreement.
pub(crate) fn is_private_use(character: char) -> bool {
    is_in(PRIVATE_USE, character)
}

/// Returns whether a character is of the TAG block, which repeats ASCII invisibly.
pub(crate) fn is_tag(character: char) -> bool {
    matches!(character, '\u{E0000}'..='\u{E007F}')
}

/// Returns whether a character is a bidirectional embedding, override or isolate, or ends one.
pub(crate) fn is_bidi_control(character: char) -> bool {
    matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is a mark of direction, which acts on nothing but its neighbours.
pub(super) fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{061C}' | '\u{200E}' | '\u{200F}')
}

fn is_in(ranges: &[(char, char)], character: char) -> bool {
    let at = ranges.partition_point(|(_, last)| *last < character);
    ranges.get(at).is_some_and(|(first, _)| *first <= character)
}

/// Finds the characters of a text that have no visible form, except tabs and line feeds. Takes the characters with their
/// positions.
pub(crate) fn unseen(characters: impl Iterator<Item = (usize, char)>) -> Vec<Unseen> {
    let mut found = Vec::new();
    let mut in_place = Vec::new();
    let mut flag: Option<Vec<(usize, char)>> = None;
    let mut isolates = Isolates::default();
    let (mut reads_from_right, mut has_braille) = (false, false);
    let mut before = None;
    let mut characters = characters.peekable();
    while let Some((at, character)) = characters.next() {
        let after = characters.peek().map(|it| it.1);
        if !matches!(character, '\n' | '\t') && is_unseen(character) {
            let standing = standing(character, before, after);
            found.push(Unseen {
                at,
                character,
                standing,
            });
        }
        // Tag characters are visible only as part of a flag, after the black flag that begins it.
        flag = match flag.take() {
            _ if character == FLAG => Some(Vec::new()),
            Some(mut tags) if is_tag(character) && tags.len() < FLAG_TAGS => {
                tags.push((at, character));
                if is_subdivision(&tags.iter().map(|it| it.1)) {
                    in_place.extend(tags.iter().map(|it| it.0));
                }
                Some(tags)
            }
            _ => None,
        };
        isolates.take(at, character);
        reads_from_right |= is_right_to_left(character) && character.is_alphabetic();
        has_braille |= matches!(character, '\u{2801}'..='\u{28FF}');
        before = Some(character);
    }
    isolates.end_line();
    // Isolates and direction marks are needed where right-to-left text is; elsewhere they only reorder what a user reads.
    if reads_from_right {
        // The positions of flags are in order already. Those of isolates come between them.
        in_place.append(&mut isolates.closed);
        in_place.sort_unstable();
    }
    for it in &mut found {
        if in_place.binary_search(&it.at).is_ok() {
            it.standing = Standing::InPlace;
        } else if is_direction_mark(it.character) && !reads_from_right {
            it.standing = Standing::Stray;
        } else if it.character == '\u{2800}' && !has_braille {
            it.standing = Standing::Hidden;
        }
    }
    found
}

/// Judges a character without a visible form by its neighbours. Flags, isolates, marks of direction and Braille depend
/// on more than these.
fn standing(character: char, before: Option<char>, after: Option<char>) -> Standing {
    let (is_needed, otherwise) = match character {
        '\r' => (after == Some('\n'), Standing::Hidden),
        '\u{00AD}' => (is_letter(before) && is_letter(after), Standing::Stray),
        // It separates marks from each other.
        '\u{034F}' => (is_joining(before), Standing::Stray),
        '\u{115F}'..='\u{1160}' => (is_jamo(before) || is_jamo(after), Standing::Hidden),
        '\u{17B4}'..='\u{17B5}' => (
            is_one(before, |it| matches!(it, '\u{1780}'..='\u{17B3}')),
            Standing::Hidden,
        ),
        // Mongolian has variations and a vowel separator of its own.
        '\u{180B}'..='\u{180F}' => (
            is_one(before, |it| matches!(it, '\u{1810}'..='\u{18AF}')),
            Standing::Hidden,
        ),
        // Scripts without spaces mark the ends of words with it.
        '\u{200B}' => (is_unspaced(before) && is_unspaced(after), Standing::Stray),
        '\u{200C}' => (joins(before, after), Standing::Stray),
        '\u{200D}' => (
            joins(before, after) || (joins_emoji(before) && is_emoji(after)),
            Standing::Stray,
        ),
        '\u{061C}' | '\u{200E}' | '\u{200F}' => {
            (!is_one(before, is_direction_mark), Standing::Stray)
        }
        '\u{2028}' | '\u{2029}' | '\u{2060}' => (false, Standing::Stray),
        '\u{2800}' => (is_braille(before) || is_braille(after), Standing::Hidden),
        '\u{FE00}'..='\u{FE0F}' => (
            takes_variation(before, character),
            misplaced_variation(before),
        ),
        // Some editors begin a text with the byte order mark.
        '\u{FEFF}' => (before.is_none(), Standing::Stray),
        // They arrange hieroglyphs in groups.
        '\u{13430}'..='\u{1343F}' => (is_hieroglyph(before), Standing::Hidden),
        // They select a variant of an ideograph.
        '\u{E0100}'..='\u{E01EF}' => (is_ideograph(before), Standing::Hidden),
        _ => (false, Standing::Hidden),
    };
    if is_needed {
        Standing::InPlace
    } else {
        otherwise
    }
}

/// Returns whether there is a neighbour, and it has a property.
fn is_one(neighbour: Option<char>, has: impl Fn(char) -> bool) -> bool {
    neighbour.is_some_and(has)
}

fn is_letter(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| it.is_alphabetic() && !is_unseen(it))
}

/// Returns whether a joiner or a non-joiner has a use between two neighbours.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    !is_one(before, is_unseen) && (is_joining(before) || is_joining(after))
}

/// Letters and signs of scripts that are joined in writing, or that combine.
fn is_joining(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| {
        matches!(it,
            '\u{0590}'..='\u{109F}' | '\u{1700}'..='\u{18AF}' | '\u{1900}'..='\u{1C7F}' | '\u{1CD0}'..='\u{1CFF}'
            | '\u{A800}'..='\u{AB2F}' | '\u{ABC0}'..='\u{ABFF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
            | '\u{10A00}'..='\u{11FFF}' | '\u{1E900}'..='\u{1E95F}')
            && !is_unseen(it)
    })
}

/// Returns whether the neighbour belongs to a script without spaces: Tibetan, Thai, Lao, and the scripts of Burma,
/// Cambodia and their neighbours.
fn is_unspaced(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| {
        matches!(it, '\u{0E00}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{1950}'..='\u{1AAF}')
            && !is_unseen(it)
    })
}

/// Letters of Hangul that form syllables together.
fn is_jamo(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| {
        matches!(it, '\u{1100}'..='\u{11FF}' | '\u{A960}'..='\u{A97F}' | '\u{D7B0}'..='\u{D7FF}')
            && !is_unseen(it)
    })
}

/// Returns whether the neighbour is a Braille pattern, the blank one included, because drawings have rows of it.
fn is_braille(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| matches!(it, '\u{2800}'..='\u{28FF}'))
}

fn is_hieroglyph(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| matches!(it, '\u{13000}'..='\u{1345F}'))
}

fn is_ideograph(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| {
        matches!(it, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
            && !is_unseen(it)
    })
}

/// Returns whether the neighbour is an emoji, or in the blocks of symbols that contain them.
fn is_emoji(neighbour: Option<char>) -> bool {
    is_one(neighbour, |it| {
        matches!(it,
            '\u{00A9}' | '\u{00AE}' | '\u{203C}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}'
            | '\u{1F000}'..='\u{1FAFF}')
            && !is_unseen(it)
    })
}

/// Returns whether a joiner can follow: an emoji may have a selector behind it before it is joined to the next.
fn joins_emoji(before: Option<char>) -> bool {
    before == Some('\u{FE0F}') || is_emoji(before)
}

/// Returns whether a character has a variation. Emoji and keycaps have two; ideographs, symbols and letters of some
/// scripts have others.
fn takes_variation(before: Option<char>, selector: char) -> bool {
    let is_keycap = is_one(before, |it| it.is_ascii_digit() || matches!(it, '#' | '*'));
    let is_emoji_selector = matches!(selector, '\u{FE0E}' | '\u{FE0F}');
    let is_symbol = is_one(before, |it| matches!(it, '\u{2190}'..='\u{2BFF}'));
    let is_first = matches!(selector, '\u{FE00}'..='\u{FE02}');
    (is_emoji_selector && (is_keycap || is_emoji(before)))
        || (is_first && (is_symbol || is_ideograph(before) || is_joining(before)))
}

/// Returns the judgement of a selector without a base. After another selector it has no use; elsewhere it may be left
/// over from an emoji.
fn misplaced_variation(before: Option<char>) -> Standing {
    let is_selector = |it| matches!(it, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
    if is_one(before, is_selector) {
        Standing::Hidden
    } else {
        Standing::Stray
    }
}

/// Returns whether a character is a letter, mark or digit of a script that reads from right to left.
fn is_right_to_left(character: char) -> bool {
    matches!(character,
        '\u{0590}'..='\u{08FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
}

/// The isolates of a text, line by line.
#[derive(Default)]
struct Isolates {
    /// The positions of those in lines in which all are closed.
    closed: Vec<usize>,
    /// The positions of those in this line.
    line: Vec<usize>,
    /// The number of open ones.
    open: usize,
    /// True if the last character opened one.
    is_empty: bool,
    /// True if this line closes one that is not open, or has one that begins with nothing visible. Rows of empty
    /// isolates could be the digits of a text.
    is_broken: bool,
}

impl Isolates {
    fn take(&mut self, at: usize, character: char) {
        let was_empty = std::mem::take(&mut self.is_empty);
        match character {
            '\u{2066}'..='\u{2068}' => {
                self.open += 1;
                self.is_empty = true;
            }
            '\u{2069}' => match self.open.checked_sub(1) {
                Some(open) => self.open = open,
                None => self.is_broken = true,
            },
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => return self.end_line(),
            _ => return,
        }
        self.is_broken |= was_empty;
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
