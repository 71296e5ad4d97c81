//! Commands that arrive while a server is not up. They wait for the next start, or are refused with the reason.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    call::ClientHandle,
    downstream::{
        error::{CallError, ConnectError},
        listing::ToolList,
        server::{Command, ConnectReply, QueuedCall, Urgency},
        session::resubscriptions::Resubscriptions,
    },
};

/// The commands that wait for a server.
#[derive(Default)]
pub(crate) struct WaitingCommands {
    pub(crate) connects: Vec<ConnectReply>,
    pub(crate) calls: VecDeque<Box<QueuedCall>>,
    /// Set if a caller asks for the server itself, and not only for a call.
    pub(crate) asked_for: bool,
    /// The subscriptions to restore after the restart.
    pub(crate) resubscriptions: Resubscriptions,
    /// The last client that asked for the server itself.
    pub(crate) asker: Option<Arc<dyn ClientHandle>>,
}

impl WaitingCommands {
    pub(crate) fn add(&mut self, command: Command) {
        match command {
            Command::Connect {
                reply,
                urgency,
                client,
            } => {
                self.connects.push(reply);
                self.asker = Some(client);
                self.asked_for |= urgency == Urgency::AskedFor;
            }
            Command::Call(call) => self.calls.push_back(call),
            Command::Cancel(ticket) => self.calls.retain(|call| call.ticket != ticket),
            Command::Follow(following) => self.resubscriptions.follow(following),
            // Every start reads the current entry, and a server that does not run needs no stop.
            Command::Adapt(_) | Command::Recheck | Command::Stop => {}
            Command::HandOver(successor) => self.resubscriptions.hand_over(&successor),
            Command::Inherit(resubscriptions) => self.resubscriptions.inherit(resubscriptions),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.connects.is_empty() && self.calls.is_empty()
    }

    /// Returns the client that the server is started for.
    pub(crate) fn client(&self) -> Option<Arc<dyn ClientHandle>> {
        let caller = self.calls.front().map(|call| &call.call.context.client);
        caller.or(self.asker.as_ref()).map(Arc::clone)
    }

    pub(crate) fn is_asked_for(&self) -> bool {
        self.asked_for
    }

    /// Answers the callers that wait for the server itself.
    pub(crate) fn tell(&mut self, tools: &Arc<ToolList>) {
        for reply in self.connects.drain(..) {
            let _ = reply.send(Ok(Arc::clone(tools)));
        }
        // Only those who asked for the server itself may skip the pause before the next start.
        self.asked_for = false;
        self.asker = None;
    }

    pub(crate) fn refuse(&mut self, error: &Arc<ConnectError>) {
        self.asked_for = false;
        self.asker = None;
        for reply in self.connects.drain(..) {
            let _ = reply.send(Err(Arc::clone(error)));
        }
        for call in self.calls.drain(..) {
            call.answer(Err(CallError::Connect(Arc::clone(error))));
        }
    }
}
