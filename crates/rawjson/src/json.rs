//! A span of valid JSON text that shares the buffer it arrived in. It is read one level at a time and passed on
//! unchanged.

use std::borrow::Cow;

use bytes::Bytes;

use crate::{
    ObjectText,
    blocks::plain_length,
    repair::{escape_controls, replace_lone_surrogates},
    scan::{ScanError, ScanFault, Scanner},
};

/// A valid JSON value, byte for byte as it was sent.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Bytes);

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    pub key: Cow<'a, str>,
    /// Its key as JSON text, byte for byte.
    pub key_as_sent: &'a [u8],
    pub value: RawJson,
}

/// A text that is put into a value.
#[derive(Debug)]
pub struct Insertion {
    at: usize,
    text: String,
}

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// Returns the word for error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl RawJson {
    /// Checks that `bytes` are one JSON value in valid UTF-8.
    pub fn parse(bytes: &Bytes) -> Result<Self, ScanError> {
        let mut scanner = Scanner::new(bytes);
        let start = scanner.blanks(0);
        let end = scanner.value(start, 0)?;
        let rest = scanner.blanks(end);
        // A raw control character is a flaw that callers of the scanner may repair. Here it is an error.
        if rest < bytes.len() || scanner.flaws.raw_control {
            return Err(ScanError::Syntax(rest));
        }
        scanner.check_utf8()?;
        Ok(Self(bytes.slice(start..end)))
    }

    /// Returns a value of our own as JSON text.
    pub fn of(value: &impl serde::Serialize) -> Self {
        let text = serde_json::to_vec(value).expect("our own values have string keys");
        Self(text.into())
    }

    pub fn array(elements: &[Self]) -> Self {
        let mut text = vec![b'['];
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&element.0);
        }
        text.push(b']');
        Self(text.into())
    }

    /// Wraps a span that a scan has already found to be one value in valid UTF-8. Other bytes make later calls panic.
    #[inline]
    pub fn trusted(span: Bytes) -> Self {
        Self(span)
    }

    /// Returns a copy with its own buffer. A span keeps the whole message in memory; a long-lived value should not.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Returns the text of the value.
    #[inline]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the text of the value without a copy.
    #[inline]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Returns the text of the value.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when the value was scanned")
    }

    /// Returns the type of the value.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.0.first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Returns the text of a string value, with U+FFFD for lone surrogates.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        (self.kind() == Kind::String).then(|| unescape(&self.0))
    }

    /// Returns true if this is the value `true`.
    #[inline]
    pub fn is_true(&self) -> bool {
        self.0.as_ref() == b"true"
    }

    /// Returns the members of an object in order, including duplicate keys.
    pub fn members(&self) -> Option<Vec<Member<'_>>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let mut members = Vec::new();
        walk_members(&mut Scanner::new(&self.0), 0, |scanner, key, at| {
            let end = scanner.value(at, 1)?;
            members.push(Member {
                key: key.text(),
                key_as_sent: key.quoted,
                value: self.span(at..end),
            });
            Ok(end)
        })
        .expect("checked when the value was scanned");
        Some(members)
    }

    /// Visits the members of an object: `visit` gets each unescaped key, the span of the member, and the value.
    pub fn visit_members(&self, mut visit: impl FnMut(&[u8], std::ops::Range<usize>, Self)) {
        if self.kind() != Kind::Object {
            return;
        }
        walk_members(&mut Scanner::new(&self.0), 0, |scanner, key, at| {
            let end = scanner.value(at, 1)?;
            visit(&key.bytes(), key.at..end, self.span(at..end));
            Ok(end)
        })
        .expect("checked when the value was scanned");
    }

    /// Returns an object of some of the members of this one, by their spans.
    #[must_use]
    pub fn of_members(&self, members: &[std::ops::Range<usize>]) -> Self {
        let mut text = vec![b'{'];
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.0[member.clone()]);
        }
        text.push(b'}');
        Self(text.into())
    }

    /// Returns the value of the first member `name` of an object.
    pub fn member(&self, name: &str) -> Option<Self> {
        if self.kind() != Kind::Object {
            return None;
        }
        let mut found = None;
        // The walk ends at the member: a list may follow it that is much larger.
        let _ = walk_members(&mut Scanner::new(&self.0), 0, |scanner, key, at| {
            let end = scanner.value(at, 1)?;
            if *key.bytes() == *name.as_bytes() {
                found = Some(at..end);
                return Err(ScanFault::syntax(at));
            }
            Ok(end)
        });
        Some(self.span(found?))
    }

    /// Returns the object with a different value of the member `name`, which is added at the end if it is missing. All
    /// other bytes are unchanged.
    #[must_use]
    pub fn with_member(&self, name: &str, value: &Self) -> Self {
        let mut found = false;
        let mut text = ObjectText::new();
        for member in self.members().unwrap_or_default() {
            text = if member.key == name {
                found = true;
                text.raw(name, value)
            } else {
                text.relay(&member)
            };
        }
        if !found {
            text = text.raw(name, value);
        }
        text.finish()
    }

    /// Returns the object without the members of these names. All other bytes are unchanged.
    #[must_use]
    pub fn without_members(&self, names: &[&str]) -> Self {
        let members = self.members().unwrap_or_default();
        let kept = members
            .iter()
            .filter(|member| !names.contains(&member.key.as_ref()));
        kept.fold(ObjectText::new(), ObjectText::relay).finish()
    }

    /// Returns the insertion of a text into a part of this value, at a byte of the part. The part must share the buffer of
    /// the value, as members and elements do.
    ///
    /// # Panics
    /// If it does not.
    pub fn insertion(&self, part: &Self, at: usize, text: String) -> Insertion {
        let (start, part) = (self.0.as_ptr() as usize, part.0.as_ptr() as usize);
        let offset = part.checked_sub(start).filter(|it| it + at <= self.0.len());
        Insertion {
            at: offset.expect("a part of this value") + at,
            text,
        }
    }

    /// Returns the value with texts inserted, which must leave it valid. All other bytes are unchanged.
    #[must_use]
    pub fn with_insertions(&self, mut insertions: Vec<Insertion>) -> Self {
        if insertions.is_empty() {
            return self.clone();
        }
        insertions.sort_by_key(|it| it.at);
        let mut text = Vec::with_capacity(self.0.len() + 256);
        let mut done = 0;
        for Insertion { at, text: inserted } in insertions {
            text.extend_from_slice(&self.0[done..at]);
            text.extend_from_slice(inserted.as_bytes());
            done = at;
        }
        text.extend_from_slice(&self.0[done..]);
        Self(text.into())
    }

    /// Returns the elements of an array.
    pub fn elements(&self) -> Option<Vec<Self>> {
        if self.kind() != Kind::Array {
            return None;
        }
        let mut elements = Vec::new();
        walk_elements(&mut Scanner::new(&self.0), 0, |scanner, at| {
            let end = scanner.value(at, 1)?;
            elements.push(self.span(at..end));
            Ok(end)
        })
        .expect("checked when the value was scanned");
        Some(elements)
    }

    /// Returns the value without white space between tokens.
    #[must_use]
    pub fn minified(&self) -> Self {
        let mut text = Vec::with_capacity(self.0.len());
        self.minify_into(&mut text);
        Self(text.into())
    }

    /// Appends the members of an object whose unescaped keys `keeps` accepts, each with a comma behind it and without white
    /// space between tokens.
    pub fn minify_members_into(&self, out: &mut Vec<u8>, keeps: impl Fn(&[u8]) -> bool) {
        if self.kind() != Kind::Object {
            return;
        }
        walk_members(&mut Scanner::new(&self.0), 0, |scanner, key, at| {
            let end = scanner.value(at, 1)?;
            if keeps(&key.bytes()) {
                // Most objects are sent without white space, and their members are copied as they are.
                if scanner.has_blanks {
                    self.span(key.at..end).minify_into(out);
                } else {
                    out.extend_from_slice(&self.0[key.at..end]);
                }
                out.push(b',');
            }
            Ok(end)
        })
        .expect("checked when the value was scanned");
    }

    /// Appends the value without white space between tokens.
    pub fn minify_into(&self, out: &mut Vec<u8>) {
        let mut rest: &[u8] = &self.0;
        while !rest.is_empty() {
            let quote = memchr::memchr(b'"', rest).unwrap_or(rest.len());
            out.extend(
                rest[..quote]
                    .iter()
                    .filter(|byte| !byte.is_ascii_whitespace()),
            );
            // Without another quotation mark the rest has no string.
            let end = Scanner::new(rest).string(quote).unwrap_or(quote);
            out.extend_from_slice(&rest[quote..end]);
            rest = &rest[end..];
        }
    }

    fn span(&self, range: std::ops::Range<usize>) -> Self {
        Self(self.0.slice(range))
    }
}

impl std::fmt::Debug for RawJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The key of a member in the scanned text.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// The offset of its opening quote.
    pub at: usize,
    /// The text, quotes included.
    quoted: &'a [u8],
    /// True if the key has no escapes.
    is_plain: bool,
}

impl<'a> Key<'a> {
    #[inline]
    pub fn text(self) -> Cow<'a, str> {
        if self.is_plain {
            without_escapes(self.inner())
        } else {
            unescape(self.quoted)
        }
    }

    /// Returns the key if it has no escapes.
    #[inline]
    pub fn plain(self) -> Option<&'a [u8]> {
        self.is_plain.then(|| self.inner())
    }

    /// Returns the unescaped key as bytes.
    #[inline]
    pub fn bytes(self) -> Cow<'a, [u8]> {
        if self.is_plain {
            Cow::Borrowed(self.inner())
        } else {
            Cow::Owned(unescape(self.quoted).into_owned().into())
        }
    }

    #[inline]
    fn inner(self) -> &'a [u8] {
        &self.quoted[1..self.quoted.len() - 1]
    }
}

/// The position of a value in a text.
pub type Span = std::ops::Range<usize>;

/// Walks the object at `at`. `visit` gets each key and the position of its value, skips the value and returns its end.
/// Returns the end of the object.
#[inline]
pub fn walk_members<'a>(
    scanner: &mut Scanner<'a>,
    at: usize,
    mut visit: impl FnMut(&mut Scanner<'a>, Key<'a>, usize) -> Result<usize, ScanFault>,
) -> Result<usize, ScanFault> {
    let at = scanner.expect(at, b'{')?;
    let (mut byte, mut start) = scanner.token(at);
    if byte == b'}' {
        return Ok(start + 1);
    }
    loop {
        if byte != b'"' {
            return Err(ScanFault::syntax(start));
        }
        let end = scanner.string_body(start + 1)?;
        let key = Key {
            at: start,
            quoted: &scanner.bytes()[start..end],
            is_plain: scanner.last_string_is_plain(),
        };
        let at = scanner.colon(end)?;
        let at = scanner.blanks(at);
        let at = visit(scanner, key, at)?;
        let (next, at) = scanner.token(at);
        if next != b',' {
            return scanner.expect(at, b'}');
        }
        (byte, start) = scanner.token(at + 1);
    }
}

/// Walks the array at `at`. `visit` gets the position of each element, skips it and returns its end. Returns the end of
/// the array.
#[inline]
pub fn walk_elements<'a>(
    scanner: &mut Scanner<'a>,
    at: usize,
    mut visit: impl FnMut(&mut Scanner<'a>, usize) -> Result<usize, ScanFault>,
) -> Result<usize, ScanFault> {
    let at = scanner.expect(at, b'[')?;
    let (byte, mut start) = scanner.token(at);
    if byte == b']' {
        return Ok(start + 1);
    }
    loop {
        let at = visit(scanner, start)?;
        let (next, at) = scanner.token(at);
        if next != b',' {
            return scanner.expect(at, b']');
        }
        start = scanner.blanks(at + 1);
    }
}

/// Returns the text of a quoted JSON string. It may have raw control characters and invalid UTF-8, because a message is
/// read before it is decided whether they are refused or repaired.
pub fn unescape(quoted: &[u8]) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if plain_length(inner) == inner.len() {
        return without_escapes(inner);
    }
    // serde refuses control characters and lone surrogates.
    let mut quoted = escape_controls(quoted);
    replace_lone_surrogates(&mut quoted);
    let quoted = String::from_utf8_lossy(&quoted);
    Cow::Owned(serde_json::from_str(&quoted).expect("a scanned string that has been repaired"))
}

/// Returns the text of a string without escapes.
fn without_escapes(inner: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(inner) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(inner),
    }
}
