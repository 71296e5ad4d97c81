//! One call to a server: what travels down to the server's task, the way back to the caller, and what is
//! known when it fails.

use std::{pin::Pin, sync::Arc};

use serde::Serialize;

use crate::{
    era::Era,
    ident::ToolName,
    wire::{Answer, Frame, Kind, ObjectText, RawJson},
};

/// How much of what a client says that it is counts.
const MAX_IDENTITY_CHARACTERS: usize = 100;

/// A call on its way to a server.
#[derive(Clone)]
pub(crate) struct Call {
    /// What is asked of the server.
    pub request: CallRequest,
    /// Who is calling, and what they attached.
    pub context: CallContext,
}

/// What a caller asks of a server.
#[derive(Clone)]
pub(crate) enum CallRequest {
    Tool(ToolRequest),
    /// Something that is relayed with its parameters as they are.
    Relayed {
        method: &'static str,
        /// The parameters, an object.
        params: RawJson,
    },
}

/// A tool call as its server gets it. A call is moved often, so what most calls do not have is boxed.
#[derive(Clone)]
pub(crate) struct ToolRequest {
    /// The tool, by its server's own name for it.
    pub name: ToolName,
    /// The arguments, byte for byte as the caller wrote them.
    pub arguments: RawJson,
    /// All parameters as the caller wrote them, with the server's name for the tool; nothing if only the name and the
    /// arguments are sent.
    pub params: Option<Box<RawJson>>,
    /// The definition that the user has permitted, where the user was asked. It is compared with the definition that
    /// the server has announced when the call is sent.
    pub consent: Option<Box<Fingerprint>>,
}

/// The SHA-256 digest of a tool's definition.
pub(crate) type Fingerprint = [u8; 32];

impl CallRequest {
    /// The method on the wire.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tools/call",
            Self::Relayed { method, .. } => method,
        }
    }

    /// How many bytes the caller sent for it.
    pub(crate) fn size(&self) -> usize {
        let sent = match self {
            Self::Tool(tool) => tool.params.as_deref().unwrap_or(&tool.arguments),
            Self::Relayed { params, .. } => params,
        };
        sent.as_bytes().len()
    }
}

/// What a call carries besides its arguments. Whatever a server has to say to the caller while the
/// call runs goes through this; nothing reaches up.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub client: Arc<dyn ClientHandle>,
    /// The `_meta` of the caller's request.
    pub meta: Option<RawJson>,
    /// What the caller answers to questions that came in place of an earlier answer.
    pub retry: Option<Box<Retry>>,
    /// How much progress the caller was told of.
    pub progress: ToldProgress,
}

/// How much progress a caller was told of. A call that is made again because its server asked for something begins
/// anew at its server; to the caller it is one call, whose progress only grows. Most calls tell of none, and take
/// no room for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToldProgress(Option<Box<Told>>);

#[derive(Debug, Clone, Default, PartialEq)]
struct Told {
    /// Before the call was made again.
    before: Option<f64>,
    now: Option<f64>,
}

impl ToldProgress {
    /// The call is made again.
    pub(crate) fn begin_again(&mut self) {
        if let Some(told) = &mut self.0 {
            told.before = told.now;
        }
    }

    /// Notes a report; false if it says no more than what was told before the call was made again.
    pub(crate) fn note(&mut self, report: &RawJson) -> bool {
        let progress = report.member("progress");
        let progress = progress.and_then(|it| it.as_str().parse::<f64>().ok());
        let Some(progress) = progress else {
            return true;
        };
        let told = self.0.get_or_insert_default();
        if told.before.is_some_and(|before| progress <= before) {
            return false;
        }
        told.now = Some(progress);
        true
    }
}

/// What a modern client adds to a request that it makes again, because it was asked for input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Its answers, by the keys of the questions.
    pub responses: Option<RawJson>,
    /// What it was given to send back.
    pub state: Option<RawJson>,
}

/// The way back to the client that made a call.
pub(crate) trait ClientHandle: Send + Sync {
    /// Which client it is: for questions, everything that has one id is one client.
    fn id(&self) -> ClientId;

    /// Who is behind the client.
    fn principal(&self) -> Principal;

    /// Whether the client is on this machine, so that its user's browser reaches us here.
    fn is_here(&self) -> bool {
        self.principal() == Principal::Local
    }

    /// What the client says that it is.
    fn identity(&self) -> ClientIdentity {
        ClientIdentity::default()
    }

    fn era(&self) -> Era;

    /// What the client says it can do.
    fn capabilities(&self) -> ClientCapabilities;

    /// The least urgent log messages that the client wants of servers that have to be told with every
    /// request; none if it wants none.
    fn log_level(&self) -> Option<&'static str>;

    /// The client's own token for the progress of what it asked for, if it wants to hear of it.
    fn progress_token(&self) -> Option<RawJson>;

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

    /// The client as far as it matters for a result that cannot be sent whole.
    fn recipient(&self) -> Recipient {
        Recipient {
            owner: Owner::of(self.principal(), self.era(), self.id()),
            knows_links: true,
        }
    }

    /// Asks the user something that we want to know ourselves, with the parameters of a form.
    fn ask_user(&self, params: &RawJson) -> AnswerFuture {
        self.ask(Question::Elicitation, Some(params))
    }

    /// Whether the client can answer such a question.
    fn can_answer(&self, question: Question) -> bool {
        self.capabilities().get(question).is_some()
    }
}

/// The answer of a client that is still to come.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// The moment at which a client has read enough.
pub(crate) type RoomFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Who is behind a client, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Principal {
    Local,
    /// Whoever comes over HTTP, where no token is required.
    Anybody,
    /// Whoever carries the token of this number.
    Holder(usize),
}

/// Whom something belongs to that is kept for a client: whoever is behind it, and where that could be anybody, the
/// session. Without sessions there is only what the client was given to come back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// Everybody behind whom this principal is.
    Principal(Principal),
    /// One session of a client that carries no token.
    Session(ClientId),
}

impl Owner {
    /// The owner of what is kept for a client.
    pub(crate) fn of(principal: Principal, era: Era, client: ClientId) -> Self {
        match (principal, era) {
            (Principal::Anybody, Era::Legacy) => Self::Session(client),
            (principal, _) => Self::Principal(principal),
        }
    }
}

/// A client as far as it matters for a result that cannot be sent whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recipient {
    /// Whom the rest is kept for.
    pub owner: Owner,
    /// Whether it knows contents that are links to resources.
    pub knows_links: bool,
}

/// What a client says that it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientIdentity {
    /// The name of the program.
    pub name: Option<String>,
    pub version: Option<String>,
}

impl ClientIdentity {
    /// What the `clientInfo` of a client says.
    pub(crate) fn of(info: Option<&RawJson>) -> Self {
        let text = |name: &str| {
            let text = info?.member(name)?;
            let text = text.as_text()?;
            Some(text.chars().take(MAX_IDENTITY_CHARACTERS).collect())
        };
        Self {
            name: text("name"),
            version: text("version"),
        }
    }
}

/// Tells the clients of one workbench apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientId(pub u64);

/// What a server may ask a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// To have the user fill in a form or follow an address.
    Elicitation,
    /// To have the model write something.
    Sampling,
    /// To name the folders that it works in.
    Roots,
}

impl Question {
    pub(crate) const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// The question with this method.
    pub(crate) fn named(method: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|question| question.method() == method)
    }

    /// Its method on the wire.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capability of a client that can answer it.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// What a client says it can do, as it wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientCapabilities {
    declared: Option<RawJson>,
}

impl ClientCapabilities {
    /// The declaration of a client; anything but an object declares nothing.
    pub(crate) fn of(declared: Option<RawJson>) -> Self {
        Self {
            declared: declared.filter(|it| it.kind() == Kind::Object),
        }
    }

    /// What the client says of its answers to such questions; nothing if it cannot give any.
    pub(crate) fn get(&self, question: Question) -> Option<RawJson> {
        self.declared.as_ref()?.member(question.capability())
    }

    /// Whether the client has declared an extension of the protocol.
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        let extensions = self
            .declared
            .as_ref()
            .and_then(|it| it.member("extensions"));
        extensions.is_some_and(|extensions| extensions.member(name).is_some())
    }

    pub(crate) fn declared(&self) -> RawJson {
        let nothing = || ObjectText::new().finish();
        self.declared.clone().unwrap_or_else(nothing)
    }

    /// The part of the declaration that a server may make use of by asking.
    pub(crate) fn questions(&self) -> RawJson {
        let members = Question::ALL
            .into_iter()
            .filter_map(|question| Some((question, self.get(question)?)));
        let text = members.fold(ObjectText::new(), |text, (question, value)| {
            text.raw(question.capability(), &value)
        });
        text.finish()
    }
}

/// What is known about the effects of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// No byte of it reached the server.
    NotSent,
    /// The server said that it did not run it.
    Rejected,
    /// It reached the server, and nobody knows how far it got.
    Unknown,
}
