//! Composes our messages around the relayed bytes.

use std::borrow::Cow;

use bytes::Bytes;
use rawjson::{ObjectText, RawJson, Spliced, write_json, write_string};

use super::{frame_text::FrameText, message::RequestId, recover::id_from_head};

/// Bodies of this size and larger are not copied into the frame.
const COPY_BELOW: usize = 16 * 1024;

/// The usual number of bytes around the relayed part of a message or object.
const USUAL_BYTES: usize = 96;

/// The beginning of every message that has an id, up to the id.
const BEGINNING: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
/// The text between the id and the body of a response.
const RESULT: &[u8] = br#","result":"#;
const ERROR: &[u8] = br#","error":"#;

/// The end of every message whose body is not copied.
pub(super) const END: &[u8] = b"}\n";

/// An outgoing message with its newline. A long body is not copied.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The whole text, or the part before the body.
    head: Vec<u8>,
    /// The body, if it is not copied. [`END`] follows it.
    body: Option<Bytes>,
    /// The code of an error response, which decides the status of an HTTP response.
    error_code: Option<i64>,
}

/// A message to send. Usual messages are written directly into the output buffer, without a frame.
#[derive(Debug)]
pub(crate) enum Outgoing<'a> {
    /// The answer to a request.
    Result {
        /// The sender's id for the request.
        id: &'a RequestId,
        /// The beginning of the result, if it differs from the received text.
        lead: &'a [u8],
        /// The result, or the rest of it.
        result: &'a Bytes,
    },
    Request {
        id: u64,
        method: &'a str,
        params: Params<'a>,
    },
    Frame(Frame),
}

impl From<Frame> for Outgoing<'_> {
    fn from(frame: Frame) -> Self {
        Self::Frame(frame)
    }
}

impl<'a> Outgoing<'a> {
    /// Creates the response to a request.
    pub(crate) fn result(id: &'a RequestId, result: &'a RawJson) -> Self {
        Self::Result {
            id,
            lead: b"",
            result: result.as_bytes(),
        }
    }

    /// Creates the response with a result in two parts.
    pub(crate) fn spliced(id: &'a RequestId, result: &'a Spliced) -> Self {
        Self::Result {
            id,
            lead: result.lead(),
            result: result.rest(),
        }
    }

    /// Returns the message as a frame.
    pub(crate) fn into_frame(self) -> Frame {
        if let Self::Frame(frame) = self {
            return frame;
        }
        let mut head = Vec::with_capacity(self.room());
        let body = self.write_to(&mut head);
        Frame {
            head,
            body,
            error_code: None,
        }
    }

    /// Appends the text, up to a body that is not copied: [`END`] must follow it.
    pub(super) fn write_to(self, text: &mut Vec<u8>) -> Option<Bytes> {
        match self {
            Self::Result { id, lead, result } => {
                begin(text, id.as_bytes(), RESULT);
                text.extend_from_slice(lead);
                splice(text, result)
            }
            Self::Request { id, method, params } => write_request(text, id, method, &params),
            Self::Frame(frame) => {
                text.extend_from_slice(&frame.head);
                frame.body
            }
        }
    }

    /// Returns about how many bytes are written.
    fn room(&self) -> usize {
        USUAL_BYTES
            + match self {
                Self::Result { id, lead, result } => {
                    id.as_bytes().len() + lead.len() + copied(result)
                }
                Self::Request { method, params, .. } => method.len() + params.copied(),
                Self::Frame(frame) => frame.head.len(),
            }
    }
}

impl Frame {
    fn spliced(mut head: Vec<u8>, body: &RawJson) -> Self {
        let body = splice(&mut head, body.as_bytes());
        Self {
            head,
            body,
            error_code: None,
        }
    }

    pub(crate) fn error_code(&self) -> Option<i64> {
        self.error_code
    }

    fn whole(text: Vec<u8>) -> Self {
        Self {
            head: text,
            body: None,
            error_code: None,
        }
    }

    pub fn batch(answers: &[Self]) -> Self {
        let mut text = vec![b'['];
        for (index, answer) in answers.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            // Each answer ends with a newline, and the batch has to be one line.
            text.extend_from_slice(answer.to_vec().trim_ascii_end());
        }
        text.extend_from_slice(b"]\n");
        Self::whole(text)
    }

    /// Returns the id of the request that this is the answer to.
    pub fn answered_id(&self) -> Option<RequestId> {
        let id = id_from_head(&self.head)?;
        // This is called only for frames that were composed here. Their members have a fixed order, so comparing
        // prefixes is enough.
        let rest = self
            .head
            .strip_prefix(BEGINNING)?
            .strip_prefix(id.as_bytes())?;
        let is_answer = rest.starts_with(RESULT) || rest.starts_with(ERROR);
        is_answer.then_some(id)
    }

    /// Returns the parts in their order. Some may be empty.
    pub fn parts(&self) -> [&[u8]; 3] {
        match &self.body {
            Some(body) => [&self.head, body, END],
            None => [&self.head, &[], &[]],
        }
    }

    /// Returns the text, sharing the body.
    pub(crate) fn to_text(&self) -> FrameText {
        let head = Bytes::copy_from_slice(&self.head);
        match &self.body {
            Some(body) => FrameText::new([head, body.clone(), Bytes::from_static(END)]),
            None => head.into(),
        }
    }

    /// Returns the text.
    pub(crate) fn into_text(self) -> FrameText {
        FrameText::new(self.into_parts())
    }

    /// Returns the parts as owned bytes.
    pub fn into_parts(self) -> [Bytes; 3] {
        let head = Bytes::from(self.head);
        match self.body {
            Some(body) => [head, body, Bytes::from_static(END)],
            None => [head, Bytes::new(), Bytes::new()],
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        let rest = self.body.as_ref().map_or(0, |body| body.len() + END.len());
        self.head.len() + rest
    }

    /// Returns false: a frame has at least its newline.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the whole text with its newline.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }
}

/// Returns the response to a request.
pub fn result(id: &RequestId, result: &RawJson) -> Frame {
    Outgoing::result(id, result).into_frame()
}

/// Returns the refusal of a request, or of an invalid frame.
pub fn error(id: Option<&RequestId>, code: i64, message: &str) -> Frame {
    let error = ObjectText::new()
        .member("code", &code)
        .member("message", message)
        .finish();
    let id: &[u8] = id.map_or(b"null", RequestId::as_bytes);
    Frame {
        error_code: Some(code),
        ..Frame::spliced(head(id, ERROR, &error), &error)
    }
}

/// Returns a refusal with the error of a server, as it was sent.
pub(crate) fn error_as_sent(id: &RequestId, error: &RawJson) -> Frame {
    let head = head(id.as_bytes(), ERROR, error);
    let code = error.member("code");
    Frame {
        // A server may send anything as its code. One that is not a number is relayed, but selects no HTTP status.
        error_code: code.and_then(|code| code.as_str().parse().ok()),
        ..Frame::spliced(head, error)
    }
}

pub fn request<'a>(id: u64, method: &'a str, params: impl Into<Params<'a>>) -> Frame {
    let params = params.into();
    Outgoing::Request { id, method, params }.into_frame()
}

/// Returns a request under an id that is not a number.
pub(crate) fn named_request(id: &RequestId, method: &str, params: &RawJson) -> Frame {
    let mut head = Vec::with_capacity(USUAL_BYTES + id.as_bytes().len());
    begin(&mut head, id.as_bytes(), br#","method":"#);
    write_string(&mut head, method);
    head.extend_from_slice(br#","params":"#);
    Frame::spliced(head, params)
}

fn write_request(text: &mut Vec<u8>, id: u64, method: &str, params: &Params<'_>) -> Option<Bytes> {
    text.extend_from_slice(BEGINNING);
    write_json(text, &id);
    text.extend_from_slice(br#","method":"#);
    write_string(text, method);
    text.extend_from_slice(br#","params":"#);
    match params {
        Params::Value(value) => splice(text, value.as_bytes()),
        Params::Tool {
            name,
            arguments,
            meta,
        } => {
            write_tool(text, name, arguments, meta);
            text.extend_from_slice(END);
            None
        }
    }
}

/// The parameters of one of our requests.
#[derive(Debug, Clone)]
pub enum Params<'a> {
    Value(Cow<'a, RawJson>),
    /// The parameters of a tool call, written directly into the message.
    Tool {
        name: &'a str,
        arguments: &'a RawJson,
        meta: MetaText<'a>,
    },
}

/// The `_meta` of a tool call, written member by member.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetaText<'a> {
    /// The workbench's own members, without braces; empty if there are none.
    pub own: &'a [u8],
    /// An object with members to relay.
    pub relayed: Option<&'a RawJson>,
    pub progress: Option<u64>,
}

impl MetaText<'_> {
    /// Returns the object, or `None` if it has no members.
    pub fn to_json(self) -> Option<RawJson> {
        let mut text = vec![b'{'];
        self.write_to(&mut text);
        text.push(b'}');
        // Made of parts that were scanned when they arrived.
        (!self.is_empty()).then(|| RawJson::trusted(text.into()))
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.relayed.is_none() && self.progress.is_none()
    }

    fn len(&self) -> usize {
        self.own.len() + self.relayed.map_or(0, |it| it.as_bytes().len())
    }

    fn write_to(&self, text: &mut Vec<u8>) {
        let start = text.len();
        text.extend_from_slice(self.own);
        if let Some(relayed) = self.relayed {
            separate(text, start);
            let members = relayed.as_bytes();
            // Without its braces: the members join those before.
            text.extend_from_slice(&members[1..members.len() - 1]);
        }
        if let Some(progress) = self.progress {
            separate(text, start);
            text.extend_from_slice(br#""progressToken":"#);
            write_json(text, &progress);
        }
    }
}

fn separate(text: &mut Vec<u8>, start: usize) {
    if text.len() > start {
        text.push(b',');
    }
}

impl<'a> From<&'a RawJson> for Params<'a> {
    fn from(value: &'a RawJson) -> Self {
        Self::Value(Cow::Borrowed(value))
    }
}

impl From<RawJson> for Params<'_> {
    fn from(value: RawJson) -> Self {
        Self::Value(Cow::Owned(value))
    }
}

impl<'a> Params<'a> {
    /// Creates the parameters of a tool call. Long arguments are copied at most once.
    pub fn tool(name: &'a str, arguments: &'a RawJson, meta: MetaText<'a>) -> Self {
        let params = Self::Tool {
            name,
            arguments,
            meta,
        };
        // Short arguments are copied into the frame, which is cheaper than a second buffer to write.
        if arguments.as_bytes().len() < COPY_BELOW {
            params
        } else {
            params.into_json().into()
        }
    }

    /// Returns the text of a member.
    pub fn text(&self, member: &str) -> Option<Cow<'a, str>> {
        match self {
            Self::Tool { name, .. } => (member == "name").then_some(Cow::Borrowed(*name)),
            Self::Value(value) => {
                let text = value.member(member)?.as_text()?.into_owned();
                Some(Cow::Owned(text))
            }
        }
    }

    /// Returns the parameters as a value.
    pub fn into_json(self) -> RawJson {
        match self {
            Self::Value(value) => value.into_owned(),
            Self::Tool {
                name,
                arguments,
                meta,
            } => {
                let room = name.len() + arguments.as_bytes().len() + meta.len();
                let mut text = Vec::with_capacity(USUAL_BYTES + room);
                write_tool(&mut text, name, arguments, &meta);
                RawJson::trusted(text.into())
            }
        }
    }

    /// Returns the number of bytes that are copied into a frame.
    fn copied(&self) -> usize {
        match self {
            Self::Value(value) => copied(value.as_bytes()),
            Self::Tool {
                name,
                arguments,
                meta,
            } => name.len() + arguments.as_bytes().len() + meta.len(),
        }
    }
}

/// Writes the parameters of a tool call.
fn write_tool(text: &mut Vec<u8>, name: &str, arguments: &RawJson, meta: &MetaText<'_>) {
    text.extend_from_slice(br#"{"name":"#);
    write_string(text, name);
    text.extend_from_slice(br#","arguments":"#);
    text.extend_from_slice(arguments.as_bytes());
    if !meta.is_empty() {
        text.extend_from_slice(br#","_meta":{"#);
        meta.write_to(text);
        text.push(b'}');
    }
    text.push(b'}');
}

/// Writes the beginning of a message with an id, with room for the body if it is copied.
fn head(id: &[u8], next: &[u8], body: &RawJson) -> Vec<u8> {
    let mut head = Vec::with_capacity(USUAL_BYTES + id.len() + copied(body.as_bytes()));
    begin(&mut head, id, next);
    head
}

/// Begins a message with an id.
fn begin(text: &mut Vec<u8>, id: &[u8], next: &[u8]) {
    text.extend_from_slice(BEGINNING);
    text.extend_from_slice(id);
    text.extend_from_slice(next);
}

/// Ends a message with its body; one that is long is returned and not copied.
fn splice(text: &mut Vec<u8>, body: &Bytes) -> Option<Bytes> {
    // A separate body costs one more buffer in the write. From this size on that is cheaper than a copy, which for a
    // large result would be up to 16 MiB.
    if body.len() >= COPY_BELOW {
        return Some(body.clone());
    }
    text.extend_from_slice(body);
    text.extend_from_slice(END);
    None
}

/// Returns the number of bytes of a body that are copied into its frame.
fn copied(body: &Bytes) -> usize {
    let body = body.len();
    if body < COPY_BELOW { body } else { 0 }
}

pub fn notification(method: &str, params: Option<&RawJson>) -> Frame {
    let mut head = br#"{"jsonrpc":"2.0","method":"#.to_vec();
    write_string(&mut head, method);
    let Some(params) = params else {
        head.extend_from_slice(END);
        return Frame::whole(head);
    };
    head.extend_from_slice(br#","params":"#);
    Frame::spliced(head, params)
}
