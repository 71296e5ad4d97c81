//! Messages of ours, spliced around the bytes that are relayed.

use bytes::Bytes;
use serde::Serialize;

use super::{
    json::{Member, RawJson},
    message::RequestId,
};

/// Bodies from this size on are not copied into the frame but sent from where they are.
const COPY_BELOW: usize = 16 * 1024;

/// Room for what most messages and objects have around what is relayed.
const USUAL_BYTES: usize = 96;

/// One outgoing message with its newline, in up to three parts.
#[derive(Debug, Clone)]
pub struct Frame {
    parts: [Bytes; 3],
}

impl Frame {
    fn spliced(mut head: Vec<u8>, body: &RawJson, tail: &[u8]) -> Self {
        let body = body.as_bytes();
        if body.len() < COPY_BELOW {
            head.extend_from_slice(body);
            head.extend_from_slice(tail);
            return Self::whole(head);
        }
        Self {
            parts: [head.into(), body.clone(), Bytes::copy_from_slice(tail)],
        }
    }

    fn whole(text: Vec<u8>) -> Self {
        Self {
            parts: [text.into(), Bytes::new(), Bytes::new()],
        }
    }

    /// A batch of answers.
    pub fn batch(answers: &[Self]) -> Self {
        let mut text = vec![b'['];
        for (index, answer) in answers.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(answer.to_vec().trim_ascii_end());
        }
        text.extend_from_slice(b"]\n");
        Self::whole(text)
    }

    /// The parts, some of which may be empty.
    pub fn into_parts(self) -> [Bytes; 3] {
        self.parts
    }

    /// How many bytes the frame has.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Never: a frame has at least its newline.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole text, newline included.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts.concat()
    }
}

/// A JSON object that is written member by member, with relayed values among ours.
#[derive(Debug, Clone)]
pub struct ObjectText(Vec<u8>);

impl ObjectText {
    /// An object without members.
    pub fn new() -> Self {
        Self::with_room(0)
    }

    /// An object without members, and room for values of so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        let mut text = Vec::with_capacity(USUAL_BYTES + bytes);
        text.push(b'{');
        Self(text)
    }

    /// Adds a member that is relayed with its key.
    #[must_use]
    pub fn relay(mut self, member: &Member<'_>) -> Self {
        self.separate();
        self.0.extend_from_slice(member.key_as_sent);
        self.0.push(b':');
        self.0.extend_from_slice(member.value.as_bytes());
        self
    }

    /// Adds a member whose value is relayed.
    #[must_use]
    pub fn raw(mut self, key: &str, value: &RawJson) -> Self {
        self.key(key);
        self.0.extend_from_slice(value.as_bytes());
        self
    }

    /// Adds a member whose value is ours.
    #[must_use]
    pub fn member(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.key(key);
        write_json(&mut self.0, value);
        self
    }

    /// The finished object.
    pub fn finish(mut self) -> RawJson {
        self.0.push(b'}');
        RawJson::trusted(self.0.into())
    }

    fn separate(&mut self) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
    }

    fn key(&mut self, key: &str) {
        self.separate();
        write_json(&mut self.0, key);
        self.0.push(b':');
    }
}

impl Default for ObjectText {
    fn default() -> Self {
        Self::new()
    }
}

/// The answer to a request.
pub fn result(id: &RequestId, result: &RawJson) -> Frame {
    let head = head(id.as_json().as_bytes(), br#","result":"#, result);
    Frame::spliced(head, result, b"}\n")
}

/// The refusal of a request, or of a frame that could not be read.
pub fn error(id: Option<&RequestId>, code: i64, message: &str) -> Frame {
    let error = ObjectText::new()
        .member("code", &code)
        .member("message", message)
        .finish();
    let id: &[u8] = id.map_or(b"null", |id| id.as_json().as_bytes());
    Frame::spliced(head(id, br#","error":"#, &error), &error, b"}\n")
}

/// The refusal of a request in somebody else's words.
pub fn error_as_sent(id: &RequestId, error: &RawJson) -> Frame {
    let head = head(id.as_json().as_bytes(), br#","error":"#, error);
    Frame::spliced(head, error, b"}\n")
}

/// A request of ours.
pub fn request(id: u64, method: &str, params: &RawJson) -> Frame {
    let mut head = head(id.to_string().as_bytes(), br#","method":"#, params);
    write_json(&mut head, method);
    head.extend_from_slice(br#","params":"#);
    Frame::spliced(head, params, b"}\n")
}

/// The beginning of a message with an id, with room for the body if that is copied.
fn head(id: &[u8], next: &[u8], body: &RawJson) -> Vec<u8> {
    let body = body.as_bytes().len();
    let copied = if body < COPY_BELOW { body } else { 0 };
    let mut head = Vec::with_capacity(USUAL_BYTES + id.len() + copied);
    head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    head.extend_from_slice(id);
    head.extend_from_slice(next);
    head
}

/// A notification of ours.
pub fn notification(method: &str, params: Option<&RawJson>) -> Frame {
    let mut head = br#"{"jsonrpc":"2.0","method":"#.to_vec();
    write_json(&mut head, method);
    let Some(params) = params else {
        head.extend_from_slice(b"}\n");
        return Frame::whole(head);
    };
    head.extend_from_slice(br#","params":"#);
    Frame::spliced(head, params, b"}\n")
}

fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("writing our own values to memory cannot fail");
}
