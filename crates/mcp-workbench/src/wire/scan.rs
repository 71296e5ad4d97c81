//! One pass over JSON text: is it valid, where does each value end, how deep does it go. The scan
//! is iterative, so that no input can exhaust the stack, and it builds nothing.

use thiserror::Error;

use super::plain::{HIGHEST, WORD, plain_end, special_in, word_at};

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
    /// All bytes of strings that were looked at, and maybe some behind them, in one: the highest bits tell whether
    /// there was anything but ASCII. Outside of strings nothing else is accepted.
    seen: u64,
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
            seen: 0,
        }
    }

    /// Whether the text is valid UTF-8 as far as it was scanned. Most messages are ASCII, and need no second look.
    pub(super) fn check_utf8(&self) -> Result<(), ScanError> {
        if self.seen & HIGHEST == 0 {
            return Ok(());
        }
        match std::str::from_utf8(self.bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(ScanError::Syntax(error.valid_up_to())),
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

    /// Moves past a string, quotes included. Most are short, and end in their first eight bytes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<(), ScanError> {
        self.expect(b'"')?;
        self.special = false;
        if let Some(word) = word_at(self.bytes, self.at) {
            self.seen |= word;
            let found = special_in(word);
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                if self.take(b'"') {
                    return Ok(());
                }
            } else {
                self.at += WORD;
            }
        }
        self.rest_of_string()
    }

    /// Moves past the rest of a string.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<(), ScanError> {
        loop {
            self.at = plain_end(self.bytes, self.at, &mut self.seen);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.special = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => {
                    self.special = true;
                    self.flaws.raw_control = true;
                    self.at += 1;
                }
                None => return Err(self.broken()),
            }
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
