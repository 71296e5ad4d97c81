//! Native mode: the workbench is transparent for one toolbox. The client sees what its servers have under
//! their own names, merged in the order of the file; a request goes to the one server that it concerns,
//! and its answer comes back as that server gave it.

mod error;
mod merged;
mod requests;
mod subscriptions;
mod uri_template;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};
use tokio::sync::broadcast::{self, error::TryRecvError};

use crate::{
    call::{ClientHandle, ClientId},
    downstream::{Change, ServerEvent, ServerFamily, ToolList},
    ident::ServerName,
    toolbox::Toolbox,
    wire::RawJson,
};

pub use error::NativeError;
use merged::{Family, Merged};
use subscriptions::Subscriptions;

/// The transparent view of one toolbox.
pub struct Native {
    toolbox: Arc<Toolbox>,
    /// The longest name that is given to what another server has under the same name.
    name_limit: usize,
    /// What was read from the servers and has not changed since.
    known: Mutex<Known>,
    subscriptions: Subscriptions,
}

struct Known {
    /// Counts the changes that servers have told of.
    generation: u64,
    lists: HashMap<Family, Arc<Merged>>,
    events: broadcast::Receiver<ServerEvent>,
}

/// What a client is told at its start.
pub struct Introduced {
    /// The capabilities of all servers together.
    pub capabilities: Value,
    /// What the servers say of themselves.
    pub instructions: Option<String>,
}

impl Native {
    /// The view of a toolbox whose servers tell their changes on `events`.
    pub fn new(
        toolbox: Arc<Toolbox>,
        name_limit: usize,
        events: broadcast::Receiver<ServerEvent>,
    ) -> Self {
        Self {
            toolbox,
            name_limit,
            known: Mutex::new(Known {
                generation: 0,
                lists: HashMap::new(),
                events,
            }),
            subscriptions: Subscriptions::default(),
        }
    }

    /// The toolbox that is shown.
    pub fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    /// What the servers of the open toolbox have, for the answer to `initialize`.
    pub fn introduce(&self) -> Introduced {
        let catalogue = self.toolbox.catalogue();
        let mut capabilities = Map::new();
        capabilities.insert("tools".into(), json!({ "listChanged": true }));
        for family in ServerFamily::ALL {
            if catalogue
                .iter()
                .any(|(_, list)| list.introduction.has(family))
            {
                let value = capability(family, &catalogue);
                capabilities.insert(family.capability().into(), value);
            }
        }
        Introduced {
            capabilities: Value::Object(capabilities),
            instructions: instructions(&catalogue),
        }
    }

    /// Whether a client wants to hear of a change; what it makes untrue is forgotten.
    pub fn concerns(&self, event: &ServerEvent, client: &dyn ClientHandle) -> bool {
        if event.server.toolbox != self.toolbox.config().name {
            return false;
        }
        self.known().take_events();
        match &event.change {
            Change::Prompts | Change::Resources => true,
            Change::Resource(params) => {
                let uri = params.member("uri");
                let uri = uri.as_ref().and_then(RawJson::as_text);
                uri.is_some_and(|uri| self.subscriptions.has(client.id(), &uri))
            }
        }
    }

    /// Forgets what a client that has gone wanted to hear of. What servers still say of it is dropped.
    pub fn forget_client(&self, client: ClientId) {
        self.subscriptions.remove_client(client);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Forgets the lists that have changed.
    fn take_events(&mut self) {
        loop {
            match self.events.try_recv() {
                Ok(event) => match event.change {
                    Change::Prompts => self.forget(&[Family::Prompts]),
                    Change::Resources => self.forget(&[Family::Resources, Family::Templates]),
                    Change::Resource(_) => {}
                },
                Err(TryRecvError::Lagged(_)) => {
                    self.generation += 1;
                    self.lists.clear();
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn forget(&mut self, families: &[Family]) {
        self.generation += 1;
        for family in families {
            self.lists.remove(family);
        }
    }
}

/// What is declared for a family that at least one server has.
fn capability(family: ServerFamily, catalogue: &[(ServerName, Arc<ToolList>)]) -> Value {
    match family {
        ServerFamily::Prompts => json!({ "listChanged": true }),
        ServerFamily::Resources => {
            let introductions = catalogue.iter().map(|(_, list)| &list.introduction);
            let subscribe = { introductions }.any(|it| it.subscriptions);
            json!({ "subscribe": subscribe, "listChanged": true })
        }
        ServerFamily::Completions | ServerFamily::Logging => json!({}),
    }
}

/// What the servers say of themselves: the words of the only one, or all with their names.
fn instructions(catalogue: &[(ServerName, Arc<ToolList>)]) -> Option<String> {
    let said = catalogue
        .iter()
        .filter_map(|(server, list)| Some((server, list.introduction.instructions.as_deref()?)));
    let said: Vec<_> = said.collect();
    match &said[..] {
        [] => None,
        [(_, only)] => Some((*only).to_owned()),
        several => {
            let each = several
                .iter()
                .map(|(server, words)| format!("## {server}\n\n{words}"));
            Some(each.collect::<Vec<_>>().join("\n\n"))
        }
    }
}
