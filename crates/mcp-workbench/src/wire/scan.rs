//! One pass over JSON text: is it valid, where does each value end, how deep does it go. The scan
//! is iterative, so that no input can exhaust the stack, and it builds nothing.

use thiserror::Error;

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
pub(super) struct Flaws {
    /// A `\uD8xx` or `\uDCxx` escape without its partner.
    pub(super) lone_surrogate: bool,
    /// A control character that should have been escaped.
    pub(super) raw_control: bool,
}

impl Flaws {
    /// Whether there is one.
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }
}

/// A cursor over JSON text.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many containers stand around the value that the cursor is in.
    depth: usize,
    /// One bit a surrounding container, the innermost lowest: set for an object.
    objects: u128,
    pub(super) flaws: Flaws,
    /// Whether the white space between tokens has a line end.
    pub(super) has_line_ends: bool,
    /// Whether the last string has an escape or a control character.
    special: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            depth: 0,
            objects: 0,
            flaws: Flaws::default(),
            has_line_ends: false,
            special: false,
        }
    }

    /// The text from `start` to the cursor.
    pub(super) fn text_since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Whether every byte of the last string stands for itself.
    pub(super) fn last_string_is_plain(&self) -> bool {
        !self.special
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Moves past white space. Between most tokens there is none, so that is found out first.
    #[inline]
    pub(super) fn skip_whitespace(&mut self) {
        if self.peek().is_some_and(|byte| byte <= b' ') {
            self.skip_blanks();
        }
    }

    #[inline(never)]
    fn skip_blanks(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.bytes.get(self.at) {
            self.has_line_ends |= matches!(byte, b'\n' | b'\r');
            self.at += 1;
        }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Takes `byte` if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.broken())
        }
    }

    /// Notes that the cursor has entered a container that the caller walks itself.
    pub(super) fn enter(&mut self) {
        self.depth += 1;
    }

    /// Notes that the caller has left the container.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Moves past one value, and any white space before it.
    pub(super) fn skip_value(&mut self) -> Result<(), ScanError> {
        let base = self.depth;
        loop {
            self.skip_whitespace();
            let opened = match self.peek() {
                Some(b'{') => self.open(true)?,
                Some(b'[') => self.open(false)?,
                Some(b'"') => self.string().map(|()| false)?,
                Some(b'-' | b'0'..=b'9') => self.number().map(|()| false)?,
                Some(b't') => self.literal(b"true").map(|()| false)?,
                Some(b'f') => self.literal(b"false").map(|()| false)?,
                Some(b'n') => self.literal(b"null").map(|()| false)?,
                _ => return Err(self.broken()),
            };
            if !opened && self.close_containers(base)? {
                return Ok(());
            }
        }
    }

    /// Enters a container; false if it was empty and is already left again.
    fn open(&mut self, object: bool) -> Result<bool, ScanError> {
        if self.depth == MAX_DEPTH {
            return Err(ScanError::TooDeep);
        }
        self.at += 1;
        self.skip_whitespace();
        if self.take(if object { b'}' } else { b']' }) {
            return Ok(false);
        }
        self.depth += 1;
        self.objects = (self.objects << 1) | u128::from(object);
        if object {
            self.key()?;
        }
        Ok(true)
    }

    /// After a value: leaves every container that ends here. True if the value at `base` is over,
    /// false if another member or element follows.
    fn close_containers(&mut self, base: usize) -> Result<bool, ScanError> {
        while self.depth > base {
            let object = self.objects & 1 == 1;
            self.skip_whitespace();
            if self.take(b',') {
                if object {
                    self.skip_whitespace();
                    self.key()?;
                }
                return Ok(false);
            }
            self.expect(if object { b'}' } else { b']' })?;
            self.depth -= 1;
            self.objects >>= 1;
        }
        Ok(true)
    }

    fn key(&mut self) -> Result<(), ScanError> {
        self.string()?;
        self.skip_whitespace();
        self.expect(b':')
    }

    /// Moves past a string, quotes included.
    #[inline]
    pub(super) fn string(&mut self) -> Result<(), ScanError> {
        self.expect(b'"')?;
        self.at = plain_end(self.bytes, self.at);
        self.special = !self.take(b'"');
        if self.special {
            return self.rest_of_string();
        }
        Ok(())
    }

    /// Moves past the rest of a string, from the first byte on that does not stand for itself.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<(), ScanError> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => {
                    self.flaws.raw_control = true;
                    self.at += 1;
                }
                None => return Err(self.broken()),
            }
            self.at = plain_end(self.bytes, self.at);
        }
    }

    /// Moves past what follows a backslash.
    fn escape(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let unit = hex4(self.bytes, self.at + 1).ok_or_else(|| self.broken())?;
                self.at += 5;
                match unit {
                    0xD800..=0xDBFF if low_surrogate_follows(self.bytes, self.at) => self.at += 6,
                    0xD800..=0xDFFF => self.flaws.lone_surrogate = true,
                    _ => {}
                }
                Ok(())
            }
            _ => Err(self.broken()),
        }
    }

    fn number(&mut self) -> Result<(), ScanError> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            Err(self.broken())
        } else {
            Ok(())
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.broken())
        }
    }

    fn broken(&self) -> ScanError {
        ScanError::Syntax(self.at)
    }
}

/// Whether text is valid UTF-8. Most messages are plain ASCII, which is found out several times faster.
pub(super) fn check_utf8(bytes: &[u8]) -> Result<(), ScanError> {
    if bytes.is_ascii() {
        return Ok(());
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(ScanError::Syntax(error.valid_up_to())),
    }
}

/// Whether a low surrogate escape stands at `at`.
pub(super) fn low_surrogate_follows(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'\\')
        && bytes.get(at + 1) == Some(&b'u')
        && matches!(hex4(bytes, at + 2), Some(0xDC00..=0xDFFF))
}

/// The four hexadecimal digits at `at`.
pub(super) fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 4)?.iter().try_fold(0, |unit, digit| {
        let digit = (*digit as char).to_digit(16)?;
        Some((unit << 4) | u16::try_from(digit).ok()?)
    })
}

/// So many bytes are looked at as one number.
const WORD: usize = 8;
/// So many bytes are looked at together once a string has shown to be long.
const BLOCK: usize = 32;

/// How many bytes of a string stand for themselves: up to a quote, a backslash or a control character.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    plain_end(bytes, 0)
}

/// Where the bytes from `at` on no longer stand for themselves. Most strings are short, so their first bytes are
/// looked at in the way that begins soonest.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    for _ in 0..BLOCK / WORD {
        let Some(word) = word_at(bytes, at) else {
            return plain_rest(bytes, at);
        };
        let found = special_in(word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    plain_long(bytes, at)
}

/// The same for a string that has shown to be long.
#[inline(never)]
fn plain_long(bytes: &[u8], mut at: usize) -> usize {
    at += plain_blocks(&bytes[at..]) * BLOCK;
    while let Some(word) = word_at(bytes, at) {
        let found = special_in(word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    plain_rest(bytes, at)
}

/// The same for what is shorter than a word.
#[inline(never)]
fn plain_rest(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let found = rest.iter().position(|byte| is_special(*byte));
    at + found.unwrap_or(rest.len())
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<WORD>()?;
    Some(u64::from_le_bytes(*word))
}

/// How many blocks stand for themselves.
fn plain_blocks(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    blocks
        .iter()
        .take_while(|block| !has_special(block))
        .count()
}

/// Marks the bytes of a word that do not stand for themselves by their highest bits. Marks above the lowest
/// one may be wrong: a subtraction borrows from the bytes above.
#[inline]
fn special_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; WORD]);
    const HIGHEST: u64 = u64::from_le_bytes([0x80; WORD]);
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    // With this bit turned over the quote stands right behind the control characters, which stay what they are.
    let control_or_quote = below(word ^ (ONES * 2), 0x21);
    let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
    (control_or_quote | backslash) & HIGHEST
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..0x20)
}

/// A fold without early exit, which the compiler turns into vector instructions.
fn has_special(block: &[u8; BLOCK]) -> bool {
    let special =
        |byte: u8| u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20);
    let found = block.iter().fold(0, |found, byte| found | special(*byte));
    found != 0
}
