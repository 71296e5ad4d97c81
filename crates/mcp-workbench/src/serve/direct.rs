//! Calls that need nothing but their server: its tools are known, so the call is handed to the server's task at
//! once, and that task answers the client. Everything else about a request may have to wait for something,
//! and gets a task of its own.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{
    batch::ReplyPlace,
    connection::{Connection, too_many},
    in_flight::{RunningKey, Runs},
    methods::{Reply, Requester},
    native,
};
use crate::{
    call::{Call, CallRequest},
    contain::{contain, contain_now},
    downstream::{CallEnd, CallError, ServerHandle, Unfinished},
    ident::ToolIdentifier,
    meta,
    native::RoutedCall,
    wire::{RawJson, Request, RequestId},
};

/// A call that can be sent at once.
pub(super) struct DirectCall {
    server: Arc<ServerHandle>,
    request: CallRequest,
    meta: Option<RawJson>,
    kind: DirectKind,
}

impl DirectCall {
    /// Whether the client has attached something to its request.
    pub(super) fn has_meta(&self) -> bool {
        self.meta.is_some()
    }
}

/// How a call was asked for, which says how it is answered.
enum DirectKind {
    /// By `use_tool`.
    Meta(ToolIdentifier),
    /// By the tool's own name, in native mode.
    Native(RoutedCall),
}

/// What is left to do for a request when its call has ended.
struct Rest {
    connection: Arc<Connection>,
    place: ReplyPlace,
    kind: DirectKind,
    running: RunningKey,
}

impl Connection {
    /// Sends a call of a client of the legacy era, whose request has `size` bytes.
    pub(super) fn send_directly(
        self: &Arc<Self>,
        direct: DirectCall,
        id: RequestId,
        place: ReplyPlace,
        size: usize,
    ) {
        let DirectCall {
            server,
            request,
            meta,
            kind,
        } = direct;
        let context = Requester::Legacy(place.caller(self)).into_context(meta);
        let ticket = server.ticket();
        // Noted before the call is sent, so that its end finds it.
        let runs = Runs::AtServer(Arc::clone(&server), ticket);
        let running = match self.in_flight().begin(id, runs, size) {
            Ok(running) => running,
            Err(id) => return place.answer(too_many().to(&id)),
        };
        let rest = Rest {
            connection: Arc::clone(self),
            place,
            kind,
            running,
        };
        let call = Call { request, context };
        server.call_then(ticket, call, |end| rest.go_on(end));
    }

    /// The call that a request of the legacy era asks for, if it can be sent at once.
    pub(super) fn direct_call(&self, request: &Request) -> Option<DirectCall> {
        contain_now(|| self.find_direct_call(request))
            .ok()
            .flatten()
    }

    fn find_direct_call(&self, request: &Request) -> Option<DirectCall> {
        if request.method != "tools/call" {
            return None;
        }
        let params = request.params.as_ref()?;
        let workbench = self.workbench();
        if let Some(native) = workbench.native() {
            let ready = native.ready_call(params)?;
            return Some(DirectCall {
                server: ready.server,
                request: ready.call.request(),
                meta: ready.meta,
                kind: DirectKind::Native(ready.call),
            });
        }
        let call = meta::ready_call(workbench, params)?;
        if call.server.may_want_sign_in() && self.shows_addresses() {
            // It may have to wait for its user.
            return None;
        }
        Some(DirectCall {
            server: call.server,
            request: call.request,
            meta: call.meta,
            kind: DirectKind::Meta(call.tool),
        })
    }
}

impl Rest {
    fn go_on(self, end: CallEnd) {
        match end {
            CallEnd::Over(result) => self.answer(result),
            CallEnd::Unfinished(call) => self.follow(*call),
        }
    }

    /// Answers the client, unless it has cancelled the request.
    fn answer(self, result: Result<RawJson, CallError>) {
        let Some(id) = self.connection.in_flight().end(self.running) else {
            return self.place.withhold();
        };
        let reply = contain_now(|| self.kind.reply(&self.connection, result));
        let reply = reply.unwrap_or_else(|panicked| Reply::internal_error(panicked.to_string()));
        self.place.answer(reply.to(&id));
    }

    /// Goes on with the call in a task, unless the client has cancelled the request.
    fn follow(self, call: Unfinished) {
        let cancelled = CancellationToken::new();
        let in_flight = self.connection.in_flight();
        let Some(Runs::AtServer(server, _)) =
            in_flight.go_on_in_task(&self.running, cancelled.clone())
        else {
            return self.answer(Err(CallError::Internal));
        };
        let tasks = self.connection.tasks().clone();
        tasks.spawn(async move {
            let followed = cancelled.run_until_cancelled(contain(server.go_on(call)));
            let followed = followed.await.and_then(Result::ok);
            self.answer(followed.unwrap_or(Err(CallError::Internal)));
        });
    }
}

impl DirectKind {
    /// The answer for the client.
    fn reply(self, connection: &Connection, result: Result<RawJson, CallError>) -> Reply {
        match self {
            Self::Meta(tool) => {
                let recipient = || connection.recipient();
                meta::ended_call(connection.workbench(), tool, recipient, result).into()
            }
            Self::Native(call) => match connection.workbench().native() {
                Some(native) => native::called(native, call.ended(result)),
                None => Reply::method_not_found("tools/call"),
            },
        }
    }
}
