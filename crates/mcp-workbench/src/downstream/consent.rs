//! Asking the user before a tool runs, where the configuration wants that, and what the user has permitted for a
//! session. The question is ours: it goes to the client by the way of the call, its answer comes back here and
//! nowhere else, and nothing that a server sends or is answered counts as one.

use std::{
    collections::HashMap,
    future::pending,
    sync::{Arc, PoisonError},
    time::Duration,
};

use indexmap::IndexSet;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::{
    call::{CallContext, ClientHandle, ClientId, Principal, Question},
    downstream::{
        asks::questions::can_answer,
        error::CallError,
        server::{ServerHandle, Urgency},
    },
    era::{Era, REQUEST_STATE, ResultType, result_type},
    ident::ToolName,
    policy::permissions::{Answered, NoAnswer, NotPermitted, Offer, Reason, answer, question},
    wire::{Answer, RawJson},
};

/// How long a user may take to answer.
const PATIENCE: Duration = Duration::from_mins(10);
/// How many consents of one server are remembered; beyond that the user is asked again.
const MAX_CONSENTS: usize = 10_000;
/// How many calls of one server that were permitted wait to be made again; beyond that the user is asked again.
const MAX_ROUNDS: usize = 256;

/// What users have permitted for longer than one call.
#[derive(Default)]
pub(crate) struct Consents {
    /// The definition of the tool as it was when it was permitted.
    sessions: HashMap<(Session, ToolName), Fingerprint>,
    /// Calls that were permitted and that their server has answered with a question: the client makes them again.
    rounds: IndexSet<Fingerprint>,
}

/// That the user has permitted one call.
pub struct Consent {
    principal: Principal,
    tool: ToolName,
    arguments: RawJson,
}

/// For whom a consent holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Session {
    /// A client with which something was agreed on, until it goes.
    Client(ClientId),
    /// Whoever is behind requests that stand for themselves, until the workbench ends.
    Principal(Principal),
}

/// What a tool is.
type Fingerprint = [u8; 32];

/// A tool that the user is asked about.
struct Asked {
    name: ToolName,
    reason: Reason,
    fingerprint: Fingerprint,
}

impl ServerHandle {
    /// Whether a tool is not simply run: the user has to be asked, or it is denied.
    pub fn is_guarded(&self, tool: &str) -> bool {
        let status = self.status.borrow();
        let Some(tools) = &status.tools else {
            // What it said of its tools in an earlier run does not count.
            return self.has_permissions();
        };
        tools.is_judged()
            && match tools.get(tool) {
                Some(tool) => tool.asks.is_some(),
                None => tools.denied(tool).is_some(),
            }
    }

    fn has_permissions(&self) -> bool {
        !self.about.entry().server.permissions.is_empty()
    }

    /// Waits until a call of a tool is permitted, asking the user where the configuration wants that. A server that has
    /// not told its tools in this run is started for it. Dropping the future withdraws the question.
    pub async fn permit(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: &CallContext,
    ) -> Result<Option<Consent>, CallError> {
        if self.is_unmet() && self.has_permissions() {
            let client = Arc::clone(&context.client);
            self.connect(Urgency::ForCall, client).await?;
        }
        let Some(asked) = self.asks_about(tool)? else {
            return Ok(None);
        };
        let client = &context.client;
        let session = session_of(&**client);
        let consent = Consent {
            principal: client.principal(),
            tool: asked.name.clone(),
            arguments: arguments.clone(),
        };
        if let Some(retry) = &context.retry
            && self.takes_round(&consent, retry.state.as_ref())
        {
            return Ok(Some(consent));
        }
        let answered = tokio::select! {
            biased;
            // What was permitted for the session while this was asked needs no answer any more.
            () = self.consented(session, &asked) => return Ok(None),
            answered = self.ask_user(&asked, arguments, client, session) => answered?,
        };
        // The user has permitted what was shown, and nothing that has taken its place meanwhile.
        let now = self.asks_about(tool)?;
        if now.is_some_and(|now| now.fingerprint != asked.fingerprint) {
            return Err(NotPermitted::Outdated.into());
        }
        if let (Answered::Session, Some(session)) = (answered, session) {
            self.note_consent(session, asked);
        }
        Ok(Some(consent))
    }

    /// Asks the user about a tool. Dropping the future withdraws the question.
    async fn ask_user(
        &self,
        asked: &Asked,
        arguments: &RawJson,
        client: &Arc<dyn ClientHandle>,
        session: Option<Session>,
    ) -> Result<Answered, NotPermitted> {
        let offer = match session {
            Some(_) => Offer::Session,
            None => Offer::Once,
        };
        let identifier = &self.about.identifier;
        let params = question(identifier, &asked.name, arguments, &asked.reason, offer);
        if !can_answer(client, Question::Elicitation, Some(&params)) {
            return Err(NotPermitted::NotAskable(asked.reason.clone()));
        }
        let told = timeout(PATIENCE, client.ask_user(&params)).await;
        match told.map_err(|_| NotPermitted::Unanswered(NoAnswer::Late))? {
            Some(Answer::Result(result)) => answer(&result, offer),
            Some(Answer::Error(_) | Answer::Invalid) | None => {
                Err(NotPermitted::Unanswered(NoAnswer::None))
            }
        }
    }

    /// Waits until a tool is permitted for a session: it is already, or by the answer to another question. Cancel-safe.
    async fn consented(&self, session: Option<Session>, asked: &Asked) {
        let Some(session) = session else {
            return pending().await;
        };
        loop {
            let changed = self.about.consented.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.has_consent(session, asked) {
                return;
            }
            match session {
                Session::Client(_) => changed.await,
                // Nobody may be waiting any more for a call that was answered with the question.
                Session::Principal(_) => pending().await,
            }
        }
    }

    /// Notes what has come of a call that was permitted: if its server has asked something, the client makes it again,
    /// and that is the same call.
    pub fn note_round(&self, consent: &Consent, result: &RawJson) {
        if result_type(result) != ResultType::InputRequired {
            return;
        }
        let round = consent.round(result.member(REQUEST_STATE).as_ref());
        let consents = self.about.consents.lock();
        let mut consents = consents.unwrap_or_else(PoisonError::into_inner);
        if consents.rounds.len() >= MAX_ROUNDS {
            consents.rounds.shift_remove_index(0);
        }
        consents.rounds.insert(round);
    }

    /// Whether a call goes on with one that was permitted, which is good once.
    fn takes_round(&self, consent: &Consent, state: Option<&RawJson>) -> bool {
        let consents = self.about.consents.lock();
        let mut consents = consents.unwrap_or_else(PoisonError::into_inner);
        consents.rounds.shift_remove(&consent.round(state))
    }

    /// The tool, if the user is to be asked about it.
    fn asks_about(&self, tool: &str) -> Result<Option<Asked>, NotPermitted> {
        let status = self.status.borrow();
        let Some(tools) = status.tools.as_ref().filter(|tools| tools.is_judged()) else {
            return Ok(None);
        };
        if let Some(denied) = tools.denied(tool) {
            return Err(denied);
        }
        let asked = tools.get(tool).and_then(|tool| {
            Some(Asked {
                name: tool.name.clone(),
                reason: tool.asks.clone()?,
                fingerprint: Sha256::digest(tool.definition.as_bytes()).into(),
            })
        });
        Ok(asked)
    }

    fn has_consent(&self, session: Session, asked: &Asked) -> bool {
        let consents = self.about.consents.lock();
        let consents = consents.unwrap_or_else(PoisonError::into_inner);
        let known = consents.sessions.get(&(session, asked.name.clone()));
        known == Some(&asked.fingerprint)
    }

    fn note_consent(&self, session: Session, asked: Asked) {
        let consents = self.about.consents.lock();
        let mut consents = consents.unwrap_or_else(PoisonError::into_inner);
        if consents.sessions.len() < MAX_CONSENTS {
            let place = (session, asked.name);
            consents.sessions.insert(place, asked.fingerprint);
        }
        drop(consents);
        self.about.consented.notify_waiters();
    }

    /// Forgets what was permitted to a client that has gone.
    pub fn forget_consents(&self, client: ClientId) {
        let consents = self.about.consents.lock();
        let mut consents = consents.unwrap_or_else(PoisonError::into_inner);
        let gone = Session::Client(client);
        consents.sessions.retain(|(session, _), _| *session != gone);
    }
}

impl Consent {
    /// The call as it is made again with what its server gave out.
    fn round(&self, state: Option<&RawJson>) -> Fingerprint {
        let state = state.map_or("", RawJson::as_str);
        let principal = format!("{:?}", self.principal);
        let parts = [
            &principal,
            self.tool.as_str(),
            self.arguments.as_str(),
            state,
        ];
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// For whom a client's consent can hold: a request that stands for itself, of somebody of whom nothing is known, has
/// nobody to whom it could be remembered.
fn session_of(client: &dyn ClientHandle) -> Option<Session> {
    match (client.era(), client.principal()) {
        (Era::Legacy, _) => Some(Session::Client(client.id())),
        (Era::Modern, Principal::Anybody) => None,
        (Era::Modern, principal) => Some(Session::Principal(principal)),
    }
}
