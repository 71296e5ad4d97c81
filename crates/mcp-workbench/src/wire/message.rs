//! JSON-RPC messages, read without building a value: the envelope's members are found in the one
//! pass that also checks the whole text.

use std::borrow::Cow;

use bytes::Bytes;
use rawjson::{Flaws, Key, Kind, RawJson, ScanError, Scanner, Span, unescape, walk_members};
use thiserror::Error;

use super::{marks::ResultMarks, outline::CallOutline};

/// A message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Request(Request),
    /// A message that wants no answer.
    Notification(Notification),
    Response(Response),
}

/// A message that wants an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The sender's id for it.
    pub id: RequestId,
    pub method: Cow<'static, str>,
    pub params: Option<RawJson>,
}

/// A message that wants no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub method: Cow<'static, str>,
    pub params: Option<RawJson>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the request; errors about unreadable messages have none.
    pub id: Option<RequestId>,
    pub answer: Answer,
    /// The members of a result that decide what becomes of it.
    pub marks: ResultMarks,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Result(RawJson),
    Error(RawJson),
    /// Both or neither, or a result that is not an object, against the protocol.
    Invalid,
}

/// A string or number, exactly as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(IdText);

/// The longest id that is stored in place: a quoted UUID.
const MAX_SHORT_ID: usize = 38;

/// The text of an id. A short one is a copy: a span would keep the whole message in memory for as long as the request
/// runs, and costs more than these few bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum IdText {
    /// The bytes beyond `length` are zero, so that equal ids are equal values.
    Short {
        length: u8,
        text: [u8; MAX_SHORT_ID],
    },
    Long(RawJson),
}

impl IdText {
    fn short(id: &[u8]) -> Option<Self> {
        let mut text = [0; MAX_SHORT_ID];
        text.get_mut(..id.len())?.copy_from_slice(id);
        let length = u8::try_from(id.len()).ok()?;
        Some(Self::Short { length, text })
    }
}

impl RequestId {
    /// Takes a value as an id, if it may be one.
    pub fn from_json(value: RawJson) -> Option<Self> {
        if !matches!(value.kind(), Kind::String | Kind::Number) {
            return None;
        }
        Some(Self(match IdText::short(value.as_bytes()) {
            Some(short) => short,
            None => IdText::Long(value),
        }))
    }

    /// Takes a value in a checked frame as an id, if it may be one.
    fn in_frame(frame: &Bytes, span: Span) -> Option<Self> {
        let is_id = matches!(frame[span.start], b'"' | b'-' | b'0'..=b'9');
        is_id.then(|| {
            let short = IdText::short(&frame[span.clone()]);
            Self(short.unwrap_or_else(|| IdText::Long(RawJson::trusted(frame.slice(span)))))
        })
    }

    /// Returns the id as a JSON value.
    pub fn to_json(&self) -> RawJson {
        match &self.0 {
            IdText::Short { .. } => RawJson::trusted(Bytes::copy_from_slice(self.as_bytes())),
            IdText::Long(json) => json.clone(),
        }
    }

    /// Returns the id as JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            IdText::Short { length, text } => &text[..usize::from(*length)],
            IdText::Long(json) => json.as_bytes(),
        }
    }

    /// Returns the id as a number, if it is written as one of our ids.
    pub fn as_u64(&self) -> Option<u64> {
        let mut number = 0_u64;
        for byte in self.as_bytes() {
            // A quote, a sign, a point or an exponent wraps to more than 9. Our ids have none of them.
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number.checked_mul(10)?.checked_add(digit.into())?;
        }
        Some(number)
    }
}

/// A reason why a frame is not a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    #[error(transparent)]
    NotJson(#[from] ScanError),
    /// It is JSON, but no message.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
}

/// JSON that is not a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{fault}")]
pub struct InvalidMessage {
    /// The id of the message, where it has one.
    pub id: Option<RequestId>,
    pub fault: MessageFault,
}

/// A reason why a JSON value is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageFault {
    #[error("a message must be an object, not {}", article(*.0))]
    NotAnObject(Kind),
    #[error("duplicate member in the envelope")]
    DuplicateMember,
    #[error("\"jsonrpc\" is not \"2.0\"")]
    Version,
    /// The id is neither string nor number.
    #[error("\"id\" is neither a string nor a number")]
    Id,
    #[error("\"method\" is not a string")]
    Method,
    /// Neither request, notification nor response.
    #[error("\"method\", \"result\" and \"error\" are all missing")]
    Shape,
    /// The parameters are neither object nor array.
    #[error("\"params\" is neither an object nor an array")]
    Params,
}

fn article(kind: Kind) -> String {
    let article = match kind {
        Kind::Array | Kind::Object => "an ",
        Kind::Null => "",
        _ => "a ",
    };
    format!("{article}{}", kind.name())
}

/// The positions of the members of an envelope. Members that are not needed are never copied.
#[derive(Default)]
pub(super) struct Envelope {
    /// Start and end of each member. A message is at most 16 MiB, and no member begins at 0.
    members: [(u32, u32); Slot::Error as usize + 1],
    has_duplicates: bool,
    marks: ResultMarks,
}

/// A member of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Slot {
    /// Returns the member with a key.
    #[inline]
    fn of(key: Key<'_>) -> Option<Self> {
        match key.plain() {
            Some(key) => Self::named(key),
            None => Self::named(&key.bytes()),
        }
    }

    #[inline]
    fn named(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }
}

/// The methods that almost all messages have: these need no text of their own.
const USUAL_METHODS: [&str; 2] = ["tools/call", "notifications/progress"];

impl Message {
    /// Reads one message; text that is broken inside strings is refused.
    pub fn parse(frame: &Bytes) -> Result<Self, ParseError> {
        let scanned = Envelope::scan(frame, None)?;
        scanned.unflawed(frame)
    }

    /// Reads one message, and the outline of its parameters.
    pub fn parse_outlined(frame: &Bytes, outline: &mut CallOutline) -> Result<Self, ParseError> {
        let scanned = Envelope::scan(frame, Some(outline))?;
        scanned.unflawed(frame)
    }

    /// Parses a line, which may have carriage returns between its tokens. Some readers take them for line ends, so
    /// white space is removed then.
    pub fn parse_line(frame: &Bytes, outline: &mut CallOutline) -> Result<Self, ParseError> {
        let scanned = Envelope::scan(frame, Some(outline))?;
        if scanned.has_line_ends && scanned.utf8.is_ok() && !scanned.flaws.raw_control {
            let value = RawJson::trusted(frame.clone());
            return Self::parse_outlined(value.minified().as_bytes(), outline);
        }
        scanned.unflawed(frame)
    }
}

fn not_an_object(frame: &Bytes) -> Result<InvalidMessage, ScanError> {
    let value = RawJson::parse(frame)?;
    Ok(InvalidMessage {
        id: None,
        fault: MessageFault::NotAnObject(value.kind()),
    })
}

pub(super) struct Scanned {
    pub(super) envelope: Envelope,
    /// The repairable flaws of its text.
    pub(super) flaws: Flaws,
    /// True if there are line ends between its tokens.
    pub(super) has_line_ends: bool,
    /// The check for valid UTF-8.
    pub(super) utf8: Result<(), ScanError>,
}

impl Scanned {
    /// Returns the message, unless its text is broken inside strings.
    fn unflawed(self, frame: &Bytes) -> Result<Message, ParseError> {
        self.utf8?;
        if self.flaws.raw_control {
            // The scanner records that there is a raw control character, but not where.
            return Err(ScanError::Syntax(0).into());
        }
        Ok(self.envelope.into_message(frame)?)
    }
}

impl Envelope {
    /// Reads the members of one message.
    pub(super) fn scan(
        frame: &Bytes,
        outline: Option<&mut CallOutline>,
    ) -> Result<Scanned, ParseError> {
        Self::scan_with(Scanner::new(frame), frame, outline)
    }

    /// Does the same as [`Self::scan`] with a scanner of the frame.
    pub(super) fn scan_with(
        mut scanner: Scanner<'_>,
        frame: &Bytes,
        mut outline: Option<&mut CallOutline>,
    ) -> Result<Scanned, ParseError> {
        let start = scanner.blanks(0);
        if scanner.peek(start) != b'{' {
            return Err(not_an_object(frame)?.into());
        }
        let mut envelope = Self::default();
        let walked = walk_members(&mut scanner, start, |scanner, key, at| {
            let slot = Slot::of(key);
            let is_object = scanner.peek(at) == b'{';
            let end = match (slot, &mut outline) {
                // In the same pass, because another one over a large result would double the cost of relaying it.
                (Some(Slot::Result), _) if is_object => {
                    let (end, marks) = ResultMarks::scan(scanner, at, 2)?;
                    envelope.marks = marks;
                    end
                }
                (Some(Slot::Params), Some(outline)) if is_object => outline.scan(scanner, at)?,
                _ => scanner.value(at, 1)?,
            };
            if let Some(slot) = slot {
                let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
                // Readers differ in which of two members they use, so a duplicate is refused later, with the id if there is one.
                envelope.has_duplicates |= envelope.get(slot).is_some();
                envelope.members[slot as usize] = (offset(at), offset(end));
            }
            Ok(end)
        });
        let rest = scanner.blanks(walked.map_err(ScanError::from)?);
        if rest < frame.len() {
            return Err(ScanError::Syntax(rest).into());
        }
        Ok(Scanned {
            envelope,
            flaws: scanner.flaws,
            has_line_ends: scanner.has_line_ends,
            utf8: scanner.check_utf8(),
        })
    }

    /// Returns the place of a member.
    fn get(&self, slot: Slot) -> Option<Span> {
        let (start, end) = self.members[slot as usize];
        (start != 0).then_some(start as usize..end as usize)
    }

    /// Returns the message, if it is one, from the frame that was scanned.
    pub(super) fn into_message(self, frame: &Bytes) -> Result<Message, InvalidMessage> {
        // The scan has checked the whole frame, so its parts are valid.
        let value = |span: Span| RawJson::trusted(frame.slice(span));
        let id = self.get(Slot::Id);
        let id = id.and_then(|span| RequestId::in_frame(frame, span));
        if let Err(fault) = self.check(frame, id.as_ref()) {
            return Err(InvalidMessage { id, fault });
        }
        let Some(method) = self.get(Slot::Method) else {
            let [result, error] = [Slot::Result, Slot::Error].map(|it| self.get(it).map(value));
            let answer = answer(result, error);
            let marks = self.marks;
            return Ok(Message::Response(Response { id, answer, marks }));
        };
        let method = method_name(&frame[method]);
        let params = self.get(Slot::Params).map(value);
        Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        })
    }

    /// Checks that the members make a message. `id` is its id, if it is valid.
    fn check(&self, frame: &Bytes, id: Option<&RequestId>) -> Result<(), MessageFault> {
        let text = |slot| self.get(slot).map(|span| &frame[span]);
        let has = |slot| self.get(slot).is_some();
        // First, because every other check sees only one of the duplicates.
        if self.has_duplicates {
            return Err(MessageFault::DuplicateMember);
        }
        if text(Slot::Jsonrpc) != Some(br#""2.0""#) {
            return Err(MessageFault::Version);
        }
        let Some(method) = text(Slot::Method) else {
            let has_answer = has(Slot::Result) || has(Slot::Error);
            return has_answer.then_some(()).ok_or(MessageFault::Shape);
        };
        if !method.starts_with(b"\"") {
            return Err(MessageFault::Method);
        }
        if text(Slot::Params).is_some_and(|it| !matches!(it.first(), Some(b'{' | b'['))) {
            return Err(MessageFault::Params);
        }
        if has(Slot::Id) && id.is_none() {
            return Err(MessageFault::Id);
        }
        Ok(())
    }
}

/// Returns the name of a method from its quoted form.
fn method_name(quoted: &[u8]) -> Cow<'static, str> {
    let inner = &quoted[1..quoted.len() - 1];
    let usual = USUAL_METHODS
        .into_iter()
        .find(|usual| usual.as_bytes() == inner);
    match usual {
        Some(usual) => Cow::Borrowed(usual),
        None => Cow::Owned(unescape(quoted).into_owned()),
    }
}

fn answer(result: Option<RawJson>, error: Option<RawJson>) -> Answer {
    match (result, error) {
        (Some(result), None) if result.kind() == Kind::Object => Answer::Result(result),
        (None, Some(error)) if error.kind() == Kind::Object => Answer::Error(error),
        _ => Answer::Invalid,
    }
}
