//! Reads a value of an expected shape in one pass, and gives up on any other shape.

use std::borrow::Cow;

use crate::{Kind, RawJson, Scanner, unescape};

/// A position in a value that is known to be valid.
pub struct Cursor<'a> {
    value: &'a RawJson,
    scanner: Scanner<'a>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(value: &'a RawJson) -> Self {
        Self {
            value,
            scanner: Scanner::new(value.as_bytes()),
            at: 0,
        }
    }

    /// Visits the members of the object at the cursor. `visit` gets the key and must skip the value. Returns `None` if
    /// there is no object, a key has escapes, or a visit gives up.
    pub fn members(&mut self, visit: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        let plain_key = |cursor: &mut Self| {
            let (key, end) = cursor.plain_string(cursor.at)?;
            cursor.at = end;
            Some(key)
        };
        self.members_by(plain_key, visit)
    }

    /// Visits the members of the object at the cursor like [`Cursor::members`], and accepts keys with escapes.
    pub fn members_with_any_keys(
        &mut self,
        visit: impl FnMut(&mut Self, Cow<'a, str>) -> Option<()>,
    ) -> Option<()> {
        self.members_by(Self::any_text, visit)
    }

    /// Visits the members of the object at the cursor. `read_key` must skip each key.
    #[inline]
    fn members_by<Key>(
        &mut self,
        read_key: impl Fn(&mut Self) -> Option<Key>,
        mut visit: impl FnMut(&mut Self, Key) -> Option<()>,
    ) -> Option<()> {
        let scanner = &mut self.scanner;
        let mut at = scanner.blanks(self.at);
        at = scanner.expect(at, b'{').ok()?;
        at = scanner.blanks(at);
        if scanner.peek(at) == b'}' {
            self.at = at + 1;
            return Some(());
        }
        loop {
            self.at = self.scanner.blanks(at);
            let key = read_key(self)?;
            at = self.scanner.blanks(self.at);
            at = self.scanner.expect(at, b':').ok()?;
            self.at = self.scanner.blanks(at);
            visit(self, key)?;
            at = self.scanner.blanks(self.at);
            if self.scanner.peek(at) != b',' {
                self.at = self.scanner.expect(at, b'}').ok()?;
                return Some(());
            }
            at += 1;
        }
    }

    /// Visits the elements of the array at the cursor. `visit` must skip each element.
    pub fn elements(&mut self, mut visit: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let mut at = self.scanner.expect(self.at, b'[').ok()?;
        at = self.scanner.blanks(at);
        if self.scanner.peek(at) == b']' {
            self.at = at + 1;
            return Some(());
        }
        loop {
            self.at = self.scanner.blanks(at);
            visit(self)?;
            at = self.scanner.blanks(self.at);
            if self.scanner.peek(at) != b',' {
                self.at = self.scanner.expect(at, b']').ok()?;
                return Some(());
            }
            at += 1;
        }
    }

    /// Returns the type of the value at the cursor.
    pub fn kind(&self) -> Option<Kind> {
        let rest = self.value.as_bytes().get(self.at..)?;
        Some(match rest.first()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b't' | b'f' => Kind::Boolean,
            b'n' => Kind::Null,
            _ => Kind::Number,
        })
    }

    /// Skips a value and returns it as written.
    pub fn written(&mut self) -> Option<&'a [u8]> {
        let start = self.move_past_value()?;
        Some(&self.scanner.bytes()[start..self.at])
    }

    /// Skips a value and returns it. It shares the buffer.
    pub fn raw(&mut self) -> Option<RawJson> {
        let start = self.move_past_value()?;
        Some(RawJson::trusted(
            self.value.as_bytes().slice(start..self.at),
        ))
    }

    /// Skips a string and returns it as written, and whether it has no escapes.
    pub fn string(&mut self) -> Option<(&'a [u8], bool)> {
        let start = self.at;
        self.at = self.scanner.string(start).ok()?;
        let string = &self.scanner.bytes()[start..self.at];
        Some((string, self.scanner.last_string_is_plain()))
    }

    /// Skips a string and returns its text, borrowed if it has no escapes.
    pub fn any_text(&mut self) -> Option<Cow<'a, str>> {
        match self.string()? {
            (string, true) => {
                let text = &string[1..string.len() - 1];
                Some(Cow::Borrowed(std::str::from_utf8(text).ok()?))
            }
            (string, false) => Some(Cow::Owned(unescape(string).into_owned())),
        }
    }

    /// Skips a value; returns its start.
    fn move_past_value(&mut self) -> Option<usize> {
        let start = self.at;
        self.at = self.scanner.value(start, 0).ok()?;
        Some(start)
    }

    /// Returns the text of the string at `at` if it has no escapes, and its end.
    fn plain_string(&mut self, at: usize) -> Option<(&'a [u8], usize)> {
        let end = self.scanner.string(at).ok()?;
        let inner = &self.scanner.bytes()[at + 1..end - 1];
        self.scanner.last_string_is_plain().then_some((inner, end))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Reads the texts `a` and `b.c` and the value `v` of an object.
    fn read(text: &str) -> Option<(String, String, String)> {
        let value = RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
        let (mut a, mut c, mut v) = (None, None, None);
        Cursor::new(&value).members(|cursor, key| {
            match key {
                b"a" => a = Some(cursor.any_text()?.into_owned()),
                b"b" => cursor.members(|cursor, key| {
                    c = (key == b"c").then(|| cursor.any_text()).flatten();
                    c.as_ref().map(drop)
                })?,
                _ => v = Some(str::from_utf8(cursor.written()?).unwrap().to_owned()),
            }
            Some(())
        })?;
        Some((a?, c?.into_owned(), v?))
    }

    #[test]
    fn expected_members_are_read_in_one_pass() {
        let expected = Some((
            "x".to_owned(),
            "y".to_owned(),
            r#"[ {"a":1}, "]" ]"#.to_owned(),
        ));
        for text in [
            r#"{"a":"x","b":{"c":"y"},"v":[ {"a":1}, "]" ]}"#,
            "\n{ \"v\" : [ {\"a\":1}, \"]\" ] ,\t\"b\" : { \"c\" : \"y\" } , \"a\" : \"x\" } ",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn unexpected_members_give_nothing() {
        for text in [
            "5",
            "{}",
            r#"{"a":5,"b":{"c":"y"},"v":1}"#,
            r#"{"\u0061":"x","b":{"c":"y"},"v":1}"#,
            r#"{"a":"x","b":{"d":"y"},"v":1}"#,
            r#"{"a":"x","b":["c"],"v":1}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn members_with_escaped_keys_are_read() {
        let value = RawJson::parse(&Bytes::from_static(br#"{"\u0061\n":1,"b":{}}"#)).unwrap();
        let mut members = Vec::new();
        let read = Cursor::new(&value).members_with_any_keys(|cursor, key| {
            members.push((key.into_owned(), cursor.written()?));
            Some(())
        });
        assert_eq!(read, Some(()));
        assert_eq!(
            members,
            [("a\n".to_owned(), &b"1"[..]), ("b".to_owned(), b"{}")]
        );
    }
}
