//! The table of the matrix: its dimensions, the combinations that exist, and the outcome that each of them must have.
//!
//! Every function here matches exhaustively, so a new value of a dimension does not compile before somebody has decided
//! what it means. A value that is missing in its `ALL` is never constructed, which the compiler reports too.

/// The way in which the client names the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// `use_tool`.
    Proxy,
    Dynamic,
    Native,
}

/// The protocol era of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientEra {
    Legacy,
    Modern,
}

/// The transport and the protocol era of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    LegacyStdio,
    ModernStdio,
    LegacyHttp,
    ModernHttp,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// The event after which the server may announce something different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The process or the connection ends, and the next one takes its place.
    Restart,
    /// The server forgets the session (HTTP 404), and a new one is made.
    Renewal,
    ListChanged,
    /// The server refuses a call because its headers do not match the current definition (-32020).
    HeaderMismatch,
}

/// The definition of the tool after the event, compared with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Unchanged,
    /// The same members in a different order, with white space between them.
    Reformatted,
    /// The same definition of a server that names a different version of itself.
    NewVersion,
    Described,
    /// No longer read-only but destructive.
    Destructive,
    /// A different description with U+202E, which the scanner withholds.
    BidiOverride,
    /// A different description with a character of the TAG block, which the scanner withholds.
    TagCharacters,
    /// A different description and no `inputSchema`.
    NoSchema,
    /// A description of more than 256 KiB.
    TooLarge,
    /// Two different descriptions in one definition.
    DuplicateKey,
    /// A different description, and the whole definition twice.
    ListedTwice,
    /// The tool is no longer listed.
    Gone,
}

/// The configuration of the server that decides about the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// `"pin": "enforce"`, and the tool was approved before.
    Enforce,
    /// `"pin": "notice"`.
    Notice,
    /// `"deny": ["@destructive"]`.
    DenyDestructive,
    /// `"allow": ["@readOnly"]`.
    AllowReadOnly,
    /// `"ask": ["*"]`, and the user has consented for the session.
    AskAll,
    /// `"ask": ["@destructive"]`.
    AskDestructive,
}

impl Mode {
    pub(super) const ALL: [Self; 3] = [Self::Proxy, Self::Dynamic, Self::Native];
}

impl ClientEra {
    pub(super) const ALL: [Self; 2] = [Self::Legacy, Self::Modern];
}

impl Event {
    const ALL: [Self; 4] = [
        Self::Restart,
        Self::Renewal,
        Self::ListChanged,
        Self::HeaderMismatch,
    ];
}

impl Change {
    const ALL: [Self; 12] = [
        Self::Unchanged,
        Self::Reformatted,
        Self::NewVersion,
        Self::Described,
        Self::Destructive,
        Self::BidiOverride,
        Self::TagCharacters,
        Self::NoSchema,
        Self::TooLarge,
        Self::DuplicateKey,
        Self::ListedTwice,
        Self::Gone,
    ];
}

impl Rule {
    const ALL: [Self; 6] = [
        Self::Enforce,
        Self::Notice,
        Self::DenyDestructive,
        Self::AllowReadOnly,
        Self::AskAll,
        Self::AskDestructive,
    ];
}

/// The moment at which an event happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// During an earlier call, which succeeds.
    DuringCall,
    /// During an earlier call, which it ends.
    EndsCall,
    /// When no call is running.
    BetweenCalls,
    /// When the checked call arrives, which the server refuses at first.
    RefusesCall,
}

impl Trigger {
    /// Tells whether the workbench knows of the event before the checked call. Then it must read the list before it sends
    /// the call, so the servers delay the list until the call was made.
    pub(super) fn delays_the_list(self) -> bool {
        match self {
            Self::DuringCall | Self::BetweenCalls => true,
            Self::EndsCall | Self::RefusesCall => false,
        }
    }
}

/// Returns the moment at which an event happens to a server, or nothing if it cannot happen there.
fn trigger(event: Event, server: ServerKind) -> Option<Trigger> {
    match (event, server) {
        (Event::Restart, ServerKind::LegacyStdio | ServerKind::ModernStdio | ServerKind::Sse) => {
            Some(Trigger::EndsCall)
        }
        // Without sessions a redeployed server is noticed by the end of `subscriptions/listen`.
        (Event::Restart | Event::ListChanged, ServerKind::ModernHttp) => {
            Some(Trigger::BetweenCalls)
        }
        (Event::Renewal, ServerKind::LegacyHttp)
        | (Event::HeaderMismatch, ServerKind::ModernHttp) => Some(Trigger::RefusesCall),
        (
            Event::ListChanged,
            ServerKind::LegacyStdio
            | ServerKind::ModernStdio
            | ServerKind::LegacyHttp
            | ServerKind::Sse,
        ) => Some(Trigger::DuringCall),
        // With sessions a redeployed server is noticed by the renewal.
        (Event::Restart, ServerKind::LegacyHttp)
        | (
            Event::Renewal,
            ServerKind::LegacyStdio
            | ServerKind::ModernStdio
            | ServerKind::ModernHttp
            | ServerKind::Sse,
        )
        | (
            Event::HeaderMismatch,
            ServerKind::LegacyStdio
            | ServerKind::ModernStdio
            | ServerKind::LegacyHttp
            | ServerKind::Sse,
        ) => None,
    }
}

/// Tells whether a server can make a change known at an event.
fn is_possible(change: Change, event: Event, server: ServerKind) -> bool {
    match change {
        // A server names its version when the workbench connects to it.
        Change::NewVersion => match event {
            Event::Restart => server != ServerKind::ModernHttp,
            Event::Renewal => true,
            Event::ListChanged | Event::HeaderMismatch => false,
        },
        Change::Unchanged
        | Change::Reformatted
        | Change::Described
        | Change::Destructive
        | Change::BidiOverride
        | Change::TagCharacters
        | Change::NoSchema
        | Change::TooLarge
        | Change::DuplicateKey
        | Change::ListedTwice
        | Change::Gone => true,
    }
}

/// The required outcome of the call after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// It runs, and nobody is asked.
    Runs,
    /// The user is asked before it runs.
    Asks,
    /// It does not run, and the client gets this code.
    Refused(&'static str),
}

/// The part of a changed definition that the rules look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It is the same definition.
    Same,
    /// It is the same definition of a different server.
    NewServer,
    /// It is different, with the same annotations.
    Different,
    Destructive,
    /// It cannot be offered, whatever the rules say.
    Withheld,
    /// There is none any more.
    Gone,
}

fn effect(change: Change) -> Effect {
    match change {
        Change::Unchanged | Change::Reformatted => Effect::Same,
        Change::NewVersion => Effect::NewServer,
        Change::Described | Change::ListedTwice => Effect::Different,
        Change::Destructive => Effect::Destructive,
        Change::BidiOverride
        | Change::TagCharacters
        | Change::NoSchema
        | Change::TooLarge
        | Change::DuplicateKey => Effect::Withheld,
        Change::Gone => Effect::Gone,
    }
}

/// Returns the required outcome of a call to a tool that was read-only before the event.
fn expected(effect: Effect, rule: Rule) -> Expected {
    match (effect, rule) {
        (
            Effect::Same,
            Rule::Enforce
            | Rule::Notice
            | Rule::DenyDestructive
            | Rule::AllowReadOnly
            | Rule::AskAll
            | Rule::AskDestructive,
        )
        | (
            Effect::NewServer,
            Rule::Notice
            | Rule::DenyDestructive
            | Rule::AllowReadOnly
            | Rule::AskAll
            | Rule::AskDestructive,
        )
        | (
            Effect::Different,
            Rule::Notice | Rule::DenyDestructive | Rule::AllowReadOnly | Rule::AskDestructive,
        )
        | (Effect::Destructive, Rule::Notice) => Expected::Runs,
        (Effect::Different, Rule::AskAll)
        | (Effect::Destructive, Rule::AllowReadOnly | Rule::AskAll | Rule::AskDestructive) => {
            Expected::Asks
        }
        (Effect::NewServer | Effect::Different | Effect::Destructive, Rule::Enforce) => {
            Expected::Refused("tool_not_approved")
        }
        (Effect::Destructive, Rule::DenyDestructive) => Expected::Refused("permission_denied"),
        (
            Effect::Withheld,
            Rule::Enforce
            | Rule::Notice
            | Rule::DenyDestructive
            | Rule::AllowReadOnly
            | Rule::AskAll
            | Rule::AskDestructive,
        ) => Expected::Refused("tool_withheld"),
        (
            Effect::Gone,
            Rule::Enforce
            | Rule::Notice
            | Rule::DenyDestructive
            | Rule::AllowReadOnly
            | Rule::AskAll
            | Rule::AskDestructive,
        ) => Expected::Refused("tool_unknown"),
    }
}

/// One combination that a server of one kind goes through.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Numbers the server and its tool.
    pub(super) number: usize,
    pub(super) event: Event,
    pub(super) trigger: Trigger,
    pub(super) change: Change,
    pub(super) rule: Rule,
    pub(super) expected: Expected,
}

impl Row {
    /// The name of its server.
    pub(super) fn server(&self) -> String {
        format!("s{}", self.number)
    }

    /// The name of its tool.
    pub(super) fn tool(&self) -> String {
        format!("t{}", self.number)
    }
}

/// Returns all combinations for a kind of server.
pub(super) fn rows(server: ServerKind) -> Vec<Row> {
    let mut rows = Vec::new();
    for event in Event::ALL {
        let Some(trigger) = trigger(event, server) else {
            continue;
        };
        for (change, rule) in pairs().filter(|it| is_possible(it.0, event, server)) {
            rows.push(Row {
                number: rows.len(),
                event,
                trigger,
                change,
                rule,
                expected: expected(effect(change), rule),
            });
        }
    }
    rows
}

fn pairs() -> impl Iterator<Item = (Change, Rule)> {
    let changes = Change::ALL.into_iter();
    changes.flat_map(|change| Rule::ALL.into_iter().map(move |rule| (change, rule)))
}
