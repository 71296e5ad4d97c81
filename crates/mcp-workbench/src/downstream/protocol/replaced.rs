//! Requests that a server refuses or that fail, and their causes: the tool list is outdated, or a remote server was
//! replaced by one with a different protocol. The session with such a server ends as soon as no response is pending,
//! and the next need reconnects.

use std::time::Duration;

use rawjson::{ObjectText, RawJson};
use tokio::{sync::watch, time::Instant};

use crate::{
    call::Outcome,
    downstream::{
        error::{CallError, HttpFault},
        protocol::{conversation::error_code, local::is_header_mismatch},
        server::Status,
        session::{Session, SessionContext, pending::PendingRequest},
    },
    era::{Era, HEADER_MISMATCH, UNSUPPORTED_VERSION, is_modern_code},
    wire::Answer,
};

/// The minimum time between two checks of the protocol: most refusals have nothing to do with it.
const PAUSE: Duration = Duration::from_secs(10);

/// The check if a server still speaks the protocol that it spoke at its start.
#[derive(Debug, Default)]
pub(crate) struct ProtocolCheck {
    known: ProtocolState,
    /// The time of the last check.
    asked_at: Option<Instant>,
}

/// The current knowledge about the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ProtocolState {
    /// Unchanged since the start, as far as is known.
    #[default]
    Unchanged,
    Checking,
    Changed,
}

impl ProtocolCheck {
    /// Records that the server answered the check, so its protocol is unchanged.
    pub(crate) fn take_sign_of_life(&mut self) {
        if self.known == ProtocolState::Checking {
            self.known = ProtocolState::Unchanged;
        }
    }

    /// Records the start of a check; returns false if it is too early for one.
    fn begin_asking(&mut self, now: Instant) -> bool {
        let is_due = self.asked_at.is_none_or(|at| at + PAUSE <= now);
        let begins = is_due && self.known == ProtocolState::Unchanged;
        if begins {
            *self = Self {
                known: ProtocolState::Checking,
                asked_at: Some(now),
            };
        }
        begins
    }
}

/// Returns true if the server speaks a different protocol now and no response is pending.
pub(crate) fn is_replaced(session: &Session) -> bool {
    session.protocol_check.known == ProtocolState::Changed && session.calls.is_empty()
}

/// Examines the refusal of a call.
pub(crate) fn take_refusal(session: &mut Session, answer: &Answer, status: &watch::Sender<Status>) {
    let Answer::Error(error) = answer else { return };
    match session.calls.era() {
        Era::Modern if is_header_mismatch(answer) => {
            // The headers of calls come from the tool list, so the list is outdated.
            session.announce_change(status);
        }
        // A legacy server at the same address would refuse the call too.
        Era::Modern if !is_modern_code(error) => check_protocol(session),
        // Only modern servers have these codes, so no further check is needed.
        Era::Legacy if session.link.is_remote() && misses_the_era(error) => {
            session.protocol_check.known = ProtocolState::Changed;
        }
        Era::Modern | Era::Legacy => {}
    }
}

pub(crate) fn take_failure(
    session: &mut Session,
    id: u64,
    fault: HttpFault,
    outcome: Outcome,
    context: &SessionContext<'_>,
) {
    let is_outdated = matches!(
        fault,
        HttpFault::SessionLost { .. } | HttpFault::AccountChanged
    );
    let not_modern = is_not_modern(&fault);
    let was_call = session.calls.pending.is_call(id);
    let fault = Box::new(fault);
    let error = CallError::Http { fault, outcome };
    // It did not run: its session or its account is no longer the current one. It waits for the new list.
    if was_call && is_outdated {
        session.calls.put_back(id, error);
        session.calls.send_queued(&mut session.link);
        session.list_now_if_awaited();
        return;
    }
    match session.calls.failed(id, error, &mut session.link) {
        Some(PendingRequest::List) => session.take_page(id, &Answer::Invalid, context),
        Some(PendingRequest::Listen) => session.subscription.ended(id, Instant::now()),
        Some(PendingRequest::Ping) if session.protocol_check.known == ProtocolState::Checking => {
            session.protocol_check.known = if not_modern {
                ProtocolState::Changed
            } else {
                ProtocolState::Unchanged
            };
        }
        _ if was_call && not_modern && session.calls.era() == Era::Modern => {
            check_protocol(session);
        }
        _ => {}
    }
}

/// Checks if a remote modern server is still modern. A process cannot change its protocol.
fn check_protocol(session: &mut Session) {
    if session.link.is_remote() && session.protocol_check.begin_asking(Instant::now()) {
        let nothing = ObjectText::new().finish();
        session.calls.ask(
            &mut session.link,
            PendingRequest::Ping,
            "server/discover",
            &nothing,
        );
    }
}

/// Returns true for an error that a modern server sends for a legacy request.
fn misses_the_era(error: &RawJson) -> bool {
    let code = error_code(error);
    [HEADER_MISMATCH, UNSUPPORTED_VERSION]
        .iter()
        .any(|it| it.to_string() == code)
}

/// Returns true if the fault may come from a server that is not modern.
fn is_not_modern(fault: &HttpFault) -> bool {
    match fault {
        HttpFault::Status { .. } => !fault.may_pass(),
        HttpFault::NotModern { .. } => true,
        _ => false,
    }
}
