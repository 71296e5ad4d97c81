//! Bytes in, bytes out: frames, messages and their ids, on top of `rawjson`. Nothing here does IO. A message is
//! scanned once; what is relayed stays the bytes that came. The members of a tool call and of its result are found in that same
//! pass (`outline.rs`, `marks.rs`); no other method is known here.

pub(crate) mod code;
mod compose;
mod frame_text;
mod lines;
mod marks;
mod message;
mod outbox;
mod outline;
mod own;
mod recover;
mod repair;
mod sse;

pub use compose::{Frame, error, notification, request, result};
pub(crate) use compose::{MetaText, Outgoing, Params, error_as_sent, named_request};
pub(crate) use frame_text::FrameText;
pub use lines::{Line, LineFramer, MAX_FRAME_BYTES};
pub(crate) use marks::ResultMarks;
pub use message::{Answer, Message, ParseError, Request, RequestId, Response};
pub(crate) use message::{InvalidMessage, Notification};
pub(crate) use outbox::{FrameTicket, Outbox};
pub(crate) use outline::{CallOutline, Level, Outlined};
pub(crate) use own::own;
pub(crate) use recover::{id_from_head, id_from_tail, recover_answer_id, recover_id};
pub use repair::parse_repaired;
pub(crate) use repair::{parse_checked, parse_on_one_line};
pub(crate) use sse::{EventParser, StreamEvent};

#[cfg(test)]
pub(crate) mod tests;
