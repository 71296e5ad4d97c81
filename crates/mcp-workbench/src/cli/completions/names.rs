//! Candidates from the configuration and the tool cache: the names of toolboxes, servers and tools. No server is started.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use clap::{Arg, ArgMatches, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::{
    cli::{Arguments, configuration::load_file_again},
    config::{Config, Environment, Toolbox, locate, quoted},
    downstream::ToolCache,
    visible::visible,
};

/// The names that complete a command line, given the words typed so far.
pub(super) struct CompletionNames {
    environment: Environment,
    /// The file of `--config`.
    file: Option<PathBuf>,
    toolbox: Option<String>,
    server: Option<String>,
    config: OnceLock<Option<Config>>,
}

impl CompletionNames {
    /// Reads the words before the one that is completed. Whatever is wrong with them is ignored.
    pub(super) fn new(words: &[OsString], environment: &Environment) -> Self {
        let mut names = Self {
            environment: environment.clone(),
            file: None,
            toolbox: None,
            server: None,
            config: OnceLock::new(),
        };
        // The command line is incomplete while it is typed, so parse errors are expected.
        let program = Arguments::command().ignore_errors(true);
        let matches = program.try_get_matches_from(words).ok();
        let mut level = matches.as_ref();
        while let Some(matches) = level {
            names.take(matches);
            level = matches.subcommand().map(|(_, below)| below);
        }
        names
    }

    fn take(&mut self, matches: &ArgMatches) {
        // Not every command has these arguments, and `get_one` panics for a command without them.
        let text = |id: &str| matches.try_get_one::<String>(id).ok()?.cloned();
        self.toolbox = text("toolbox").or(self.toolbox.take());
        self.server = text("server").or(self.server.take());
        let file = matches.try_get_one::<PathBuf>("config").ok().flatten();
        self.file = file.cloned().or(self.file.take());
    }

    /// Returns the configuration, if there is one that can be used.
    fn config(&self) -> Option<&Config> {
        let load = || {
            let located = locate(self.file.as_deref(), &self.environment).ok()?;
            // This refuses a FIFO, for which the shell would wait.
            let loaded = load_file_again(&located.file, &self.environment).ok()?;
            Some(loaded.config)
        };
        self.config.get_or_init(load).as_ref()
    }

    /// Returns the toolbox that is typed already, or all of them.
    fn chosen(&self) -> impl Iterator<Item = &Toolbox> {
        let toolboxes = self
            .config()
            .into_iter()
            .flat_map(|config| config.toolboxes.values());
        let chosen = self.toolbox.as_deref();
        toolboxes
            .filter(move |it| chosen.is_none_or(|name| name == it.name.as_str()))
            .map(|it| &**it)
    }

    fn toolboxes(&self) -> Vec<CompletionCandidate> {
        let toolboxes = self
            .config()
            .into_iter()
            .flat_map(|config| config.toolboxes.values());
        let candidates = toolboxes.filter_map(|toolbox| {
            let help = visible(&toolbox.description).into_owned();
            Some(candidate(toolbox.name.as_str())?.help(Some(help.into())))
        });
        candidates.collect()
    }

    /// Returns the clients of the configuration.
    fn clients(&self) -> Vec<CompletionCandidate> {
        let clients = self.config().into_iter();
        let names = clients.flat_map(|config| config.clients.keys());
        names.filter_map(|name| candidate(name.as_str())).collect()
    }

    /// Returns the servers of the chosen toolboxes, those that are disabled last.
    fn servers(&self) -> Vec<CompletionCandidate> {
        let names = self.chosen().flat_map(|toolbox| {
            let enabled = toolbox.servers.keys();
            enabled.chain(&toolbox.disabled)
        });
        names.filter_map(|name| candidate(name.as_str())).collect()
    }

    /// Returns the tools of the chosen servers that are in the tool cache.
    fn tools(&self) -> Vec<CompletionCandidate> {
        let Some(config) = self.config() else {
            return Vec::new();
        };
        let servers = self.chosen().flat_map(|toolbox| toolbox.servers.values());
        let wanted = self.server.as_deref();
        let cache = ToolCache::of(config);
        let servers = servers.filter(|it| wanted.is_none_or(|name| name == it.name.as_str()));
        let lists = servers.filter_map(|server| cache.list(server));
        let names = lists.flat_map(|(list, _)| {
            let tools = list.tools().iter();
            let names = tools.filter_map(|tool| candidate(tool.name.as_str()));
            names.collect::<Vec<_>>()
        });
        names.collect()
    }
}

/// Returns the candidate for a name. Shells insert it as it is, and servers choose the names of their tools: one that a
/// shell would take apart or run is left out.
fn candidate(name: &str) -> Option<CompletionCandidate> {
    // A name that begins with a hyphen would be taken for an option.
    let is_plain = quoted(name) == name && name.starts_with(char::is_alphanumeric);
    is_plain.then(|| CompletionCandidate::new(name))
}

/// Makes a command complete the arguments that are names of the configuration.
pub(super) fn complete_names(command: Command, names: &Arc<CompletionNames>) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|argument| complete_name(argument, &name, names))
        .mut_subcommands(|command| complete_names(command, names))
}

fn complete_name(argument: Arg, command: &str, names: &Arc<CompletionNames>) -> Arg {
    let candidates: fn(&CompletionNames) -> Vec<CompletionCandidate> =
        match (argument.get_id().as_str(), command) {
            // `init` creates a new file, so existing names do not fit.
            (_, "init") => return argument,
            ("toolbox" | "toolboxes" | "native", _) => CompletionNames::toolboxes,
            ("server", _) | ("name", "remove" | "enable" | "disable") => CompletionNames::servers,
            ("tool", _) => CompletionNames::tools,
            _ if argument.get_long() == Some("as") => CompletionNames::clients,
            _ => return argument,
        };
    let names = Arc::clone(names);
    argument.add(ArgValueCandidates::new(move || candidates(&names)))
}
