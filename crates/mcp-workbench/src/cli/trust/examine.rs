//! What the servers are now, beside what is pinned of them. A server that may not be started is not started for a look.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use thiserror::Error;

use super::{
    chosen::Chosen,
    remarks::{self, Remark},
};
use crate::{
    cli::{
        configuration::load_configuration,
        probe::{ProbeError, Probed, look_at, with_workbench},
        terminal::Progress,
    },
    config::{Config, Environment, PinMode, Secrets},
    ident::ServerIdentifier,
    lock::{Base, Differences, Digest, Launch, Lock, Observation, PinnedServer, Pins, canonical},
    visible::revealed,
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
    /// What the scanner says of it.
    pub(super) remarks: Vec<Remark>,
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
            let is_meant = |it: &&Probed| {
                it.toolbox == server.place.toolbox && it.server.name == server.place.server
            };
            let all = &probed;
            let probed = all.iter().find(is_meant);
            Examined {
                remarks: probed.map_or_else(Vec::new, |it| remarks::of(it, all)),
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

/// There is no such tool.
#[derive(Debug, Error)]
#[error(
    "the server has no tool `{}`, and none of this name is pinned\n  hint: `mcp-workbench trust list` shows them",
    revealed(.0)
)]
pub(super) struct UnknownTool(String);

/// Whether the tool that is meant is one that the server has or had.
pub(super) fn check_tool(servers: &[Examined], chosen: &Chosen) -> Result<(), UnknownTool> {
    let (Some(tool), Some(server)) = (&chosen.tool, servers.first()) else {
        return Ok(());
    };
    let pinned = server
        .pinned
        .as_ref()
        .is_some_and(|it| it.tools.contains_key(tool));
    let withheld = server.remarks.iter();
    let is_withheld = withheld
        .map(|it| &it.tool)
        .any(|it| it.as_ref() == Some(tool));
    let found = match &server.found {
        Found::Up { texts, .. } => texts.contains_key(tool),
        Found::Failed(_) | Found::NotStarted => true,
    };
    if pinned || found || is_withheld {
        Ok(())
    } else {
        Err(UnknownTool(tool.clone()))
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
    /// What the scanner says of what is not as pinned, and is meant.
    pub(super) fn remarks_on_changes(&self, chosen: &Chosen) -> Vec<&str> {
        let Differences { changed, new, .. } = self.differences();
        let is_approved = |tool: &String| changed.contains(tool) || new.contains(tool);
        let remarks = self.remarks.iter().filter(|remark| match &remark.tool {
            Some(tool) => chosen.has_tool(tool) && is_approved(tool),
            None => chosen.tool.is_none(),
        });
        remarks.map(|it| it.text.as_str()).collect()
    }

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
