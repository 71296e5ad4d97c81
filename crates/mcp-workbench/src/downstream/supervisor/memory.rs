//! What is known of a server's tools from earlier runs: read from disk when somebody asks, once; and written there when
//! the server has told something.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    config::{Secrets, Server},
    downstream::{
        deferred_writes::DeferredWrites,
        kept::{KeptLists, NotKept},
        listing::{PinRules, ToolList},
        server::About,
        snapshot::ServerSnapshot,
        supervisor::SupervisorContext,
    },
    lock::ServerPins,
};

/// What one server is remembered by.
pub(crate) struct Memory {
    lists: Arc<KeptLists>,
    /// What is pinned of the server, as far as that is known without starting it.
    pins: ServerPins,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Kept,
    /// Why what was told last is not kept.
    not_kept: Option<Arc<NotKept>>,
}

/// What is on disk, as far as that is known.
#[derive(Default)]
enum Kept {
    #[default]
    Unread,
    Nothing,
    Tools(Arc<ToolList>),
}

impl Memory {
    /// The memory of a server of which nobody has asked.
    pub(crate) fn new(lists: Arc<KeptLists>, pins: ServerPins) -> Self {
        Self {
            lists,
            pins,
            state: Mutex::default(),
        }
    }

    /// The tools of an earlier run, if they were asked for before.
    pub(crate) fn remembered(&self) -> Option<Arc<ToolList>> {
        match &self.state().kept {
            Kept::Unread | Kept::Nothing => None,
            Kept::Tools(tools) => Some(Arc::clone(tools)),
        }
    }

    /// The tools of an earlier run, by the rules of the entry.
    pub(crate) fn recall(&self, server: &Server) -> Option<Arc<ToolList>> {
        let mut state = self.state();
        if matches!(state.kept, Kept::Unread) {
            let tools = self.lists.recall_pinned(server, &self.pins);
            state.kept = tools.map_or(Kept::Nothing, |tools| Kept::Tools(Arc::new(tools)));
        }
        drop(state);
        self.remembered()
    }

    /// A list of tools without those that may not be offered any more. The server is not started for that; whether it
    /// may be is seen when it is.
    pub(crate) fn ruled(&self, server: &Server, tools: &Arc<ToolList>) -> Arc<ToolList> {
        tools.ruled(&PinRules {
            pins: &self.pins,
            mode: server.pin,
        })
    }

    /// Reads them again by other rules, if they were read.
    pub(crate) fn renew(&self, server: &Server) {
        let known = std::mem::take(&mut self.state().kept);
        if !matches!(known, Kept::Unread) {
            self.recall(server);
        }
    }

    /// Keeps what the server has told for later runs.
    fn keep(&self, server: (&Server, Option<&str>), snapshot: &ServerSnapshot, secrets: &Secrets) {
        let kept = self.lists.keep(server, snapshot, secrets);
        if let Err(reason) = &kept {
            tracing::debug!("its tools are not kept: {reason}");
        }
        self.state().not_kept = kept.err().map(Arc::new);
    }

    /// Why what was told last is not kept.
    pub(crate) fn not_kept(&self) -> Option<Arc<NotKept>> {
        self.state().not_kept.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps what a server tells.
pub(crate) struct Keeper {
    about: Arc<About>,
    deferred_writes: Arc<DeferredWrites>,
}

impl Keeper {
    pub(crate) fn new(about: &Arc<About>, context: &SupervisorContext) -> Self {
        Self {
            about: Arc::clone(about),
            deferred_writes: Arc::clone(&context.deferred_writes),
        }
    }

    /// Keeps what the server has told when whoever waits for it has it, and at the latest at the end.
    pub(crate) fn keep_soon(
        &self,
        server: &Arc<Server>,
        snapshot: &ServerSnapshot,
        secrets: &Secrets,
    ) {
        let about = Arc::clone(&self.about);
        let (server, snapshot, secrets) = (Arc::clone(server), snapshot.clone(), secrets.clone());
        // Whoever signs in meanwhile may see others.
        let grant = self.about.access.grant();
        self.deferred_writes.add(move || {
            let whose = (&*server, grant.as_deref());
            about.memory.keep(whose, &snapshot, &secrets);
        });
    }
}
