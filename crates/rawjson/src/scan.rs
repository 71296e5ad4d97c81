//! One pass over JSON text that checks it, finds the end of each value and bounds the depth. The scan is iterative, so
//! that no input can exhaust the stack, and it allocates nothing.

use thiserror::Error;

use crate::{
    blocks::{SHORT, ShortBlock},
    checked::CheckedPart,
    string::LongString,
};

/// The deepest nesting that is accepted, counted from the message itself.
pub const MAX_DEPTH: usize = 128;

/// The number of short blocks after which long ones are faster.
const SHORT_BLOCKS: usize = 8;

/// A fault for which a text is not accepted as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScanError {
    /// The grammar is broken at this byte.
    #[error("not valid JSON at byte {0}")]
    Syntax(usize),
    /// The value nests deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// A [`ScanError`] in one word, so that the steps of a scan return their results in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanFault(usize);

impl ScanFault {
    const TOO_DEEP: Self = Self(usize::MAX);

    /// Returns the fault of a syntax error at `at`.
    ///
    /// `black_box` hides from the compiler that the number is `at`. It would otherwise replace the branch between `at` and
    /// `at + 1` by arithmetic, and every later step would wait for the compared byte. That took a fifth of the time of a
    /// small message.
    #[cold]
    #[inline(never)]
    pub(crate) fn syntax(at: usize) -> Self {
        Self(std::hint::black_box(at))
    }
}

impl From<ScanFault> for ScanError {
    fn from(fault: ScanFault) -> Self {
        match fault {
            ScanFault::TOO_DEEP => Self::TooDeep,
            ScanFault(at) => Self::Syntax(at),
        }
    }
}

/// Faults inside strings that can be repaired without guessing.
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

/// A scanner of JSON text. It has no position: the caller passes one to each step, which returns where it ended. That
/// keeps the position in a register; in memory, every step would wait for the store of the one before.
pub struct Scanner<'a> {
    bytes: &'a [u8],
    pub flaws: Flaws,
    /// True if there is white space between tokens.
    pub(crate) has_blanks: bool,
    /// True if white space between tokens contains a line end.
    pub has_line_ends: bool,
    /// True if the last string has an escape or a control character.
    pub(crate) special: bool,
    /// Not 0 if a string may have bytes that are not ASCII. A block can reach beyond its string, so this may be a false
    /// alarm. Outside strings the grammar accepts ASCII only.
    pub(crate) high: u32,
    /// The part of a long string that needs no second check.
    pub(crate) checked: Option<&'a CheckedPart>,
    /// The start of the long string that the text ends in.
    pub(crate) unfinished: Option<usize>,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            flaws: Flaws::default(),
            has_blanks: false,
            has_line_ends: false,
            special: false,
            high: 0,
            checked: None,
            unfinished: None,
        }
    }

    /// Creates a scanner of a text of which a part was checked while it arrived.
    #[inline]
    pub fn with_checked(bytes: &'a [u8], checked: Option<&'a CheckedPart>) -> Self {
        Self {
            checked,
            ..Self::new(bytes)
        }
    }

    /// Checks that the scanned text is valid UTF-8. Most messages are ASCII and need no second pass.
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

    /// Returns true if the last string has no escapes and no control characters.
    #[inline]
    pub fn last_string_is_plain(&self) -> bool {
        !self.special
    }

    /// Returns the byte at a position, and NUL beyond the end. NUL is not valid anywhere in JSON, so no step needs a
    /// check of the length.
    #[inline]
    pub fn peek(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Skips white space. Most tokens have none between them, so the loop is out of line.
    #[inline]
    pub fn blanks(&mut self, at: usize) -> usize {
        // Control characters and NUL get there too, and end the loop at once.
        if self.peek(at) <= b' ' {
            self.some_blanks(at)
        } else {
            at
        }
    }

    /// Skips white space. Returns the first byte of the next token, and its position.
    #[inline]
    pub fn token(&mut self, mut at: usize) -> (u8, usize) {
        let mut byte = self.peek(at);
        if byte <= b' ' {
            at = self.some_blanks(at);
            byte = self.peek(at);
        }
        (byte, at)
    }

    #[inline(never)]
    fn some_blanks(&mut self, mut at: usize) -> usize {
        while let byte @ (b' ' | b'\t' | b'\n' | b'\r') = self.peek(at) {
            self.has_blanks = true;
            self.has_line_ends |= matches!(byte, b'\n' | b'\r');
            at += 1;
        }
        at
    }

    /// Skips `byte`, which is required at `at`.
    #[inline]
    pub fn expect(&self, at: usize, byte: u8) -> Result<usize, ScanFault> {
        if self.peek(at) == byte {
            Ok(at + 1)
        } else {
            Err(ScanFault::syntax(at))
        }
    }

    /// Skips one value and the white space before it. `depth` is the number of containers around it. Strings and
    /// numbers, which most members are, take a shorter path.
    #[inline]
    pub fn value(&mut self, at: usize, depth: usize) -> Result<usize, ScanFault> {
        match self.peek(at) {
            b'"' => self.string_body(at + 1),
            b'0'..=b'9' => self.number(at),
            _ => self.any_value(at, depth),
        }
    }

    #[inline(never)]
    fn any_value(&mut self, mut at: usize, depth: usize) -> Result<usize, ScanFault> {
        let mut inside = Containers::around(depth);
        // Equal to `inside.is_object()`, but in a register: the loop asks for each member and element.
        let mut in_object = false;
        loop {
            if in_object {
                at = self.key(at)?;
            }
            let (byte, start) = self.token(at);
            at = match byte {
                b'"' => self.string_body(start + 1)?,
                b'{' | b'[' => {
                    if inside.depth == MAX_DEPTH {
                        return Err(ScanFault::TOO_DEEP);
                    }
                    let is_object = byte == b'{';
                    // An empty container needs no place on the stack.
                    let (byte, first) = self.token(start + 1);
                    if byte != end_of(is_object) {
                        inside.enter(is_object);
                        in_object = is_object;
                        at = first;
                        continue;
                    }
                    first + 1
                }
                b'-' | b'0'..=b'9' => self.number(start)?,
                b't' => self.literal(start, b"true")?,
                b'f' => self.literal(start, b"false")?,
                b'n' => self.literal(start, b"null")?,
                _ => return Err(ScanFault::syntax(start)),
            };
            // After a value: a comma continues the container, an end leaves it, possibly several levels at once.
            loop {
                if inside.depth == inside.base {
                    return Ok(at);
                }
                let (byte, next) = self.token(at);
                at = next + 1;
                if byte == b',' {
                    break;
                }
                if byte != end_of(in_object) {
                    return Err(ScanFault::syntax(next));
                }
                inside.leave();
                in_object = inside.is_object();
            }
        }
    }

    /// Skips a key and its colon, and the white space before them.
    #[inline]
    fn key(&mut self, at: usize) -> Result<usize, ScanFault> {
        let (byte, start) = self.token(at);
        if byte != b'"' {
            return Err(ScanFault::syntax(start));
        }
        let at = self.string_body(start + 1)?;
        self.colon(at)
    }

    /// Skips a colon and the white space before it.
    #[inline]
    pub(crate) fn colon(&mut self, at: usize) -> Result<usize, ScanFault> {
        let (byte, at) = self.token(at);
        if byte == b':' {
            Ok(at + 1)
        } else {
            Err(ScanFault::syntax(at))
        }
    }

    /// Skips a string, including its quotes.
    #[inline]
    pub fn string(&mut self, at: usize) -> Result<usize, ScanFault> {
        let at = self.expect(at, b'"')?;
        self.string_body(at)
    }

    /// Skips a string whose opening quote is before `at`. Most strings end in their first block.
    #[inline]
    pub(crate) fn string_body(&mut self, mut at: usize) -> Result<usize, ScanFault> {
        self.special = false;
        if let Some(block) = ShortBlock::at(self.bytes, at) {
            self.high |= block.high;
            if block.special != 0 {
                at += block.special.trailing_zeros() as usize;
                if self.peek(at) == b'"' {
                    return Ok(at + 1);
                }
            } else {
                at += SHORT;
            }
        }
        self.rest_of_string(at)
    }

    /// Skips the rest of a string: in a few short blocks up to the first escape, then in long ones. A short block costs a
    /// quarter of a long one, but a long one handles all of its escapes at once.
    #[inline(never)]
    fn rest_of_string(&mut self, mut at: usize) -> Result<usize, ScanFault> {
        let block_at =
            |at| ShortBlock::at(self.bytes, at).or_else(|| ShortBlock::last(self.bytes, at));
        for _ in 0..SHORT_BLOCKS {
            let Some(block) = block_at(at) else { break };
            self.high |= block.high;
            if block.special != 0 {
                at += block.special.trailing_zeros() as usize;
                if self.peek(at) == b'"' {
                    return Ok(at + 1);
                }
                break;
            }
            at += SHORT;
        }
        LongString::default().scan(self, at)
    }

    #[inline(never)]
    fn number(&self, mut at: usize) -> Result<usize, ScanFault> {
        at += usize::from(self.peek(at) == b'-');
        at = match self.peek(at) {
            // JSON has no leading zeros: `01` ends here, and the `1` is refused as the next token.
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

    fn digits(&self, start: usize) -> Result<usize, ScanFault> {
        let mut at = start;
        while self.peek(at).is_ascii_digit() {
            at += 1;
        }
        if at == start {
            Err(ScanFault::syntax(at))
        } else {
            Ok(at)
        }
    }

    fn literal(&self, at: usize, word: &[u8]) -> Result<usize, ScanFault> {
        if self.bytes[at..].starts_with(word) {
            Ok(at + word.len())
        } else {
            Err(ScanFault::syntax(at))
        }
    }
}

/// The containers around a position. [`MAX_DEPTH`] is the number of bits, so the stack is one integer.
struct Containers {
    /// The number of containers around the scanned value.
    base: usize,
    /// The number of containers around the position.
    depth: usize,
    /// One bit per container entered since, the innermost lowest: set for an object.
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

    /// Returns true if the innermost container is an object.
    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

fn end_of(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

/// Returns true if a low surrogate escape is at `at`.
pub(crate) fn low_surrogate_follows(bytes: &[u8], at: usize) -> bool {
    bytes.get(at) == Some(&b'\\')
        && bytes.get(at + 1) == Some(&b'u')
        && matches!(hex4(bytes, at + 2), Some(0xDC00..=0xDFFF))
}

/// Returns the value of the four hexadecimal digits at `at`.
pub(crate) fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 4)?.iter().try_fold(0, |unit, digit| {
        let digit = (*digit as char).to_digit(16)?;
        Some((unit << 4) | u16::try_from(digit).ok()?)
    })
}
