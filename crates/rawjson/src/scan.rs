//! One pass over JSON text: is it valid, where does each value end, how deep does it go. The scan
//! is iterative, so that no input can exhaust the stack, and it builds nothing.

use thiserror::Error;

use crate::plain::{BLOCK, Block};

/// The deepest nesting that is accepted, counted from the message itself.
pub const MAX_DEPTH: usize = 128;

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScanError {
    /// The grammar is broken at this byte.
    #[error("not valid JSON at byte {0}")]
    Syntax(usize),
    /// The value nests deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Faults inside strings that can be mended without guessing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flaws {
    /// A `\uD8xx` or `\uDCxx` escape without its partner.
    pub lone_surrogate: bool,
    /// A control character that should have been escaped.
    pub raw_control: bool,
}

impl Flaws {
    #[inline]
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// Looks at JSON text. Where it is looked at is said by the caller, and every step returns where it ended: a place
/// that is kept in memory would be what the next step waits for.
pub struct Scanner<'a> {
    bytes: &'a [u8],
    pub flaws: Flaws,
    /// Whether the white space between tokens has a line end.
    pub has_line_ends: bool,
    /// Whether the last string has an escape or a control character.
    special: bool,
    /// Not 0 if a string has anything but ASCII, or maybe something behind it. Outside of strings nothing else is
    /// accepted.
    high: u32,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            flaws: Flaws::default(),
            has_line_ends: false,
            special: false,
            high: 0,
        }
    }

    /// Whether the text is valid UTF-8 as far as it was scanned. Most messages are ASCII, and need no second look.
    #[inline]
    pub fn check_utf8(&self) -> Result<(), ScanError> {
        if self.high == 0 {
            return Ok(());
        }
        match simdutf8::compat::from_utf8(self.bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(ScanError::Syntax(error.valid_up_to())),
        }
    }

    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether every byte of the last string stands for itself.
    #[inline]
    pub fn last_string_is_plain(&self) -> bool {
        !self.special
    }

    /// The byte at a place; behind the end a NUL, which JSON has nowhere.
    #[inline]
    pub fn peek(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Goes past white space. Between most tokens there is none, so that is found out first.
    #[inline]
    pub fn blanks(&mut self, at: usize) -> usize {
        if self.peek(at) <= b' ' {
            self.some_blanks(at)
        } else {
            at
        }
    }

    #[inline(never)]
    fn some_blanks(&mut self, mut at: usize) -> usize {
        while let byte @ (b' ' | b'\t' | b'\n' | b'\r') = self.peek(at) {
            self.has_line_ends |= matches!(byte, b'\n' | b'\r');
            at += 1;
        }
        at
    }

    /// Goes past `byte`, which must be there.
    #[inline]
    pub fn expect(&self, at: usize, byte: u8) -> Result<usize, ScanError> {
        if self.peek(at) == byte {
            Ok(at + 1)
        } else {
            Err(ScanError::Syntax(at))
        }
    }

    /// Goes past one value, and any white space before it. `depth` says how many containers stand around it. Most
    /// members are strings and numbers, which need nothing of what containers do.
    #[inline]
    pub fn value(&mut self, at: usize, depth: usize) -> Result<usize, ScanError> {
        match self.peek(at) {
            b'"' => self.string(at),
            b'0'..=b'9' => self.number(at),
            _ => self.any_value(at, depth),
        }
    }

    #[inline(never)]
    fn any_value(&mut self, mut at: usize, depth: usize) -> Result<usize, ScanError> {
        let mut inside = Containers::around(depth);
        loop {
            at = self.blanks(at);
            at = match self.peek(at) {
                b'"' => self.string(at)?,
                opening @ (b'{' | b'[') => match self.open(at, opening, &mut inside)? {
                    Opened::Empty(end) => end,
                    Opened::Entered(first) => {
                        at = first;
                        continue;
                    }
                },
                b'-' | b'0'..=b'9' => self.number(at)?,
                b't' => self.literal(at, b"true")?,
                b'f' => self.literal(at, b"false")?,
                b'n' => self.literal(at, b"null")?,
                _ => return Err(ScanError::Syntax(at)),
            };
            at = match self.close_containers(at, &mut inside)? {
                Closed::Over(end) => return Ok(end),
                Closed::More(next) => next,
            };
        }
    }

    /// Enters a container, up to its first value.
    #[inline]
    fn open(
        &mut self,
        at: usize,
        opening: u8,
        inside: &mut Containers,
    ) -> Result<Opened, ScanError> {
        if inside.depth == MAX_DEPTH {
            return Err(ScanError::TooDeep);
        }
        let at = self.blanks(at + 1);
        let is_object = opening == b'{';
        if self.peek(at) == end_of(is_object) {
            return Ok(Opened::Empty(at + 1));
        }
        inside.enter(is_object);
        let first = if is_object { self.key(at)? } else { at };
        Ok(Opened::Entered(first))
    }

    /// After a value: leaves every container that ends here.
    #[inline]
    fn close_containers(
        &mut self,
        mut at: usize,
        inside: &mut Containers,
    ) -> Result<Closed, ScanError> {
        while inside.depth > inside.base {
            let is_object = inside.is_object();
            at = self.blanks(at);
            if self.peek(at) == b',' {
                at += 1;
                if is_object {
                    at = self.blanks(at);
                    at = self.key(at)?;
                }
                return Ok(Closed::More(at));
            }
            at = self.expect(at, end_of(is_object))?;
            inside.leave();
        }
        Ok(Closed::Over(at))
    }

    #[inline]
    fn key(&mut self, at: usize) -> Result<usize, ScanError> {
        let at = self.string(at)?;
        let at = self.blanks(at);
        self.expect(at, b':')
    }

    /// Goes past a string, quotes included. Most are short, and end in their first block.
    #[inline]
    pub fn string(&mut self, at: usize) -> Result<usize, ScanError> {
        let mut at = self.expect(at, b'"')?;
        self.special = false;
        if let Some(block) = Block::whole(self.bytes, at) {
            self.high |= block.high;
            if block.special != 0 {
                at += block.special.trailing_zeros() as usize;
                if self.peek(at) == b'"' {
                    return Ok(at + 1);
                }
            } else {
                at += BLOCK;
            }
        }
        self.rest_of_string(at)
    }

    /// Goes past the rest of a string, block by block. In source code and logs every block has escapes, so all that a block has
    /// are taken from the one look at it.
    #[inline(never)]
    fn rest_of_string(&mut self, mut at: usize) -> Result<usize, ScanError> {
        while at < self.bytes.len() {
            let block = Block::at(self.bytes, at);
            self.high |= block.high;
            let mut special = block.special;
            let mut done = 0;
            while special != 0 {
                let here = at + special.trailing_zeros() as usize;
                let next = match self.peek(here) {
                    b'"' => return Ok(here + 1),
                    b'\\' => {
                        self.special = true;
                        self.escape(here + 1)?
                    }
                    _ => {
                        self.special = true;
                        self.flaws.raw_control = true;
                        here + 1
                    }
                };
                done = next - at;
                if done >= BLOCK {
                    break;
                }
                special &= u32::MAX << done;
            }
            at += done.max(BLOCK);
        }
        Err(ScanError::Syntax(self.bytes.len()))
    }

    /// Goes past what follows a backslash.
    #[inline]
    fn escape(&mut self, at: usize) -> Result<usize, ScanError> {
        match self.peek(at) {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 1),
            b'u' => self.unicode_escape(at + 1),
            _ => Err(ScanError::Syntax(at)),
        }
    }

    /// Goes past the digits of an escape, and past the low surrogate that belongs to a high one.
    fn unicode_escape(&mut self, at: usize) -> Result<usize, ScanError> {
        let unit = hex4(self.bytes, at).ok_or(ScanError::Syntax(at - 1))?;
        let at = at + 4;
        match unit {
            0xD800..=0xDBFF if low_surrogate_follows(self.bytes, at) => return Ok(at + 6),
            0xD800..=0xDFFF => self.flaws.lone_surrogate = true,
            _ => {}
        }
        Ok(at)
    }

    #[inline(never)]
    fn number(&self, mut at: usize) -> Result<usize, ScanError> {
        at += usize::from(self.peek(at) == b'-');
        at = match self.peek(at) {
            b'0' => at + 1,
            _ => self.digits(at)?,
        };
        if self.peek(at) == b'.' {
            at = self.digits(at + 1)?;
        }
        if let b'e' | b'E' = self.peek(at) {
            at += 1;
            at += usize::from(matches!(self.peek(at), b'+' | b'-'));
            at = self.digits(at)?;
        }
        Ok(at)
    }

    fn digits(&self, start: usize) -> Result<usize, ScanError> {
        let mut at = start;
        while self.peek(at).is_ascii_digit() {
            at += 1;
        }
        if at == start {
            Err(ScanError::Syntax(at))
        } else {
            Ok(at)
        }
    }

    fn literal(&self, at: usize, word: &[u8]) -> Result<usize, ScanError> {
        if self.bytes[at..].starts_with(word) {
            Ok(at + word.len())
        } else {
            Err(ScanError::Syntax(at))
        }
    }
}

/// The containers around a place.
struct Containers {
    /// How many stand around the value that is scanned.
    base: usize,
    /// How many stand around the place.
    depth: usize,
    /// One bit for each that was entered since, the innermost lowest: set for an object.
    objects: u128,
}

impl Containers {
    fn around(depth: usize) -> Self {
        Self {
            base: depth,
            depth,
            objects: 0,
        }
    }

    fn enter(&mut self, is_object: bool) {
        self.depth += 1;
        self.objects = (self.objects << 1) | u128::from(is_object);
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
    }

    /// Whether the innermost is an object.
    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

/// A container that has been begun.
enum Opened {
    Empty(usize),
    /// Its first value comes here.
    Entered(usize),
}

/// What comes after a value.
enum Closed {
    /// Every container that was entered is over.
    Over(usize),
    More(usize),
}

fn end_of(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

/// Whether a low surrogate escape stands at `at`.
pub(crate) fn low_surrogate_follows(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'\\')
        && bytes.get(at + 1) == Some(&b'u')
        && matches!(hex4(bytes, at + 2), Some(0xDC00..=0xDFFF))
}

/// The four hexadecimal digits at `at`.
pub(crate) fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 4)?.iter().try_fold(0, |unit, digit| {
        let digit = (*digit as char).to_digit(16)?;
        Some((unit << 4) | u16::try_from(digit).ok()?)
    })
}
