//! A call to a server: the request that the server's task gets, the way back to the caller, and the outcome of a call
//! that fails.

use std::{pin::Pin, sync::Arc};

use ident::ToolName;
use rawjson::{Kind, ObjectText, RawJson};
use serde::Serialize;

use crate::{
    era::{EXPERIMENTAL, EXTENSIONS, Era, TASKS_EXTENSION},
    sha256::Sha256,
    trace::CallSpan,
    wire::{self, Answer, Frame},
};

/// The maximum length of the name and the version that a client reports for itself.
const MAX_IDENTITY_CHARACTERS: usize = 100;

/// A call on its way to a server.
#[derive(Clone)]
pub(crate) struct Call {
    pub request: CallRequest,
    pub context: CallContext,
}

/// The request of a caller to a server.
#[derive(Clone)]
pub(crate) enum CallRequest {
    Tool(ToolRequest),
    /// A request that is relayed with its parameters unchanged.
    Relayed {
        method: &'static str,
        /// The parameters as the caller wrote them; always an object.
        params: RawJson,
    },
}

/// A tool call as its server gets it. Calls are moved often, so members that most calls do not have are boxed.
#[derive(Clone)]
pub(crate) struct ToolRequest {
    /// The tool, by its server's own name for it.
    pub name: ToolName,
    /// The arguments, byte for byte as the caller wrote them.
    pub arguments: RawJson,
    /// All parameters as the caller wrote them, with the server's name for the tool; `None` if only the name and the
    /// arguments are sent.
    pub params: Option<Box<RawJson>>,
    /// The definition that the user permitted, if the user was asked. The server's task compares it with the
    /// definition that the server has announced when it sends the call.
    pub consent: Option<Box<Fingerprint>>,
}

/// The SHA-256 digest of a tool's definition.
pub(crate) type Fingerprint = [u8; 32];

impl CallRequest {
    /// Returns the method on the wire.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tools/call",
            Self::Relayed { method, .. } => method,
        }
    }

    /// Returns the number of bytes that the caller sent.
    pub(crate) fn size(&self) -> usize {
        let sent = match self {
            Self::Tool(tool) => tool.params.as_deref().unwrap_or(&tool.arguments),
            Self::Relayed { params, .. } => params,
        };
        sent.as_bytes().len()
    }
}

/// The parts of a call besides its arguments. Everything that a server sends to the caller while the call runs goes
/// through the client handle in it.
#[derive(Clone)]
pub(crate) struct CallContext {
    pub client: Arc<dyn ClientHandle>,
    /// The `_meta` of the caller's request.
    pub meta: Option<RawJson>,
    /// The caller's answers to the questions of an earlier attempt.
    pub retry: Option<Box<Retry>>,
    pub reports: CallReports,
}

/// The reports about a call while it runs: its progress to the caller, and its operation to the event stream. Most calls
/// have neither, and calls are moved often, so both are in one box.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallReports(Option<Box<ReportState>>);

#[derive(Debug, Clone, Default, PartialEq)]
struct ReportState {
    span: Option<CallSpan>,
    /// The last progress before the call was repeated. A call that is repeated because its server asked for input starts
    /// from zero at its server. The caller sees one call, whose progress must only grow.
    before: Option<f64>,
    now: Option<f64>,
}

impl CallReports {
    /// Returns the reports of a call that belongs to an operation, if it does.
    pub(crate) fn of(span: Option<CallSpan>) -> Self {
        Self(span.map(|span| {
            Box::new(ReportState {
                span: Some(span),
                ..ReportState::default()
            })
        }))
    }

    /// Returns the operation that the call belongs to, while anybody listens to the event stream.
    pub(crate) fn span(&self) -> Option<&CallSpan> {
        self.0.as_ref()?.span.as_ref()
    }

    /// Sets the operation that the call belongs to.
    pub(crate) fn set_span(&mut self, span: CallSpan) {
        self.0.get_or_insert_default().span = Some(span);
    }

    /// Records that the call is about to be repeated.
    pub(crate) fn restart(&mut self) {
        if let Some(state) = &mut self.0 {
            state.before = state.now;
        }
    }

    /// Records the progress of a report. Returns false if it is not above the progress that was reported before the call
    /// was repeated.
    pub(crate) fn record(&mut self, report: &RawJson) -> bool {
        let progress = report
            .member("progress")
            .and_then(|it| it.as_str().parse::<f64>().ok());
        // A report without a number cannot go backwards, so it is passed on as it is.
        let Some(progress) = progress else {
            return true;
        };
        let state = self.0.get_or_insert_default();
        if state.before.is_some_and(|before| progress <= before) {
            return false;
        }
        state.now = Some(progress);
        true
    }
}

/// The members that a modern client adds when it repeats a request because it was asked for input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The answers, by the keys of the questions.
    pub responses: Option<RawJson>,
    /// The opaque state that the client was given to send back.
    pub state: Option<RawJson>,
}

/// The way back to the client that made a call.
pub(crate) trait ClientHandle: Send + Sync {
    /// Returns the id of the client. Questions treat all handles with one id as one client.
    fn id(&self) -> ClientId;

    fn principal(&self) -> Principal;

    /// Returns whether the client is on this machine, so that its user's browser can connect to a port of the
    /// workbench.
    fn is_local(&self) -> bool {
        matches!(self.principal(), Principal::Local | Principal::Attached(_))
    }

    /// Returns the name that the authorization server has for the user of the client.
    fn user(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns the name and the version that the client reports.
    fn identity(&self) -> Arc<ClientIdentity> {
        Arc::default()
    }

    /// Returns the era in which the caller takes results and can answer a server.
    fn era(&self) -> Era;

    /// Returns the era in which the client itself is asked and has a session or not. It differs from `era` for the calls
    /// of a script: the workbench takes their results and continues their questions, whoever the client is.
    fn own_era(&self) -> Era {
        self.era()
    }

    /// Returns the id of the run whose script makes the call, if one does.
    fn script_run(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns the transport of the client.
    fn carrier(&self) -> Carrier {
        Carrier::Pipe
    }

    /// Returns the protocol revision that the client speaks, if it is known.
    fn revision(&self) -> Option<&'static str> {
        None
    }

    /// Returns the id of the session that the workbench gave the client, over HTTP in the legacy era.
    fn session(&self) -> Option<Arc<str>> {
        None
    }

    /// Returns the operation of a request that is not a tool call, while anybody listens to the event stream.
    fn span(&self) -> Option<CallSpan> {
        None
    }

    /// Returns what the client declares about itself to servers.
    fn declaration(&self) -> Arc<Declaration>;

    /// Returns the capabilities that the client declared.
    fn capabilities(&self) -> ClientCapabilities {
        self.declaration().capabilities.clone()
    }

    /// Returns the client's progress token, if it wants progress notifications.
    fn progress_token(&self) -> Option<RawJson>;

    /// Sends a message that belongs to a call, in order with the call's answer. A client that does not
    /// keep up may not get it.
    fn notify(&self, frame: Frame);

    /// Sends the progress of the call, with the parameters that its server sent, under the client's token.
    fn report_progress(&self, params: &RawJson) {
        if let Some(token) = self.progress_token() {
            // The token of the server is our id of the call, which the client does not know.
            let params = params.with_member("progressToken", &token);
            self.notify(wire::notification("notifications/progress", Some(&params)));
        }
    }

    /// Returns a handle to the same client that stays usable after the current request has been answered.
    fn lasting(&self) -> Arc<dyn ClientHandle>;

    /// Returns whether the client has so much unread output that no more should be fetched for it.
    fn is_full(&self) -> bool;

    /// Waits until the client has read enough.
    fn room(&self) -> RoomFuture;

    /// Passes on a log message of a server, if the client wants messages of its level.
    fn log(&self, params: &RawJson);

    /// Asks the client a question for a server. Yields `None` if the client goes away; dropping the future withdraws
    /// the question.
    fn ask(&self, question: Question, params: Option<&RawJson>) -> AnswerFuture;

    /// Returns the properties of the client that matter for a result that is too large to send whole.
    fn recipient(&self) -> Recipient {
        Recipient {
            owner: Owner::of(self.principal(), self.own_era(), self.id()),
            knows_links: true,
        }
    }

    /// Asks the user a question of our own, with the parameters of a form.
    fn ask_user(&self, params: &RawJson) -> AnswerFuture {
        self.ask(Question::Elicitation, Some(params))
    }

    /// Records, until the guard is dropped, that the call waits for the user and that its server is not running it.
    fn wait_for_user(&self) -> Option<UserWait> {
        None
    }

    /// Returns whether the client can answer such a question.
    fn can_answer(&self, question: Question) -> bool {
        self.capabilities().get(question).is_some()
    }
}

/// The pending answer of a client.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// A wait for the user, which ends when it is dropped.
pub(crate) type UserWait = Box<dyn Send>;

/// Completes when a client has read enough.
pub(crate) type RoomFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Pipe,
    Tcp,
}

/// The identity behind a client, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Principal {
    Local,
    /// One of several clients of the same user, by its number.
    Attached(u64),
    /// Anyone who connects over HTTP where no token is required.
    Anybody,
    /// The holder of a token, by a digest of the token and its client that is the same in every process.
    Holder(u128),
    /// A user of the authorization server, by a digest that is the same in every process.
    User([u8; 16]),
}

impl Principal {
    /// Returns the text that sealed and stored values are bound to; `None` if there is one client only, or anybody may be it.
    pub(crate) fn holder(self) -> Option<String> {
        match self {
            Self::Local | Self::Anybody => None,
            Self::Attached(number) => Some(format!("client {number}")),
            Self::Holder(digest) => Some(format!("token {digest:032x}")),
            Self::User(digest) => Some(format!("user {:032x}", u128::from_be_bytes(digest))),
        }
    }
}

/// The owner of state that is stored for a client: its principal, or the session if the principal could be anybody.
/// Modern clients have no sessions, so there an anonymous client has only the identifiers that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// Every client of this principal.
    Principal(Principal),
    /// One session of a client without a token.
    Session(ClientId),
}

impl Owner {
    /// Returns the text that values in the store are bound to; `None` if other processes do not know the owner.
    pub(crate) fn shared(self) -> Option<String> {
        match self {
            // These clients cannot be told apart. Their values are found by random names, which only the right one
            // knows.
            Self::Principal(Principal::Anybody) => Some("anybody".to_owned()),
            Self::Principal(principal @ (Principal::Holder(_) | Principal::User(_))) => {
                principal.holder()
            }
            Self::Principal(Principal::Local | Principal::Attached(_)) | Self::Session(_) => None,
        }
    }

    /// Returns the owner of state that is stored for a client.
    pub(crate) fn of(principal: Principal, era: Era, client: ClientId) -> Self {
        match (principal, era) {
            (Principal::Anybody, Era::Legacy) => Self::Session(client),
            (principal, _) => Self::Principal(principal),
        }
    }
}

/// The properties of a client that matter for a result that is too large to send whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recipient {
    /// The owner of the stored rest.
    pub owner: Owner,
    /// True if the client understands links to resources as content.
    pub knows_links: bool,
}

/// The name and the version that a client reports for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientIdentity {
    /// The name of the program.
    pub name: Option<String>,
    pub version: Option<String>,
}

impl ClientIdentity {
    /// Reads the `clientInfo` of a client.
    pub(crate) fn of(info: Option<&RawJson>) -> Self {
        let text = |name: &str| {
            let text = info?.member(name)?;
            let text = text.as_text()?;
            // The client chooses this text, which is repeated wherever its requests are shown or recorded.
            Some(text.chars().take(MAX_IDENTITY_CHARACTERS).collect())
        };
        Self {
            name: text("name"),
            version: text("version"),
        }
    }
}

/// The identity of a client within one workbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientId(pub u64);

/// A kind of request that a server may send to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Asks the user to fill in a form or to follow an address.
    Elicitation,
    /// Asks the model to write something.
    Sampling,
    /// Asks for the folders that the client works in.
    Roots,
}

impl Question {
    pub(crate) const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// Returns the question with this method.
    pub(crate) fn named(method: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|question| question.method() == method)
    }

    /// Returns the method on the wire.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Returns the capability of clients that can answer it.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// The capabilities of a client, exactly as it declared them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientCapabilities {
    declared: Option<RawJson>,
}

/// The part of a client's description of itself that modern servers get with every request. It is shared, because it
/// hardly ever changes from one request to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub capabilities: ClientCapabilities,
    /// The lowest level of log messages that the client wants; `None` if it wants none.
    pub log_level: Option<&'static str>,
}

/// Identifies the extensions and experimental capabilities that a client declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ExtensionSet([u8; 32]);

impl ClientCapabilities {
    /// Takes the declaration of a client. Anything but an object declares nothing.
    pub(crate) fn of(declared: Option<RawJson>) -> Self {
        Self {
            declared: declared.filter(|it| it.kind() == Kind::Object),
        }
    }

    /// Returns the client's declaration for a kind of question; `None` if it cannot answer it.
    pub(crate) fn get(&self, question: Question) -> Option<RawJson> {
        self.declared.as_ref()?.member(question.capability())
    }

    /// Returns whether the client declared a protocol extension.
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        let extensions = self.object(EXTENSIONS);
        extensions.is_some_and(|extensions| extensions.member(name).is_some())
    }

    pub(crate) fn into_declared(self) -> RawJson {
        let nothing = || ObjectText::new().finish();
        self.declared.unwrap_or_else(nothing)
    }

    /// Returns the part of the declaration that means the same in both eras: questions of servers, extensions and
    /// experimental capabilities. Extensions pass through whatever they are, except tasks, which differ between eras.
    pub(crate) fn common(&self) -> RawJson {
        // Each part is spliced as the client wrote it.
        let questions = Question::ALL
            .into_iter()
            .filter_map(|question| Some((question.capability(), self.get(question)?)));
        let others = [
            (EXTENSIONS, self.extensions()),
            (EXPERIMENTAL, self.object(EXPERIMENTAL)),
        ];
        let others = others
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let text = questions
            .chain(others)
            .fold(ObjectText::new(), |text, (name, value)| {
                text.raw(name, &value)
            });
        text.finish()
    }

    /// Returns the capabilities that a legacy server gets at `initialize`, which hold for as long as it runs. A modern client
    /// may declare different ones in its next request, so roots and forms are added; a question that the request does not
    /// support is refused.
    pub(crate) fn announced(&self, era: Era) -> RawJson {
        let nothing = || ObjectText::new().finish();
        let mut announced = self.common();
        // A client that declares elicitation has also declared which kinds it supports.
        if era == Era::Modern && self.get(Question::Elicitation).is_none() {
            let forms = ObjectText::new().raw("form", &nothing()).finish();
            announced = announced.with_member(Question::Elicitation.capability(), &forms);
        }
        if era == Era::Modern && self.get(Question::Roots).is_none() {
            announced = announced.with_member(Question::Roots.capability(), &nothing());
        }
        announced
    }

    /// Returns the set of declared extensions and experimental capabilities; `None` if there are none. Tasks do not count, since the
    /// workbench bridges them for every client.
    pub(crate) fn extension_set(&self) -> Option<ExtensionSet> {
        let experimental = self.object(EXPERIMENTAL).filter(has_members);
        let parts = [
            (EXTENSIONS, self.extensions()),
            (EXPERIMENTAL, experimental),
        ];
        let declared = parts.into_iter().filter_map(|(name, it)| Some((name, it?)));
        let mut declared = declared.peekable();
        declared.peek()?;
        let text = declared.fold(ObjectText::new(), |text, (name, it)| text.raw(name, &it));
        // White space must not make equal declarations different: each set has servers of its own.
        Some(ExtensionSet(Sha256::digest(
            text.finish().minified().as_bytes(),
        )))
    }

    /// Returns the declared extensions other than tasks, if there are any.
    fn extensions(&self) -> Option<RawJson> {
        let others = self.object(EXTENSIONS)?.without_members(&[TASKS_EXTENSION]);
        has_members(&others).then_some(others)
    }

    fn object(&self, name: &str) -> Option<RawJson> {
        let value = self.declared.as_ref()?.member(name)?;
        (value.kind() == Kind::Object).then_some(value)
    }
}

fn has_members(object: &RawJson) -> bool {
    object.members().is_some_and(|members| !members.is_empty())
}

/// The known effect of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// No byte of the call reached the server.
    NotSent,
    /// The server said that it did not run the call.
    Rejected,
    /// The call reached the server, and it is unknown how far it got. It must not be sent again.
    Unknown,
}
