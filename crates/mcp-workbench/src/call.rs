//! One call to a server: what travels down to the server's task, the way back to the caller, and what is
//! known when it fails.

use std::{pin::Pin, sync::Arc};

use serde::Serialize;

use crate::{
    ident::ToolName,
    wire::{Answer, Frame, ObjectText, RawJson},
};

/// A call on its way to a server.
pub struct Call {
    /// What is asked of the server.
    pub request: CallRequest,
    /// Who is calling, and what they attached.
    pub context: CallContext,
}

/// What a caller asks of a server.
pub enum CallRequest {
    /// To run a tool.
    Tool {
        /// The tool, by its server's own name for it.
        name: ToolName,
        /// The arguments, byte for byte as the caller wrote them.
        arguments: RawJson,
    },
    /// Something that is relayed with its parameters as they are.
    Relayed {
        /// The method.
        method: &'static str,
        /// The parameters, an object.
        params: RawJson,
    },
}

impl CallRequest {
    /// The method on the wire.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Tool { .. } => "tools/call",
            Self::Relayed { method, .. } => method,
        }
    }

    /// How many bytes the caller sent for it.
    pub fn size(&self) -> usize {
        let sent = match self {
            Self::Tool { arguments, .. } => arguments,
            Self::Relayed { params, .. } => params,
        };
        sent.as_bytes().len()
    }
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
    /// Which client it is.
    fn id(&self) -> ClientId;

    /// What the client says it can do, as far as servers may ask for it.
    fn capabilities(&self) -> ClientCapabilities;

    /// Sends a message that belongs to a call, in order with the call's answer. A client that does not
    /// keep up may not get it.
    fn notify(&self, frame: Frame);

    /// The way to the same client when the request that this one came with has been answered.
    fn lasting(&self) -> Arc<dyn ClientHandle>;

    /// Whether so much waits to be read by the client that no more should be fetched for it.
    fn is_full(&self) -> bool;

    /// Waits until it is not.
    fn room(&self) -> RoomFuture;

    /// Passes on a log message of a server, if the client wants messages of its level.
    fn log(&self, params: &RawJson);

    /// Asks the client something for a server. There is no answer if the client goes away; dropping the
    /// future withdraws the question.
    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture;

    /// Whether the client can answer such a question.
    fn can_answer(&self, question: Question) -> bool {
        self.capabilities().get(question).is_some()
    }
}

/// The answer of a client that is still to come.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// The moment at which a client has read enough.
pub type RoomFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the clients of one workbench apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// What a server may ask a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// To have the user fill in a form or follow an address.
    Elicitation,
    /// To have the model write something.
    Sampling,
    /// To name the folders that it works in.
    Roots,
}

impl Question {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// The question with this method.
    pub fn named(method: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|question| question.method() == method)
    }

    /// Its method on the wire.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capability of a client that can answer it.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// The capabilities of a client that servers may make use of, as the client wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    members: Vec<(Question, RawJson)>,
}

impl ClientCapabilities {
    /// Takes from the client's own declaration what servers may make use of.
    pub fn of(declared: Option<&RawJson>) -> Self {
        let member = |question: Question| {
            let value = declared?.member(question.capability())?;
            Some((question, value))
        };
        Self {
            members: Question::ALL.into_iter().filter_map(member).collect(),
        }
    }

    /// What the client says of its answers to such questions; nothing if it cannot give any.
    pub fn get(&self, question: Question) -> Option<&RawJson> {
        self.members
            .iter()
            .find(|(it, _)| *it == question)
            .map(|(_, value)| value)
    }

    /// The declaration that a server gets.
    pub fn to_json(&self) -> RawJson {
        let members = self.members.iter();
        let text = members.fold(ObjectText::new(), |text, (question, value)| {
            text.raw(question.capability(), value)
        });
        text.finish()
    }
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
