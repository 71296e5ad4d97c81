//! The head of an answer: its status, its fields, and how its body ends. What leaves that open is refused, so that no
//! two answers on one connection can be taken for each other.

use std::{mem::MaybeUninit, ops::Range};

use hyper::{
    StatusCode,
    header::{HeaderName, HeaderValue},
};

use super::lane::LaneError;

/// How long a head may be, and how many fields it may have.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_FIELDS: usize = 100;

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) fields: Fields,
    pub(super) ending: Ending,
    /// Whether the connection can be used again after it.
    pub(super) persists: bool,
}

/// How the body of an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// After so many bytes.
    Length(u64),
    /// With a chunk of nothing.
    Chunks,
    Close,
}

/// The fields of a head, as they came.
#[derive(Debug, Default)]
pub(super) struct Fields {
    text: Vec<u8>,
    /// Where names and values stand in the text.
    places: Vec<(Range<usize>, Range<usize>)>,
}

impl Fields {
    /// The first value under a name.
    pub(super) fn get(&self, name: &HeaderName) -> Option<HeaderValue> {
        HeaderValue::from_bytes(self.values(name).next()?).ok()
    }

    /// The same, if it is text.
    pub(super) fn text(&self, name: &HeaderName) -> Option<&str> {
        self.values(name).next().and_then(text)
    }

    /// All values under a name that are text.
    pub(super) fn all(&self, name: &HeaderName) -> impl Iterator<Item = &str> {
        self.values(name).filter_map(text)
    }

    fn values<'a>(&'a self, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
        let name = name.as_str().as_bytes();
        let places = self.places.iter();
        let places = places.filter(|(it, _)| self.text[it.clone()].eq_ignore_ascii_case(name));
        places.map(|(_, value)| &self.text[value.clone()])
    }
}

/// A value, if it is text.
fn text(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let plain = |byte| byte == b'\t' || (b' '..=b'~').contains(&byte);
    text.bytes().all(plain).then_some(text)
}

/// Reads the head at the beginning of `bytes`, and says how long it is; nothing if it is not complete. Heads that only
/// announce another one count as part of it.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, LaneError> {
    let mut before = 0;
    loop {
        let Some((head, length)) = read_one(&bytes[before..])? else {
            let too_long = bytes.len() > MAX_HEAD_BYTES;
            return if too_long {
                Err(LaneError::LongHead)
            } else {
                Ok(None)
            };
        };
        before += length;
        if before > MAX_HEAD_BYTES {
            return Err(LaneError::LongHead);
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(LaneError::Unclear(
                "another protocol, which nobody asked for",
            ));
        }
        if !head.status.is_informational() {
            return Ok(Some((head, before)));
        }
    }
}

fn read_one(bytes: &[u8]) -> Result<Option<(Head, usize)>, LaneError> {
    let mut found = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut found)?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let status = response
        .code
        .and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(LaneError::Unclear("its status"))?;
    let is_current = response.version == Some(1);
    let mut framing = Framing::default();
    for field in &*response.headers {
        framing.take(field)?;
    }
    let ending = framing.ending(status, is_current)?;
    let start = bytes.as_ptr().addr();
    let place = |part: &[u8]| {
        let begin = part.as_ptr().addr() - start;
        begin..begin + part.len()
    };
    let places = response.headers.iter();
    let places = places.map(|it| (place(it.name.as_bytes()), place(it.value)));
    let fields = Fields {
        places: places.collect(),
        text: bytes[..length].to_vec(),
    };
    let persists = is_current && !framing.closes && ending != Ending::Close;
    let head = Head {
        status,
        fields,
        ending,
        persists,
    };
    Ok(Some((head, length)))
}

/// What the fields of a head say about its body.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    /// Whether the body is in some coding for the way, and whether the last one is chunks.
    coded: Option<bool>,
    closes: bool,
}

impl Framing {
    fn take(&mut self, field: &httparse::Header<'_>) -> Result<(), LaneError> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let length = length(field.value).ok_or(LaneError::Unclear("its length"))?;
            if self.length.is_some_and(|before| before != length) {
                return Err(LaneError::Unclear("its length, which it says twice"));
            }
            self.length = Some(length);
        } else if is("transfer-encoding") {
            let last = field.value.rsplit(|byte| *byte == b',').next();
            let last = last.unwrap_or_default().trim_ascii();
            self.coded = Some(last.eq_ignore_ascii_case(b"chunked"));
        } else if is("connection") {
            let mut words = field.value.split(|byte| *byte == b',');
            self.closes |= words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"));
        }
        Ok(())
    }

    fn ending(&mut self, status: StatusCode, is_current: bool) -> Result<Ending, LaneError> {
        let bare = status.is_informational()
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        // Who says both may mean either, and is not asked anything more on this connection.
        self.closes |= self.coded.is_some() && self.length.is_some();
        match (self.coded, self.length) {
            _ if bare => Ok(Ending::Length(0)),
            (Some(_), _) if !is_current => Err(LaneError::Unclear("its coding")),
            (Some(true), _) => Ok(Ending::Chunks),
            (Some(false), _) | (None, None) => Ok(Ending::Close),
            (None, Some(length)) => Ok(Ending::Length(length)),
        }
    }
}

/// A length, which is digits and nothing else.
fn length(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::CONTENT_TYPE;
    use pretty_assertions::assert_eq;

    use super::*;

    /// What a head comes to: its status, how its body ends, and whether the connection stays.
    fn outline(text: &str) -> String {
        let text = text.replace('\n', "\r\n") + "\r\n\r\n";
        for end in 0..text.len() {
            let part = read(&text.as_bytes()[..end]);
            assert!(matches!(part, Ok(None) | Err(_)), "{end} of {text:?}");
        }
        match read(&[text.as_bytes(), b"more"].concat()) {
            Ok(Some((head, length))) => {
                assert_eq!(length, text.len());
                let stays = if head.persists { "stays" } else { "goes" };
                format!("{} {:?} {stays}", head.status.as_u16(), head.ending)
            }
            Ok(None) => "incomplete".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn how_a_body_ends_is_clear_or_the_answer_is_refused() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\nContent-Length: 5", "200 Length(5) stays"),
            (
                "HTTP/1.1 200 OK\nContent-Length: 5\ncontent-length: 5",
                "200 Length(5) stays",
            ),
            (
                "HTTP/1.1 200 OK\nContent-Length: 5\nConnection: x, Close",
                "200 Length(5) goes",
            ),
            ("HTTP/1.0 200 OK\nContent-Length: 5", "200 Length(5) goes"),
            (
                "HTTP/1.1 200 OK\nTransfer-Encoding: chunked",
                "200 Chunks stays",
            ),
            (
                "HTTP/1.1 200 OK\nTransfer-Encoding: gzip, Chunked",
                "200 Chunks stays",
            ),
            (
                "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Length: 5",
                "200 Chunks goes",
            ),
            ("HTTP/1.1 200 OK\nTransfer-Encoding: gzip", "200 Close goes"),
            ("HTTP/1.1 200 OK\nX: y", "200 Close goes"),
            (
                "HTTP/1.1 204 No Content\nContent-Length: 5",
                "204 Length(0) stays",
            ),
            (
                "HTTP/1.1 100 Continue\n\nHTTP/1.1 202 A\nContent-Length: 0",
                "202 Length(0) stays",
            ),
            (
                "HTTP/1.1 101 Switching\nUpgrade: x",
                "the answer is not clear about another protocol, which nobody asked for",
            ),
            (
                "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6",
                "the answer is not clear about its length, which it says twice",
            ),
            (
                "HTTP/1.1 200 OK\nContent-Length: 5, 5",
                "the answer is not clear about its length",
            ),
            (
                "HTTP/1.1 200 OK\nContent-Length: +5",
                "the answer is not clear about its length",
            ),
            (
                "HTTP/1.1 200 OK\nContent-Length: 99999999999999999999",
                "the answer is not clear about its length",
            ),
            (
                "HTTP/1.0 200 OK\nTransfer-Encoding: chunked",
                "the answer is not clear about its coding",
            ),
            ("HTTP/1.1 200 OK\nContent-Length : 5", "invalid header name"),
            ("SSH-2.0-server", "invalid HTTP version"),
        ] {
            assert_eq!(outline(head), expected, "{head:?}");
        }
    }

    #[test]
    fn a_head_has_bounds() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_HEAD_BYTES));
        assert!(matches!(read(long.as_bytes()), Err(LaneError::LongHead)));
        let whole = format!("{long}\r\n\r\n");
        assert!(matches!(read(whole.as_bytes()), Err(LaneError::LongHead)));
        let announced = "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_HEAD_BYTES / 20);
        assert!(matches!(
            read(announced.as_bytes()),
            Err(LaneError::LongHead)
        ));
        let many = format!("HTTP/1.1 200 OK\n{}", "X: y\n".repeat(MAX_FIELDS + 1));
        assert_eq!(outline(many.trim_end()), "too many headers");
    }

    #[test]
    fn a_field_is_found_by_its_name() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-TYPE: a/b \r\nContent-Type: c\r\nX: \xe9\r\n\r\n";
        let (head, _) = read(head).unwrap().unwrap();
        assert_eq!(head.fields.text(&CONTENT_TYPE), Some("a/b"));
        assert_eq!(head.fields.get(&CONTENT_TYPE).unwrap(), "a/b");
        let all: Vec<&str> = head.fields.all(&CONTENT_TYPE).collect();
        assert_eq!(all, ["a/b", "c"]);
        let strange = HeaderName::from_static("x");
        assert_eq!(head.fields.text(&strange), None);
        assert_eq!(head.fields.all(&strange).next(), None);
        assert_eq!(head.fields.get(&strange).unwrap().as_bytes(), b"\xe9");
        assert_eq!(head.fields.get(&HeaderName::from_static("y")), None);
    }
}
