//! One call of one tool: what travels down to a server's task, and what is known when it fails.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    ident::ToolName,
    wire::{Frame, RawJson},
};

/// A call on its way to a server.
pub struct Call {
    /// The tool, by its server's own name for it.
    pub tool: ToolName,
    /// The arguments, byte for byte as the caller wrote them.
    pub arguments: RawJson,
    /// Who is calling, and what they attached.
    pub context: CallContext,
}

/// What a call carries besides its arguments. Whatever a server has to say to the caller while the
/// call runs goes through this; nothing reaches up.
pub struct CallContext {
    /// The caller's side.
    pub client: Arc<dyn ClientHandle>,
    /// The `_meta` of the caller's request.
    pub meta: Option<RawJson>,
    /// The caller's own progress token, if it wants to hear of progress.
    pub progress_token: Option<RawJson>,
}

/// The way back to the client that made a call.
pub trait ClientHandle: Send + Sync {
    /// Sends a message that belongs to a call, in order with the call's answer. A client that does not
    /// keep up may not get it.
    fn notify(&self, frame: Frame);
}

/// What is known about the effects of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No byte of it reached the server.
    NotSent,
    /// The server said that it did not run it.
    Rejected,
    /// It reached the server, and nobody knows how far it got.
    Unknown,
}
