//! Parses server-sent events, however the bytes are chunked: line ends of all three kinds, data of several lines,
//! comments, ids and reconnection times. An event over the limit ends the stream.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// Its type; empty if the server named none, which means `message`.
    pub name: String,
    /// Its data, lines joined by line feeds.
    pub data: Bytes,
}

/// An event is larger than a message may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an event is larger than {limit} bytes")]
pub(crate) struct EventTooLarge {
    pub limit: usize,
}

/// Splits a stream of bytes into events.
#[derive(Debug)]
pub(crate) struct EventParser {
    buffer: BytesMut,
    /// The bytes at the start of the buffer that are known to hold no line end.
    searched: usize,
    /// True if a line feed at the start of the buffer belongs to the previous line end.
    after_return: bool,
    at_start: bool,
    event: PartialEvent,
    last_id: Option<String>,
    retry: Option<Duration>,
    limit: usize,
}

/// The part of an event that has arrived.
#[derive(Debug, Default)]
struct PartialEvent {
    name: String,
    data: Option<Bytes>,
    id: Option<String>,
}

impl EventParser {
    /// Creates a parser for events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            at_start: true,
            event: PartialEvent::default(),
            last_id: None,
            retry: None,
            limit,
        }
    }

    /// Adds received bytes, which may end in the middle of an event.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete event with data.
    pub(crate) fn next_event(&mut self) -> Result<Option<StreamEvent>, EventTooLarge> {
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.take_line(&line);
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
            // The limit is for an event. Many short lines can exceed it without any line that is too long.
            self.check_size(0)?;
        }
        self.check_size(self.buffer.len())?;
        Ok(None)
    }

    /// Returns the id of the last complete event.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the reconnection delay that the server asks for.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Refuses an event if its data and its unfinished line are too large together.
    fn check_size(&self, unfinished_line: usize) -> Result<(), EventTooLarge> {
        let data = self.event.data.as_ref().map_or(0, Bytes::len);
        if data + unfinished_line > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn next_line(&mut self) -> Option<Bytes> {
        // `\r\n` is one line end, and its two bytes may arrive in different chunks.
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                let _ = self.buffer.split_to(1);
                self.searched = 0;
            }
        }
        let found = memchr::memchr2(b'\r', b'\n', &self.buffer[self.searched..]);
        let Some(end) = found.map(|found| self.searched + found) else {
            self.searched = self.buffer.len();
            return None;
        };
        self.searched = 0;
        let line = self.buffer.split_to(end + 1).freeze();
        self.after_return = line[end] == b'\r';
        let mark = std::mem::take(&mut self.at_start) && line.starts_with("\u{feff}".as_bytes());
        Some(line.slice(if mark { 3 } else { 0 }..end))
    }

    fn take_line(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line);
        let (field, value) = match colon {
            Some(at) => {
                // One space behind the colon belongs to the syntax.
                let space = usize::from(line.get(at + 1) == Some(&b' '));
                (&line[..at], line.slice(at + 1 + space..))
            }
            None => (&line[..], Bytes::new()),
        };
        match field {
            b"data" => self.event.add_data(value),
            b"event" => self.event.name = String::from_utf8_lossy(&value).into_owned(),
            // The specification of server-sent events ignores an id that contains NUL.
            b"id" if !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(&value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // These are digits, so only a number that is too large fails.
                let milliseconds = String::from_utf8_lossy(&value).parse().unwrap_or(u64::MAX);
                self.retry = Some(Duration::from_millis(milliseconds));
            }
            // A comment has an empty field, and unknown fields are to be ignored.
            _ => {}
        }
    }

    /// Ends an event. Returns `None` if it has no data.
    fn dispatch(&mut self) -> Option<StreamEvent> {
        let event = std::mem::take(&mut self.event);
        // As in a browser, an event without data still sets the id, and an empty id removes it.
        if let Some(id) = event.id {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let data = event.data.filter(|data| !data.is_empty())?;
        Some(StreamEvent {
            name: event.name,
            data,
        })
    }
}

impl PartialEvent {
    fn add_data(&mut self, line: Bytes) {
        self.data = Some(match self.data.take() {
            None => line,
            Some(before) => {
                // Only the second and later lines are copied, into a growing buffer.
                let mut joined = before
                    .try_into_mut()
                    .unwrap_or_else(|before| BytesMut::from(&before[..]));
                joined.extend_from_slice(b"\n");
                joined.extend_from_slice(&line);
                joined.freeze()
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1024;

    /// Returns all events of a stream that arrives in chunks of these sizes, repeatedly.
    fn events(stream: &[u8], sizes: &[usize]) -> (Vec<(String, String)>, EventParser) {
        let mut parser = EventParser::new(LIMIT);
        let mut found = Vec::new();
        let mut rest = stream;
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at((*size).clamp(1, rest.len()));
            rest = after;
            parser.push(chunk);
            while let Some(event) = parser.next_event().unwrap() {
                let data = String::from_utf8_lossy(&event.data).into_owned();
                found.push((event.name, data));
            }
        }
        (found, parser)
    }

    fn data(stream: &str) -> Vec<String> {
        let (events, _) = events(stream.as_bytes(), &[usize::MAX]);
        events.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn events_are_separated() {
        let cases: [(&str, &[&str]); 12] = [
            ("data: a\n\n", &["a"]),
            ("data:a\n\ndata:  b\n\n", &["a", " b"]),
            ("data: a\r\n\r\ndata: b\r\r", &["a", "b"]),
            ("data: a\ndata: b\ndata\n\n", &["a\nb\n"]),
            (": a comment\n\n:\n\ndata: a\n\n", &["a"]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: a", &[]),
            ("data: a\n", &[]),
            ("data:\n\n", &[]),
            ("event: x\n\ndata: a\n\n", &["a"]),
            ("other: x\ndatax: y\ndata: a\n\n", &["a"]),
            ("data: {\"a\":\"b: c\"}\n\n\n\n", &["{\"a\":\"b: c\"}"]),
        ];
        for (stream, expected) in cases {
            assert_eq!(data(stream), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_id_counts_when_its_event_is_complete() {
        let cases: [(&str, Option<&str>); 6] = [
            ("id: 1\ndata: a\n\n", Some("1")),
            ("id: 1\n\n", Some("1")),
            ("id: 1\n\nid: 2\ndata: b\n", Some("1")),
            ("id: 1\n\nid\n\n", None),
            ("id: a\0b\n\n", None),
            ("data: a\n\n", None),
        ];
        for (stream, expected) in cases {
            let (_, parser) = events(stream.as_bytes(), &[1]);
            assert_eq!(parser.last_id(), expected, "{stream:?}");
        }
    }

    #[test]
    fn the_time_to_reconnect_is_a_number() {
        for (stream, expected) in [
            ("retry: 1500\n\n", Some(1500)),
            ("retry: soon\n\n", None),
            ("retry: -1\n\n", None),
            ("retry:\n\n", None),
        ] {
            let (_, parser) = events(stream.as_bytes(), &[3]);
            assert_eq!(parser.retry(), expected.map(Duration::from_millis));
        }
    }

    #[test]
    fn an_event_over_the_limit_ends_the_stream_before_it_is_buffered() {
        for line in ["data: 0123456789\n", "data: 0123456789"] {
            let mut parser = EventParser::new(LIMIT);
            let refused = (0..LIMIT).any(|_| {
                parser.push(line.as_bytes());
                parser.next_event().is_err()
            });
            assert!(refused, "{line:?}");
        }
        let whole = format!("data: {}\n\n", "x".repeat(LIMIT - 20));
        assert_eq!(data(&whole.repeat(5)).len(), 5);
        assert!(data(&": comment\n".repeat(LIMIT)).is_empty());
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            stream in prop::collection::vec(
                prop::sample::select(vec![
                    "data: a", "data:{\"b\":1}", "data", ": c", "id: 7", "event: e", "retry: 5",
                    "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "ü",
                ]),
                0..40,
            ),
            sizes in prop::collection::vec(1_usize..7, 1..5),
        ) {
            let stream = stream.concat();
            let (whole, parser) = events(stream.as_bytes(), &[usize::MAX]);
            let (chunked, other) = events(stream.as_bytes(), &sizes);
            prop_assert_eq!(whole, chunked);
            prop_assert_eq!(parser.last_id(), other.last_id());
            prop_assert_eq!(parser.retry(), other.retry());
        }

        #[test]
        fn no_bytes_make_it_panic(
            stream in prop::collection::vec(any::<u8>(), 0..300),
            size in 1_usize..20,
        ) {
            let _ = events(&stream, &[size]);
        }
    }
}
