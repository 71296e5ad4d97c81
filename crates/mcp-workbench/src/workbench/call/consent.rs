//! Consent: asks the user before a tool runs, where the configuration wants that, and remembers what the user has
//! permitted for a session or for one run of a script. The question is the workbench's own: it goes to the client along
//! the path of the call, its answer comes back only here, and nothing that a server sends or receives counts as an
//! answer.
//!
//! A consent names the definition that the user was shown. The server's task compares it with the definition that its
//! instance announced, at the moment of sending.

use std::{
    collections::HashMap,
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use ident::{ServerIdentifier, ToolIdentifier, ToolName};
use indexmap::IndexSet;
use rawjson::RawJson;
use tokio::sync::Notify;

use super::approvals::{Approvals, Decision, PendingApproval};
use crate::{
    alarm::timeout,
    call::{
        CallContext, ClientHandle, ClientId, Fingerprint, Principal, Question, Retry, ToolRequest,
    },
    downstream::{ServerHandle, can_answer},
    era::{Era, REQUEST_STATE, ResultType, result_type},
    events::{ApprovalChange, ApprovalState, Event},
    policy::permissions::{Approval, NoAnswer, NotPermitted, Offer, Reason, answer, question},
    sha256::Sha256,
    sync::lock,
    wire::Answer,
};

/// The time that a user has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// The maximum number of stored consents; beyond that the user is asked again.
const MAX_CONSENTS: usize = 10_000;
/// The maximum number of permitted calls that wait to be repeated; beyond that the user is asked again.
const MAX_ROUNDS: usize = 1024;

/// The consents that are valid for longer than one call.
pub(in crate::workbench) struct Consents {
    granted: Mutex<GrantedConsents>,
    /// Notified when a tool is permitted for longer than one call.
    changed: Notify,
    /// The calls that can be decided on the page.
    approvals: Arc<Approvals>,
}

#[derive(Default)]
struct GrantedConsents {
    /// The definition of each tool at the time it was permitted.
    tools: HashMap<ScopedTool, Fingerprint>,
    /// Permitted calls that their server answered with a question, so that the client repeats them.
    rounds: IndexSet<Fingerprint>,
}

/// A tool that is permitted in a scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ScopedTool {
    server: u64,
    scope: ConsentScope,
    tool: ToolName,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ConsentScope {
    /// A run of a script, until it ends.
    Run(Arc<str>),
    /// A client with a session, until it disconnects.
    Client(ClientId),
    /// The principal of stateless requests, until the workbench ends.
    Principal(Principal),
}

/// The scopes that a client can be offered.
struct Scopes {
    run: Option<ConsentScope>,
    session: Option<ConsentScope>,
}

impl Scopes {
    fn of(client: &dyn ClientHandle) -> Self {
        let session = match (client.own_era(), client.principal()) {
            (Era::Legacy, _) => Some(ConsentScope::Client(client.id())),
            // A stateless request of an anonymous client has no session.
            (Era::Modern, Principal::Anybody) => None,
            (Era::Modern, principal) => Some(ConsentScope::Principal(principal)),
        };
        Self {
            run: client.script_run().map(ConsentScope::Run),
            session,
        }
    }

    fn offer(&self) -> Offer {
        Offer {
            run: self.run.is_some(),
            session: self.session.is_some(),
        }
    }

    /// Returns the scope that the user has chosen; `None` for a single call.
    fn chosen(self, approval: Approval) -> Option<ConsentScope> {
        match approval {
            Approval::Once => None,
            Approval::Run => self.run,
            Approval::Session => self.session,
        }
    }
}

/// The consent that one call carries.
pub(super) struct Consent {
    /// The definition that was permitted.
    pub(super) definition: Fingerprint,
    /// The call that the user was asked about; `None` if the tool is permitted for longer.
    call: Option<AskedCall>,
}

impl Consent {
    /// Creates the consent to a tool that is permitted for longer than one call.
    pub(super) fn lasting(asked: &AskedTool) -> Self {
        Self {
            definition: asked.definition,
            call: None,
        }
    }

    /// Creates the consent to a call that its client repeats, and returns its digest. It is valid if the call was permitted.
    pub(super) fn repeated(
        server: &ServerHandle,
        asked: &AskedTool,
        request: &ToolRequest,
        context: &CallContext,
    ) -> Option<(Self, Fingerprint)> {
        let retry = context.retry.as_deref()?;
        let definition = asked.definition;
        let call = AskedCall::new(server, request, &*context.client);
        let round = call.round(definition, retry.state.as_ref());
        let call = Some(call);
        Some((Self { definition, call }, round))
    }

    /// Returns the digest of the call as its client repeats it, if its server has answered with a question. The consent covers
    /// that.
    pub(super) fn round(&self, result: &RawJson) -> Option<Fingerprint> {
        let call = self.call.as_ref()?;
        // Any other result ends the call, and the consent with it.
        let is_question = result_type(result) == ResultType::InputRequired;
        is_question.then(|| call.round(self.definition, result.member(REQUEST_STATE).as_ref()))
    }
}

/// A call that the user was asked about.
struct AskedCall {
    server: ServerIdentifier,
    principal: Principal,
    tool: ToolName,
    arguments: RawJson,
}

/// The verdict on a call.
pub(super) enum Permit {
    /// The call may run, with a consent if the user has to give one.
    Granted(Option<Box<Consent>>),
    /// The user has to be asked first.
    Ask(AskedTool),
}

/// A tool that the user is asked about.
pub(super) struct AskedTool {
    pub(super) name: ToolName,
    reason: Reason,
    pub(super) definition: Fingerprint,
}

impl Consents {
    pub(in crate::workbench) fn new(approvals: Arc<Approvals>) -> Self {
        Self {
            granted: Mutex::default(),
            changed: Notify::default(),
            approvals,
        }
    }

    /// Returns whether a call may run, as far as this is known without waiting. If a server has not listed its tools,
    /// its task decides once it has.
    pub(super) fn check(
        &self,
        server: &ServerHandle,
        request: &ToolRequest,
        context: &CallContext,
    ) -> Result<Permit, NotPermitted> {
        let Some(asked) = AskedTool::find(server, request.name.as_str())? else {
            return Ok(Permit::Granted(None));
        };
        let definition = asked.definition;
        if self.has_any(
            &asked.scoped(server, &Scopes::of(&*context.client)),
            definition,
        ) {
            let call = None;
            return Ok(Permit::Granted(Some(Box::new(Consent {
                definition,
                call,
            }))));
        }
        // A modern client repeats a call with the answers to its server. The user has permitted it already.
        if let Some(retry) = &context.retry {
            let call = AskedCall::new(server, request, &*context.client);
            if self.take_round(&call, definition, retry) {
                let call = Some(call);
                return Ok(Permit::Granted(Some(Box::new(Consent {
                    definition,
                    call,
                }))));
            }
        }
        Ok(Permit::Ask(asked))
    }

    /// Records a consent that was found in the store of the replicas.
    pub(super) fn remember_shared(
        &self,
        server: &ServerHandle,
        asked: &AskedTool,
        client: &dyn ClientHandle,
        consent: &Consent,
    ) {
        if let (None, Some(scope)) = (&consent.call, Scopes::of(client).session) {
            self.remember(asked.in_scope(server, scope), consent.definition);
        }
    }

    /// Asks the user whether a call may run. Returns the consent, and for how long it was given. Dropping the future withdraws
    /// the question.
    pub(super) async fn ask(
        &self,
        server: &ServerHandle,
        asked: &AskedTool,
        request: &ToolRequest,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<(Consent, Approval), NotPermitted> {
        let definition = asked.definition;
        let scopes = Scopes::of(&**client);
        let scoped = asked.scoped(server, &scopes);
        let answered = tokio::select! {
            biased;
            // If the tool is permitted for the run or the session in the meantime, the answer is no longer needed.
            () = self.granted(&scoped, client.own_era(), definition) => {
                return Ok((Consent { definition, call: None }, Approval::Once));
            }
            answered = self.decide_or_ask(server, asked, request, client) => answered,
        };
        report(
            server,
            asked,
            match answered {
                Ok(_) => ApprovalState::Granted,
                Err(_) => ApprovalState::Refused,
            },
        );
        let answered = match answered? {
            // The page can decide more than a client without a session was offered.
            Approval::Session if scopes.session.is_none() => Approval::Once,
            answered => answered,
        };
        // The user permitted the definition that was shown, not one that has replaced it since.
        let now = AskedTool::find(server, asked.name.as_str())?;
        // A server without a list is no obstacle: its task compares the consent again when it sends the call.
        if now.is_some_and(|now| now.definition != definition) {
            return Err(NotPermitted::Outdated);
        }
        if let Some(scope) = scopes.chosen(answered) {
            self.remember(asked.in_scope(server, scope), definition);
        }
        let call = Some(AskedCall::new(server, request, &**client));
        Ok((Consent { definition, call }, answered))
    }

    /// Asks the user by the client of the call, and lets the page decide. The first answer counts.
    async fn decide_or_ask(
        &self,
        server: &ServerHandle,
        asked: &AskedTool,
        request: &ToolRequest,
        client: &Arc<dyn ClientHandle>,
    ) -> Result<Approval, NotPermitted> {
        let _wait = client.wait_for_user();
        report(server, asked, ApprovalState::Waiting);
        let open = self.approvals.add(PendingApproval {
            tool: asked.identifier(server),
            arguments: request.arguments.clone(),
            reason: asked.reason.to_string(),
            client: client.identity(),
            since: SystemTime::now(),
            has_session: Scopes::of(&**client).session.is_some(),
            is_unlisted: matches!(asked.reason, Reason::NotListed),
        });
        let asking = ask_user(server, asked, &request.arguments, client);
        let Some(mut open) = open else {
            return asking.await;
        };
        tokio::select! {
            biased;
            decision = open.decided() => return approval(decision),
            answered = asking => match answered {
                // The client cannot be asked, but somebody looks at the page.
                Err(NotPermitted::NotAskable(_)) if self.approvals.is_watched() => {}
                answered => return answered,
            }
        }
        let decided = timeout(ANSWER_TIMEOUT, open.decided()).await;
        approval(decided.map_err(|_| NotPermitted::Unanswered(NoAnswer::Late))?)
    }

    /// Permits a call that its client repeats.
    pub(super) fn add_round(&self, round: Fingerprint) {
        let mut granted = self.state();
        // Clients may never come back, so the oldest goes. Its call is asked about again.
        if granted.rounds.len() >= MAX_ROUNDS {
            granted.rounds.shift_remove_index(0);
        }
        granted.rounds.insert(round);
    }

    /// Removes the consents of a client that has gone.
    pub(in crate::workbench) fn forget(&self, client: ClientId) {
        self.forget_scope(&ConsentScope::Client(client));
    }

    /// Removes the consents of a run that has ended.
    pub(in crate::workbench) fn forget_run(&self, run: &Arc<str>) {
        self.forget_scope(&ConsentScope::Run(Arc::clone(run)));
    }

    fn forget_scope(&self, gone: &ConsentScope) {
        self.state().tools.retain(|it, _| it.scope != *gone);
    }

    /// Waits until a tool is permitted in one of its scopes by the answer to another question. Cancel-safe.
    async fn granted(&self, scoped: &[ScopedTool], era: Era, definition: Fingerprint) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the check, so that a consent between check and wait is not missed.
            changed.as_mut().enable();
            if self.has_any(scoped, definition) {
                return;
            }
            match era {
                Era::Legacy => changed.await,
                // A stateless client gets the question in place of a result, so nobody may be waiting for this call
                // any more. It must not run without an answer.
                Era::Modern => pending().await,
            }
        }
    }

    fn has_any(&self, scoped: &[ScopedTool], definition: Fingerprint) -> bool {
        let granted = self.state();
        let mut found = scoped.iter().filter_map(|it| granted.tools.get(it));
        found.any(|it| *it == definition)
    }

    fn remember(&self, tool: ScopedTool, definition: Fingerprint) {
        let mut granted = self.state();
        // Beyond the bound a consent holds for its call only, and the user is asked again.
        if granted.tools.len() < MAX_CONSENTS {
            granted.tools.insert(tool, definition);
        }
        drop(granted);
        self.changed.notify_waiters();
    }

    /// Returns whether a call continues one that was permitted. The permission is used up.
    fn take_round(&self, call: &AskedCall, definition: Fingerprint, retry: &Retry) -> bool {
        let round = call.round(definition, retry.state.as_ref());
        self.state().rounds.shift_remove(&round)
    }

    fn state(&self) -> MutexGuard<'_, GrantedConsents> {
        lock(&self.granted)
    }
}

impl AskedTool {
    /// Returns the tool, if the user is to be asked about it.
    fn find(server: &ServerHandle, tool: &str) -> Result<Option<Self>, NotPermitted> {
        server.inspect(|status| {
            let Some(tools) = status.tools.as_ref().filter(|tools| tools.is_judged()) else {
                return Ok(None);
            };
            if let Some(denied) = tools.denied(tool) {
                return Err(denied);
            }
            Ok(tools.get(tool).and_then(|tool| {
                Some(Self {
                    name: tool.name.clone(),
                    reason: tool.asks.clone()?,
                    definition: tool.fingerprint(),
                })
            }))
        })
    }

    fn identifier(&self, server: &ServerHandle) -> ToolIdentifier {
        let place = server.identifier();
        ToolIdentifier {
            toolbox: place.toolbox.clone(),
            server: place.server.clone(),
            tool: self.name.clone(),
        }
    }

    fn in_scope(&self, server: &ServerHandle, scope: ConsentScope) -> ScopedTool {
        ScopedTool {
            server: server.number(),
            scope,
            tool: self.name.clone(),
        }
    }

    /// Returns the tool in each of the scopes.
    fn scoped(&self, server: &ServerHandle, scopes: &Scopes) -> Vec<ScopedTool> {
        let scopes = scopes.run.iter().chain(&scopes.session);
        let scoped = scopes.map(|scope| self.in_scope(server, scope.clone()));
        scoped.collect()
    }
}

impl AskedCall {
    fn new(server: &ServerHandle, request: &ToolRequest, client: &dyn ClientHandle) -> Self {
        Self {
            server: server.identifier().clone(),
            principal: client.principal(),
            tool: request.name.clone(),
            arguments: request.arguments.clone(),
        }
    }

    /// Returns the digest of the call as it is repeated with the state that its server gave out.
    fn round(&self, definition: Fingerprint, state: Option<&RawJson>) -> Fingerprint {
        let state = state.map_or("", RawJson::as_str);
        let caller = format!("{:?}", self.principal);
        let parts = [
            &caller,
            self.server.toolbox.as_str(),
            self.server.server.as_str(),
            self.tool.as_str(),
            self.arguments.as_str(),
            state,
        ];
        let mut hash = Sha256::new();
        hash.update(definition);
        for part in parts {
            // With their lengths, so that no two lists of parts have the same text.
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.finish()
    }
}

/// Reports a call that needs an approval to the event stream.
fn report(server: &ServerHandle, asked: &AskedTool, state: ApprovalState) {
    server.observed().emit_with(|| {
        Event::Approval(ApprovalChange {
            tool: asked.identifier(server),
            state,
        })
    });
}

/// Returns the meaning of a decision on the page.
fn approval(decision: Decision) -> Result<Approval, NotPermitted> {
    match decision {
        Decision::Once => Ok(Approval::Once),
        Decision::Session => Ok(Approval::Session),
        Decision::Deny => Err(NotPermitted::Refused),
    }
}

/// Asks the user about a tool. Dropping the future withdraws the question.
async fn ask_user(
    server: &ServerHandle,
    asked: &AskedTool,
    arguments: &RawJson,
    client: &Arc<dyn ClientHandle>,
) -> Result<Approval, NotPermitted> {
    let offer = Scopes::of(&**client).offer();
    let identifier = server.identifier();
    let params = question(identifier, &asked.name, arguments, &asked.reason, offer);
    if !can_answer(client, Question::Elicitation, Some(&params)) {
        return Err(NotPermitted::NotAskable(asked.reason.clone()));
    }
    let answered = timeout(ANSWER_TIMEOUT, client.ask_user(&params)).await;
    match answered.map_err(|_| NotPermitted::Unanswered(NoAnswer::Late))? {
        Some(Answer::Result(result)) => answer(&result, offer),
        Some(Answer::Error(_) | Answer::Invalid) | None => {
            Err(NotPermitted::Unanswered(NoAnswer::None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::test_client::json;

    const SHOWN: Fingerprint = [1; 32];
    const CHANGED: Fingerprint = [2; 32];
    const QUESTION: &str = r#"{"resultType":"input_required","requestState":"s1"}"#;

    fn server(name: &str) -> ServerIdentifier {
        ServerIdentifier {
            toolbox: "dev".into(),
            server: name.into(),
        }
    }

    fn asked_call() -> AskedCall {
        AskedCall {
            server: server("fs"),
            principal: Principal::Local,
            tool: "wipe".into(),
            arguments: json(r#"{"a":1}"#),
        }
    }

    fn retry(state: &str) -> Retry {
        Retry {
            responses: Some(json("{}")),
            state: Some(json(state)),
        }
    }

    /// Returns consents with one call that its server has answered with this result.
    fn answered_with(result: &str) -> Consents {
        let consents = Consents::new(Arc::default());
        let consent = Consent {
            definition: SHOWN,
            call: Some(asked_call()),
        };
        if let Some(round) = consent.round(&json(result)) {
            consents.add_round(round);
        }
        consents
    }

    #[test]
    fn a_round_is_bound_to_the_whole_call_and_counts_once() {
        let consents = answered_with(QUESTION);
        let state = retry(r#""s1""#);
        let takes = |call: AskedCall| consents.take_round(&call, SHOWN, &state);
        assert!(!consents.take_round(&asked_call(), CHANGED, &state));
        assert!(!consents.take_round(&asked_call(), SHOWN, &retry(r#""s2""#)));
        assert!(!takes(AskedCall {
            server: server("db"),
            ..asked_call()
        }));
        assert!(!takes(AskedCall {
            principal: Principal::Anybody,
            ..asked_call()
        }));
        assert!(!takes(AskedCall {
            tool: "read".into(),
            ..asked_call()
        }));
        assert!(!takes(AskedCall {
            arguments: json(r#"{"a":2}"#),
            ..asked_call()
        }));
        assert!(takes(asked_call()));
        assert!(!takes(asked_call()), "used twice");
    }

    #[test]
    fn a_call_that_is_complete_leaves_no_round() {
        let consents = answered_with(r#"{"content":[],"requestState":"s1"}"#);
        assert!(!consents.take_round(&asked_call(), SHOWN, &retry(r#""s1""#)));
    }

    #[test]
    fn a_consent_for_the_session_leaves_no_round() {
        let consent = Consent {
            definition: SHOWN,
            call: None,
        };
        assert_eq!(consent.round(&json(QUESTION)), None);
    }
}
