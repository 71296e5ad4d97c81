//! Bytes in, bytes out: frames, JSON spans, ids and splicing. Nothing here does IO. A message is
//! scanned once; what is relayed stays the bytes that came. The members of a tool call and of its result are found in that same
//! pass (`outline.rs`, `marks.rs`); no other method is known here.

pub mod code;
mod compose;
mod cursor;
mod json;
mod lines;
mod marks;
mod mend;
mod message;
mod outbox;
mod outline;
mod own;
mod plain;
mod recover;
mod scan;
mod sse;

pub use compose::{
    Frame, MetaText, ObjectText, Outgoing, Params, Spliced, error, error_as_sent, notification,
    request, result,
};
pub use cursor::{Cursor, once};
pub use json::{Insertion, Kind, Member, RawJson};
pub use lines::{Line, LineFramer, MAX_FRAME_BYTES};
pub use marks::ResultMarks;
pub use mend::{parse_mended, parse_on_one_line};
pub use message::{
    Answer, InvalidMessage, Message, Notification, ParseError, Request, RequestId, Response,
};
pub use outbox::{FrameTicket, Outbox};
pub use outline::{CallOutline, Level, Outlined};
pub use own::own;
pub use recover::{id_from_head, id_from_tail, recover_answer_id, recover_id};
pub use scan::{MAX_DEPTH, ScanError};
pub use sse::{EventParser, EventTooLarge, StreamEvent};

#[cfg(test)]
pub(crate) mod tests;
