//! JSON-RPC messages, read without building a value: the envelope's members are found in the one
//! pass that also checks the whole text.

use bytes::Bytes;
use thiserror::Error;

use super::{
    json::{Key, Kind, RawJson, walk_members},
    scan::{Flaws, ScanError, Scanner},
};

/// A message of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

/// A message that wants an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The sender's id for it.
    pub id: RequestId,
    /// What is asked for.
    pub method: String,
    /// Its parameters.
    pub params: Option<RawJson>,
}

/// A message that wants no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What is said.
    pub method: String,
    /// Its parameters.
    pub params: Option<RawJson>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the request; errors about unreadable messages have none.
    pub id: Option<RequestId>,
    /// What was answered.
    pub answer: Answer,
}

/// What a response holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The `result`.
    Result(RawJson),
    /// The `error`.
    Error(RawJson),
    /// Both or neither, or a result that is no object: against the protocol.
    Invalid,
}

/// A string or number, exactly as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(RawJson);

impl RequestId {
    /// Takes a value as an id, if it may be one.
    pub fn from_json(value: RawJson) -> Option<Self> {
        matches!(value.kind(), Kind::String | Kind::Number).then_some(Self(value))
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &RawJson {
        &self.0
    }

    /// The id as a plain number, if it is written as one of ours would be.
    pub fn as_u64(&self) -> Option<u64> {
        self.0.as_str().parse().ok()
    }
}

/// Why a frame is no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// It is no JSON.
    #[error(transparent)]
    NotJson(#[from] ScanError),
    /// It is JSON, but no message.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
}

/// JSON that is no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{fault}")]
pub struct InvalidMessage {
    /// The id of the message, where it has one.
    pub id: Option<RequestId>,
    /// What is wrong with it.
    pub fault: MessageFault,
}

/// What keeps a JSON value from being a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageFault {
    /// Another type of value.
    #[error("a message is an object, not {}", article(*.0))]
    NotAnObject(Kind),
    /// A member of the envelope stands twice.
    #[error("the envelope has a member twice")]
    DoubledMember,
    /// `jsonrpc` is missing or another version.
    #[error("\"jsonrpc\" is not \"2.0\"")]
    Version,
    /// The id is neither string nor number.
    #[error("\"id\" is neither a string nor a number")]
    Id,
    /// The method is no string.
    #[error("\"method\" is not a string")]
    Method,
    /// Neither request, notification nor response.
    #[error("neither \"method\" nor \"result\" nor \"error\" is there")]
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

/// The members of an envelope as they were found.
#[derive(Default)]
pub(super) struct Envelope {
    jsonrpc: Option<RawJson>,
    id: Option<RawJson>,
    method: Option<RawJson>,
    params: Option<RawJson>,
    result: Option<RawJson>,
    error: Option<RawJson>,
    doubled: bool,
}

impl Message {
    /// Reads one message; text that is broken inside strings is refused.
    pub fn parse(frame: &Bytes) -> Result<Self, ParseError> {
        if let Err(error) = std::str::from_utf8(frame) {
            return Err(ScanError::Syntax(error.valid_up_to()).into());
        }
        let scanned = Envelope::scan(frame)?;
        if scanned.flaws.raw_control {
            return Err(ScanError::Syntax(0).into());
        }
        Ok(scanned.envelope.into_message()?)
    }
}

fn not_an_object(frame: &Bytes) -> Result<InvalidMessage, ScanError> {
    let value = RawJson::parse(frame)?;
    Ok(InvalidMessage {
        id: None,
        fault: MessageFault::NotAnObject(value.kind()),
    })
}

/// A message that has been looked at.
pub(super) struct Scanned {
    pub(super) envelope: Envelope,
    /// What in its text could be mended.
    pub(super) flaws: Flaws,
    /// Whether there are line ends between its tokens.
    pub(super) has_line_ends: bool,
}

impl Envelope {
    /// Reads the members of one message, which is valid UTF-8.
    pub(super) fn scan(frame: &Bytes) -> Result<Scanned, ParseError> {
        let mut scanner = Scanner::new(frame);
        scanner.skip_whitespace();
        if scanner.peek() != Some(b'{') {
            return Err(not_an_object(frame)?.into());
        }
        let mut envelope = Self::default();
        walk_members(&mut scanner, |key, value| {
            if let Some(slot) = envelope.slot(key) {
                let value = RawJson::trusted(frame.slice(value));
                let is_doubled = slot.replace(value).is_some();
                envelope.doubled |= is_doubled;
            }
        })?;
        scanner.skip_whitespace();
        if scanner.position() < frame.len() {
            return Err(ScanError::Syntax(scanner.position()).into());
        }
        Ok(Scanned {
            envelope,
            flaws: scanner.flaws,
            has_line_ends: scanner.has_line_ends,
        })
    }

    /// Where the value of a key belongs.
    fn slot(&mut self, key: Key<'_>) -> Option<&mut Option<RawJson>> {
        match &*key.bytes() {
            b"jsonrpc" => Some(&mut self.jsonrpc),
            b"id" => Some(&mut self.id),
            b"method" => Some(&mut self.method),
            b"params" => Some(&mut self.params),
            b"result" => Some(&mut self.result),
            b"error" => Some(&mut self.error),
            _ => None,
        }
    }

    pub(super) fn into_message(self) -> Result<Message, InvalidMessage> {
        let id = self.id.clone().and_then(RequestId::from_json);
        match self.check(id.as_ref()) {
            Ok(message) => Ok(message),
            Err(fault) => Err(InvalidMessage { id, fault }),
        }
    }

    fn check(self, id: Option<&RequestId>) -> Result<Message, MessageFault> {
        if self.doubled {
            return Err(MessageFault::DoubledMember);
        }
        if self
            .jsonrpc
            .is_none_or(|version| version.as_str() != "\"2.0\"")
        {
            return Err(MessageFault::Version);
        }
        let Some(method) = self.method else {
            if self.result.is_none() && self.error.is_none() {
                return Err(MessageFault::Shape);
            }
            return Ok(Message::Response(Response {
                id: id.cloned(),
                answer: answer(self.result, self.error),
            }));
        };
        let method = method.as_text().ok_or(MessageFault::Method)?.into_owned();
        let params = self.params;
        if params
            .as_ref()
            .is_some_and(|it| !matches!(it.kind(), Kind::Object | Kind::Array))
        {
            return Err(MessageFault::Params);
        }
        match (self.id, id) {
            (None, _) => Ok(Message::Notification(Notification { method, params })),
            (Some(_), None) => Err(MessageFault::Id),
            (Some(_), Some(id)) => Ok(Message::Request(Request {
                id: id.clone(),
                method,
                params,
            })),
        }
    }
}

fn answer(result: Option<RawJson>, error: Option<RawJson>) -> Answer {
    match (result, error) {
        (Some(result), None) if result.kind() == Kind::Object => Answer::Result(result),
        (None, Some(error)) if error.kind() == Kind::Object => Answer::Error(error),
        _ => Answer::Invalid,
    }
}
