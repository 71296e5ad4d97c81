//! The members of a result that decide what becomes of it, found in the same pass that checks the message.

use bytes::Buf;
use rawjson::{RawJson, ScanFault, Scanner, Spliced, walk_elements, walk_members};

/// A member of a result that decides what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marked {
    /// Says what the result is.
    ResultType,
    /// Says that the tool has failed.
    IsError,
    /// Has the items that a model is shown.
    Content,
}

impl Marked {
    #[inline]
    fn named(key: &[u8]) -> Option<Self> {
        match key {
            b"resultType" => Some(Self::ResultType),
            b"isError" => Some(Self::IsError),
            b"content" => Some(Self::Content),
            _ => None,
        }
    }
}

/// The type of a content item that links to a resource.
const RESOURCE_LINK: &[u8] = br#""resource_link""#;

/// A result that says that it is the answer.
const COMPLETE: &[u8] = br#""complete""#;

/// The places of the members of a result that decide what becomes of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultMarks {
    /// The member `resultType`, from its key to the end of its value.
    result_type: Option<TypeMark>,
    /// Set if the result says that the tool has failed.
    pub is_error: bool,
    /// Set if the result may have links to resources.
    pub has_links: bool,
}

/// The member `resultType` of a result. Offsets count from the beginning of the result; a message is at most 16 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TypeMark {
    start: u32,
    end: u32,
    is_complete: bool,
}

impl ResultMarks {
    /// Finds the marks of a result that was not scanned as part of a message.
    pub fn of(result: &RawJson) -> Self {
        let mut scanner = Scanner::new(result.as_bytes());
        Self::scan(&mut scanner, 0, 1).map_or_else(|_| Self::default(), |(_, marks)| marks)
    }

    /// Goes past the object at `start`, with `depth` containers around its values. Returns where it ends.
    pub(super) fn scan(
        scanner: &mut Scanner<'_>,
        start: usize,
        depth: usize,
    ) -> Result<(usize, Self), ScanFault> {
        let mut marks = Self::default();
        let mut is_error = None;
        let end = walk_members(scanner, start, |scanner, key, at| {
            // A key that is written with escapes is the same key. Only such a key costs an allocation.
            let mark = match key.plain() {
                Some(key) => Marked::named(key),
                None => Marked::named(&key.bytes()),
            };
            let end = if mark == Some(Marked::Content) && scanner.peek(at) == b'[' {
                marks.scan_content(scanner, at, depth + 1)?
            } else {
                scanner.value(at, depth)?
            };
            let value = &scanner.bytes()[at..end];
            match mark {
                Some(Marked::ResultType) => {
                    // Always fits: a message is at most 16 MiB.
                    let offset = |at: usize| u32::try_from(at - start).unwrap_or(u32::MAX);
                    let mark = TypeMark {
                        start: offset(key.at),
                        end: offset(end),
                        is_complete: value == COMPLETE,
                    };
                    match &mut marks.result_type {
                        // The first counts, and a result that has two is examined more closely.
                        Some(first) => first.is_complete = false,
                        None => marks.result_type = Some(mark),
                    }
                }
                // The first counts, as everywhere.
                Some(Marked::IsError) => {
                    is_error.get_or_insert(value == b"true");
                }
                Some(Marked::Content) | None => {}
            }
            Ok(end)
        })?;
        marks.is_error = is_error.unwrap_or_default();
        Ok((end, marks))
    }

    /// Goes past the content at `start`, with `depth` containers around its items. Looking for links here costs less than a search
    /// of the whole text.
    fn scan_content(
        &mut self,
        scanner: &mut Scanner<'_>,
        start: usize,
        depth: usize,
    ) -> Result<usize, ScanFault> {
        walk_elements(scanner, start, |scanner, at| {
            if scanner.peek(at) != b'{' {
                return scanner.value(at, depth);
            }
            walk_members(scanner, at, |scanner, key, at| {
                let end = scanner.value(at, depth + 1)?;
                // What is written with escapes may mean a link.
                self.has_links |= match key.plain() {
                    Some(b"type") => {
                        let value = &scanner.bytes()[at..end];
                        value == RESOURCE_LINK || value.contains(&b'\\')
                    }
                    Some(_) => false,
                    None => true,
                };
                Ok(end)
            })
        })
    }

    /// Returns whether the result is the answer: it says so, or says nothing.
    pub fn is_complete(self) -> bool {
        self.result_type.is_none_or(|mark| mark.is_complete)
    }

    /// Returns the result with a `resultType`, which is put in front if there is none.
    pub fn with_type(self, result: RawJson) -> Spliced {
        if self.result_type.is_some() {
            return Spliced::from(result);
        }
        let mut rest = result.into_bytes();
        // The type goes in front, so that only the opening brace is replaced and a large result is not copied.
        rest.advance(1);
        match rest[blanks(&rest)] {
            b'}' => Spliced::new(br#"{"resultType":"complete""#, rest),
            _ => Spliced::new(br#"{"resultType":"complete","#, rest),
        }
    }

    /// Returns the result without its `resultType`.
    pub fn without_type(self, result: RawJson) -> Spliced {
        let Some(mark) = self.result_type else {
            return Spliced::from(result);
        };
        let bytes = result.as_bytes();
        let (before, after) = (&bytes[..mark.start as usize], mark.end as usize);
        let rest = after + blanks(&bytes[after..]);
        if bytes.get(rest) == Some(&b',') {
            let rest = bytes.slice(rest + 1..);
            // Most servers write it first, and then nothing in front of it has to be copied.
            return match before {
                b"{" => Spliced::new(b"{", rest),
                _ => Spliced::joined(before, rest),
            };
        }
        // The last member: the comma in front of it goes, if there is one.
        let kept = before.trim_ascii_end();
        Spliced::joined(
            kept.strip_suffix(b",").unwrap_or(kept),
            bytes.slice(after..),
        )
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.len() - bytes.trim_ascii_start().len()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_result_type_is_added_in_front_and_removed_anywhere() {
        let cases = [
            ("{}", r#"{"resultType":"complete"}"#, "{}"),
            ("{ }", r#"{"resultType":"complete" }"#, "{ }"),
            (
                r#"{"a":1}"#,
                r#"{"resultType":"complete","a":1}"#,
                r#"{"a":1}"#,
            ),
            (
                r#"{"resultType":"complete"}"#,
                r#"{"resultType":"complete"}"#,
                "{}",
            ),
            (
                r#"{"resultType":"complete","a":[1]}"#,
                r#"{"resultType":"complete","a":[1]}"#,
                r#"{"a":[1]}"#,
            ),
            (
                r#"{"a":{}, "resultType" : "complete" }"#,
                r#"{"a":{}, "resultType" : "complete" }"#,
                r#"{"a":{} }"#,
            ),
            (
                r#"{"a":1,"resultType":"x" , "b":2}"#,
                r#"{"a":1,"resultType":"x" , "b":2}"#,
                r#"{"a":1, "b":2}"#,
            ),
            (
                r#"{"a":1,"resultT\u0079pe":"x"}"#,
                r#"{"a":1,"resultT\u0079pe":"x"}"#,
                r#"{"a":1}"#,
            ),
        ];
        for (result, with, without) in cases {
            let result = json(result);
            let marks = ResultMarks::of(&result);
            let typed = marks.with_type(result.clone()).to_json();
            assert_eq!(typed, json(with), "{result:?}");
            let untyped = marks.without_type(result.clone()).to_json();
            assert_eq!(untyped, json(without), "{result:?}");
        }
    }

    #[test]
    fn a_result_without_a_type_is_complete() {
        for (result, is_complete, is_error) in [
            ("{}", true, false),
            (r#"{"resultType":"complete","isError":true}"#, true, true),
            (
                r#"{"isError":false,"resultType":"input_required"}"#,
                false,
                false,
            ),
            (r#"{"x":{"resultType":"task","isError":true}}"#, true, false),
            (
                r#"{"resultType":"complete","resultType":"task"}"#,
                false,
                false,
            ),
        ] {
            let marks = ResultMarks::of(&json(result));
            assert_eq!(
                (marks.is_complete(), marks.is_error),
                (is_complete, is_error),
                "{result}"
            );
        }
    }

    #[test]
    fn links_are_found_in_the_items_of_the_content_only() {
        for (result, has_links) in [
            ("{}", false),
            (r#"{"content":[]}"#, false),
            (r#"{"content":"resource_link"}"#, false),
            (
                r#"{"content":[{"type":"text","text":"resource_link"}, 1]}"#,
                false,
            ),
            (
                r#"{"content":[{"type":"text"},{"uri":"a","type" : "resource_link"}]}"#,
                true,
            ),
            (r#"{"content":[{"type":"resource\u005flink"}]}"#, true),
            (r#"{"content":[{"typ\u0065":"resource_link"}]}"#, true),
            (r#"{"conten\u0074":[{"type":"resource_link"}]}"#, true),
            (
                r#"{"structuredContent":{"content":[{"type":"resource_link"}]}}"#,
                false,
            ),
        ] {
            let marks = ResultMarks::of(&json(result));
            assert_eq!(marks.has_links, has_links, "{result}");
        }
    }
}
