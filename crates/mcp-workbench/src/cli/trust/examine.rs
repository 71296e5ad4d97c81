//! What the servers are now, beside what is pinned of them. A server that may not be started is not started for a look.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::chosen::Chosen;
use crate::{
    cli::{
        configuration::load_configuration,
        probe::{ProbeError, Probed, look_at, with_workbench},
        terminal::Progress,
    },
    config::{Config, Environment, PinMode, Secrets},
    ident::ServerIdentifier,
    lock::{Base, Differences, Digest, Launch, Lock, Observation, PinnedServer, Pins, canonical},
};

/// The lock file and the servers that are meant.
pub(super) struct Subject {
    /// The lock file.
    pub(super) pins: Pins,
    /// What it holds; nothing where it is not there.
    pub(super) lock: Arc<Lock>,
    /// What is configured of what is meant.
    config: Config,
    /// The servers in the order of the configuration.
    pub(super) servers: Vec<Configured>,
}

/// A server of the configuration.
pub(super) struct Configured {
    pub(super) place: ServerIdentifier,
    pub(super) mode: PinMode,
    pub(super) launch: Launch,
    secrets: Secrets,
}

/// A server, and what was found of it.
pub(super) struct Examined {
    pub(super) place: ServerIdentifier,
    pub(super) mode: PinMode,
    pub(super) pinned: Option<PinnedServer>,
    pub(super) found: Found,
    /// How it is started.
    pub(super) launch: Launch,
    /// What no definition may hold that is kept.
    pub(super) secrets: Secrets,
}

/// What was found of a server.
pub(super) enum Found {
    /// It is up.
    Up {
        observation: Observation,
        /// The canonical definitions of its tools by name.
        texts: BTreeMap<String, String>,
    },
    /// It did not come up.
    Failed(String),
    /// It was not started, since it would be started in a way that nobody has approved.
    NotStarted,
}

impl Subject {
    /// Reads the configuration and its lock file.
    pub(super) fn load(
        config: Option<&Path>,
        chosen: &Chosen,
        environment: &Environment,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut config = load_configuration(config, environment)?.config;
        let pins = Pins::new(&config);
        let lock = pins.lock()?.unwrap_or_default();
        chosen.choose(&mut config)?;
        let mut servers = Vec::new();
        for toolbox in config.toolboxes.values() {
            for server in toolbox.servers.values() {
                servers.push(Configured {
                    place: ServerIdentifier {
                        toolbox: toolbox.name.clone(),
                        server: server.name.clone(),
                    },
                    mode: server.pin,
                    launch: pins.launch_to_approve(server),
                    secrets: server.secrets(),
                });
            }
        }
        Ok(Self {
            pins,
            lock,
            config,
            servers,
        })
    }

    /// Whether a server would not be started by a workbench that serves.
    pub(super) fn is_barred(&self, server: &Configured) -> bool {
        let approved = self.lock.server(&server.place);
        server.mode == PinMode::Enforce
            && approved
                .is_none_or(|it| !it.launch.differing_before_start(&server.launch).is_empty())
    }

    /// Starts the servers that `starts` lets through, and looks at them.
    pub(super) fn examine(
        mut self,
        starts: impl Fn(&Self, &Configured) -> bool,
        environment: &Environment,
    ) -> Result<(Pins, Vec<Examined>), ProbeError> {
        let started = self.servers.iter().filter(|it| starts(&self, it));
        let started: Vec<ServerIdentifier> = started.map(|it| it.place.clone()).collect();
        unpin(&mut self.config, &started);
        let progress = Progress::on_stderr(environment, "starting servers");
        let probed = with_workbench(self.config, async |workbench| {
            look_at(&workbench, None, &progress).await
        })?;
        let lock = &self.lock;
        let servers = self.servers.into_iter().map(|server| {
            let mut probed = probed.iter();
            let probed = probed.find(|it| {
                it.toolbox == server.place.toolbox && it.server.name == server.place.server
            });
            Examined {
                pinned: lock.server(&server.place).cloned(),
                found: probed.map_or(Found::NotStarted, |it| Found::of(it, &server.launch)),
                place: server.place,
                mode: server.mode,
                launch: server.launch,
                secrets: server.secrets,
            }
        });
        let servers = servers.collect();
        Ok((self.pins, servers))
    }
}

/// Leaves only some servers in a configuration, and has nothing of them withheld or recorded.
fn unpin(config: &mut Config, servers: &[ServerIdentifier]) {
    for (name, toolbox) in &mut config.toolboxes {
        // Nobody else has a part of a configuration that was just read.
        let Some(toolbox) = Arc::get_mut(toolbox) else {
            continue;
        };
        let chosen = |server| {
            let mut servers = servers.iter();
            servers.any(|it| it.toolbox == *name && it.server == server)
        };
        toolbox.servers.retain(|server, _| chosen(server.clone()));
        for server in toolbox.servers.values_mut() {
            if let Some(server) = Arc::get_mut(server) {
                server.pin = PinMode::Off;
            }
        }
    }
}

impl Found {
    fn of(probed: &Probed, launch: &Launch) -> Self {
        let list = match &probed.tools {
            Ok(list) => list,
            Err(error) => return Self::Failed(error.to_string()),
        };
        let texts = list.tools().iter();
        let texts: Vec<(String, String)> = texts
            .map(|tool| (tool.name.to_string(), canonical(&tool.definition)))
            .collect();
        let tools = texts.iter();
        let tools = tools.map(|(name, text)| (name.clone(), Digest::of(text.as_bytes())));
        Self::Up {
            observation: Observation {
                launch: launch.saying(list.introduction.product.as_deref()),
                tools: tools.collect(),
            },
            texts: texts.into_iter().collect(),
        }
    }
}

impl Examined {
    /// In what the server is not what is pinned; nothing is known of tools where it is not up.
    pub(super) fn differences(&self) -> Differences {
        let pinned = self.pinned.clone().unwrap_or_default();
        match &self.found {
            Found::Up { observation, .. } => pinned.differences(observation, Base::Pinned),
            Found::Failed(_) | Found::NotStarted => Differences {
                launch: pinned.launch.differing_before_start(&self.launch),
                ..Differences::default()
            },
        }
    }
}
