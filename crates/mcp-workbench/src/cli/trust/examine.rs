//! Compares the servers as they are now with their pins. A server whose launch is not approved is not started.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use ident::ServerIdentifier;
use thiserror::Error;

use super::{
    remarks::{self, Remark},
    selection::TrustSelection,
};
use crate::{
    cli::{
        configuration::{StartLimit, load_configuration},
        probe::{ProbeError, ProbeResult, probe_servers, with_workbench},
        terminal::Progress,
    },
    config::{Config, Environment, PinMode, Purpose, Secrets},
    downstream::{Cause, Reviewable},
    lock::{Base, Differences, Digest, Launch, Lock, Observation, PinnedServer, Pins, canonical},
    visible::{revealed, visible_word},
};

/// The lock file and the selected servers.
pub(super) struct TrustReview {
    pub(super) pins: Pins,
    /// The content of the lock file; empty if it does not exist.
    pub(super) lock: Arc<Lock>,
    /// The selected part of the configuration.
    config: Config,
    /// The servers in the order of the configuration.
    pub(super) servers: Vec<ConfiguredServer>,
}

/// The remark about a lock file entry that has fewer parts of the launch than this version compares.
const OLDER_RECORD: &str = "recorded by an earlier version, which did not check files in its arguments, 'envFile' and \
                     loader variables";

/// A server of the configuration.
pub(super) struct ConfiguredServer {
    pub(super) place: ServerIdentifier,
    pub(super) mode: PinMode,
    pub(super) launch: Launch,
    secrets: Secrets,
}

/// A server with the result of examining it.
pub(super) struct ExaminedServer {
    pub(super) place: ServerIdentifier,
    pub(super) mode: PinMode,
    pub(super) pinned: Option<PinnedServer>,
    pub(super) found: StartOutcome,
    pub(super) launch: Launch,
    /// Secrets that must not be stored with a definition.
    pub(super) secrets: Secrets,
    pub(super) remarks: Vec<Remark>,
}

/// The result of starting a server.
pub(super) enum StartOutcome {
    Up {
        observation: Observation,
        /// The canonical definitions of its tools by name.
        texts: BTreeMap<String, String>,
        /// Tools withheld for unapproved findings, by name. They are included only if one of them is named: a user who
        /// approves a whole server has not looked at each of them.
        reviewable: BTreeMap<String, Reviewable>,
    },
    Failed(String),
    /// It was not started, because its launch is not approved.
    NotStarted,
}

impl TrustReview {
    /// Reads the configuration and its lock file.
    pub(super) fn load(
        config: Option<&Path>,
        chosen: &TrustSelection,
        limit: StartLimit,
        environment: &Environment,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut config = load_configuration(config, environment)?.config;
        limit.apply(&mut config);
        // Pins are about the whole configuration, so they are made before a part of it is chosen.
        let pins = Pins::new(&config);
        let lock = pins.lock()?.unwrap_or_default();
        chosen.choose(&mut config)?;
        let mut servers = Vec::new();
        for toolbox in config.toolboxes.values() {
            for server in toolbox.servers.values() {
                let place = ServerIdentifier {
                    toolbox: toolbox.name.clone(),
                    server: server.name.clone(),
                };
                servers.push(ConfiguredServer {
                    mode: pins.mode(&place, server.pin),
                    place,
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

    /// Returns true if a serving workbench would refuse to start the server.
    pub(super) fn is_barred(&self, server: &ConfiguredServer) -> bool {
        let approved = self.lock.server(&server.place);
        server.mode == PinMode::Enforce
            && approved
                .is_none_or(|it| !it.launch.differing_before_start(&server.launch).is_empty())
    }

    /// Starts the servers for which `starts` returns true, and examines them.
    pub(super) fn examine(
        mut self,
        starts: impl Fn(&Self, &ConfiguredServer) -> bool,
        environment: &Environment,
    ) -> Result<(Pins, Vec<ExaminedServer>), ProbeError> {
        let started: Vec<ServerIdentifier> = self
            .servers
            .iter()
            .filter(|it| starts(&self, it))
            .map(|it| it.place.clone())
            .collect();
        // With pins on, changed tools would be withheld and could not be compared.
        unpin(&mut self.config, &started);
        let progress = Progress::on_stderr(environment, "starting servers");
        let probed = with_workbench(self.config, async |workbench| {
            probe_servers(&workbench, None, &progress).await
        })?;
        let lock = &self.lock;
        let servers = self.servers.into_iter().map(|server| {
            let is_meant = |it: &&ProbeResult| {
                it.toolbox == server.place.toolbox && it.server.name == server.place.server
            };
            let all = &probed;
            let probed = all.iter().find(is_meant);
            ExaminedServer {
                remarks: probed.map_or_else(Vec::new, |it| remarks::of(it, all)),
                pinned: lock.server(&server.place).cloned(),
                found: probed.map_or(StartOutcome::NotStarted, |it| {
                    StartOutcome::of(it, &server.launch)
                }),
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

#[derive(Debug, Error)]
#[error(
    "the server has no tool `{}`, and none of this name is pinned\n  hint: `mcp-workbench trust list` shows them",
    revealed(.0)
)]
pub(super) struct UnknownTool(String);

/// Resolves the selected tool among those that the server has or had, and includes it if it is withheld for a
/// finding. The name may be the visible form from a message, because messages tell the user to paste a command.
pub(super) fn choose_tool(
    servers: &mut [ExaminedServer],
    chosen: &TrustSelection,
) -> Result<TrustSelection, UnknownTool> {
    let (Some(tool), Some(server)) = (&chosen.tool, servers.first_mut()) else {
        return Ok(chosen.clone());
    };
    let names = server.tool_names();
    let exact = names.iter().find(|name| *name == tool);
    let is_shown = |name: &&String| visible_word(name) == **tool || revealed(name) == **tool;
    let found = exact.or_else(|| names.iter().find(is_shown));
    let found = match (found, &server.found) {
        (Some(found), _) => found.clone(),
        (None, StartOutcome::Failed(_) | StartOutcome::NotStarted) => tool.clone(),
        (None, StartOutcome::Up { .. }) => return Err(UnknownTool(tool.clone())),
    };
    server.found.take_up(&found);
    Ok(TrustSelection {
        tool: Some(found),
        ..chosen.clone()
    })
}

/// Removes all other servers from a configuration, and switches pinning off so that nothing is withheld or
/// recorded.
fn unpin(config: &mut Config, servers: &[ServerIdentifier]) {
    config.purpose = Purpose::Review;
    for (name, toolbox) in &mut config.toolboxes {
        // The configuration was just loaded, so nothing else shares it.
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

impl StartOutcome {
    fn of(probed: &ProbeResult, launch: &Launch) -> Self {
        let list = match &probed.tools {
            Ok(list) => list,
            Err(error) => return Self::Failed(error.to_string()),
        };
        let skills = list
            .skills
            .iter()
            .map(|skill| (skill.uri.clone(), canonical(&skill.entry)));
        let texts: Vec<(String, String)> = list
            .tools()
            .iter()
            .map(|tool| (tool.name.to_string(), canonical(&tool.definition)))
            .chain(skills)
            .collect();
        let tools = texts
            .iter()
            .map(|(name, text)| (name.as_str().into(), Digest::of(text.as_bytes())));
        let released = list.tools().iter().filter_map(|tool| {
            let code = tool.released?.to_owned();
            Some((tool.name.to_string(), code))
        });
        let reviewable = list.withheld.iter().filter_map(|it| match &it.cause {
            Cause::Finding(reviewable) => Some((it.name.to_string(), reviewable.clone())),
            Cause::Definition | Cause::NotPermitted | Cause::NotApproved => None,
        });
        Self::Up {
            observation: Observation {
                launch: launch.saying(list.introduction.product.as_deref()),
                tools: tools.collect(),
                findings: released.collect(),
            },
            texts: texts.into_iter().collect(),
            reviewable: reviewable.collect(),
        }
    }

    /// Moves a tool that is withheld for a finding to the offered ones.
    fn take_up(&mut self, tool: &str) {
        let Self::Up {
            observation,
            texts,
            reviewable,
        } = self
        else {
            return;
        };
        if let Some((name, Reviewable { definition, code })) = reviewable.remove_entry(tool) {
            let text = canonical(&definition);
            let digest = Digest::of(text.as_bytes());
            observation.tools.push((name.as_str().into(), digest));
            observation.findings.insert(name.clone(), code.to_owned());
            texts.insert(name, text);
        }
    }
}

impl ExaminedServer {
    /// Returns the reason why the selected tool cannot be approved: its definition is invalid.
    pub(super) fn unapprovable(&self, chosen: &TrustSelection) -> Option<&str> {
        let tool = chosen.tool.as_ref()?;
        let is_pinned = self.pinned.iter().any(|it| it.tools.contains_key(tool));
        let is_missing =
            matches!(&self.found, StartOutcome::Up { texts, .. } if !texts.contains_key(tool));
        let mut remarks = self.remarks.iter();
        let remark = remarks.find(|it| it.tool.as_ref() == Some(tool))?;
        (is_missing && !is_pinned).then_some(remark.text.as_str())
    }

    /// Returns the names of the tools that the server has or had, withheld ones included.
    fn tool_names(&self) -> Vec<String> {
        let pinned = self.pinned.iter().flat_map(|it| it.tools.keys());
        let remarked = self.remarks.iter().filter_map(|it| it.tool.as_ref());
        let (texts, reviewable) = match &self.found {
            StartOutcome::Up {
                texts, reviewable, ..
            } => (Some(texts.keys()), Some(reviewable.keys())),
            StartOutcome::Failed(_) | StartOutcome::NotStarted => (None, None),
        };
        let found = texts
            .into_iter()
            .flatten()
            .chain(reviewable.into_iter().flatten());
        pinned.chain(found).chain(remarked).cloned().collect()
    }

    /// Returns the scanner's remarks about selected changes.
    pub(super) fn remarks_on_changes(&self, chosen: &TrustSelection) -> Vec<&str> {
        let Differences { changed, new, .. } = self.differences();
        let is_approved = |tool: &String| changed.contains(tool) || new.contains(tool);
        let remarks = self.remarks.iter().filter(|remark| match &remark.tool {
            Some(tool) => chosen.has_tool(tool) && is_approved(tool),
            None => chosen.tool.is_none(),
        });
        remarks.map(|it| it.text.as_str()).collect()
    }

    /// Returns the remark about an entry that was recorded by an earlier version.
    pub(super) fn older(&self) -> Option<&'static str> {
        let pinned = self.pinned.as_ref()?;
        pinned
            .launch
            .is_older_than(&self.launch)
            .then_some(OLDER_RECORD)
    }

    /// Returns the differences from the pin; without tools if the server is not up.
    pub(super) fn differences(&self) -> Differences {
        let pinned = self.pinned.clone().unwrap_or_default();
        match &self.found {
            StartOutcome::Up { observation, .. } => pinned.differences(observation, Base::Pinned),
            StartOutcome::Failed(_) | StartOutcome::NotStarted => Differences {
                launch: pinned.launch.differing_before_start(&self.launch),
                ..Differences::default()
            },
        }
    }
}
