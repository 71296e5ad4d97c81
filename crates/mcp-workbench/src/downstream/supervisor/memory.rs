//! What is known of a server's tools from earlier runs: read from disk when somebody asks, once; and written there when
//! the server has told something.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    config::{Secrets, Server},
    downstream::{
        kept::{KeptLists, NotKept},
        later::Later,
        listing::{PinRules, ToolList},
        server::About,
        supervisor::SupervisorContext,
        told::Told,
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
    fn keep(&self, server: (&Server, Option<&str>), told: &Told, secrets: &Secrets) {
        let kept = self.lists.keep(server, told, secrets);
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
    later: Arc<Later>,
}

impl Keeper {
    pub(crate) fn new(about: &Arc<About>, context: &SupervisorContext) -> Self {
        Self {
            about: Arc::clone(about),
            later: Arc::clone(&context.later),
        }
    }

    /// Keeps what the server has told when whoever waits for it has it, and at the latest at the end.
    pub(crate) fn keep_soon(&self, server: &Arc<Server>, told: &Told, secrets: &Secrets) {
        let about = Arc::clone(&self.about);
        let (server, told, secrets) = (Arc::clone(server), told.clone(), secrets.clone());
        // Whoever signs in meanwhile may see others.
        let grant = self.about.access.grant();
        self.later.add(move || {
            let whose = (&*server, grant.as_deref());
            about.memory.keep(whose, &told, &secrets);
        });
    }
}
