//! `import`: imports the servers of other MCP clients on this machine.

mod destination;
mod plan;
mod question;
mod report;
mod topic;

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use thiserror::Error;

use self::{
    destination::Destination,
    plan::{Addition, Grouping, ImportCandidate, assign, gather, skip_projects},
    report::{ImportReport, SearchedFile},
};
use super::{
    CommandResult, configuration::ConfigurationError, demo::program, output, terminal::OutputStyle,
};
use crate::{
    clients::{CLIENTS, Client, ClientName, DiscoveredFile, ReadError, client, find, own_servers},
    config::{EditError, Environment, Problems, WriteError},
    visible::escaped,
};

#[derive(Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(super) struct ImportArguments {
    /// Only from these clients [default: all that are found]
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    from: Vec<ClientName>,

    /// Also from project files in this directory, such as .mcp.json; their servers stay disabled until you enable them
    #[arg(long)]
    project: bool,

    /// Create one toolbox per client [default: one per topic, such as files, browser or data]
    #[arg(long, conflicts_with = "toolbox")]
    by_client: bool,

    /// Put all servers into this toolbox
    #[arg(long, value_name = "NAME", value_parser = filled)]
    toolbox: Option<String>,

    /// Show the result without writing it
    #[arg(long)]
    dry_run: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Reasons why nothing was imported. The configuration file is unchanged.
#[derive(Debug, Error)]
pub(super) enum ImportError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The user's configuration directory is unknown.
    #[error("there is no configuration directory\n  hint: set HOME, or name a file with --config")]
    NoDirectory,
    #[error(
        "no servers were found in the files of {clients}\n  \
         hint: run it in a project directory that has some, or start with `mcp-workbench init`"
    )]
    NothingFound { clients: String },
    #[error("none of the files could be read")]
    NothingReadable,
    /// The user stopped the import.
    #[error("nothing was written: stopped by the user")]
    Stopped,
    /// The configuration file cannot be edited.
    #[error("{}:{error}", file.display())]
    Edit {
        file: PathBuf,
        error: Box<EditError>,
    },
    /// The edited configuration would be invalid.
    #[error("this would make the configuration invalid\n{problems}")]
    Invalid { problems: Problems },
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Finds servers and imports them.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &ImportArguments,
    environment: &Environment,
) -> CommandResult {
    let destination = Destination::find(config, environment)?;
    let clients = arguments.clients();
    let (files, unreadable) = readable(find(&clients, environment));
    let own = program()?;
    let known = own_servers(destination.text());
    let searched: Vec<SearchedFile> = files.iter().map(SearchedFile::of).collect();
    let mut candidates = gather(files, &known, Path::new(&own));
    if candidates.is_empty() {
        return Err(nothing(&clients, &unreadable).into());
    }
    if !arguments.json {
        let style = OutputStyle::of_stdout(environment);
        output::data(&report::searched_files_table(
            &searched,
            environment.home(),
            style,
        ));
    }
    if !arguments.admits_projects(&candidates) {
        skip_projects(&mut candidates);
    }
    // Topics are needed only for servers that are imported, so skipped ones are gone by now.
    topic::classify(&mut candidates, &destination, environment);
    let grouping = arguments.grouping(&candidates)?;
    let additions = assign(&candidates, &grouping, &known);
    // The new text is validated below even for a dry run, so that its report is true.
    let written = !arguments.dry_run && !additions.is_empty();
    let text = destination.with(&additions, &grouping, environment)?;
    if written {
        let secret = additions.iter().any(|it| it.new.holds_secret());
        destination.write(&text, secret)?;
    }
    let done = ImportReport {
        file: &destination.file,
        searched: &searched,
        candidates: &candidates,
        additions: &additions,
        unreadable: &unreadable,
        written,
        home: environment.home(),
    };
    Ok(say(&done, arguments.json, environment))
}

/// Reports the result. An unreadable file makes the exit code a failure, even if the others were imported.
fn say(report: &ImportReport<'_>, as_json: bool, environment: &Environment) -> ExitCode {
    if as_json {
        output::raw(&escaped(&report.json()));
    } else {
        output::data(&report.table(OutputStyle::of_stdout(environment)));
        output::remark(&report.remarks());
        output::remark(&report.next_steps(environment));
    }
    if report.unreadable.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

impl ImportArguments {
    fn clients(&self) -> Vec<&'static Client> {
        if self.from.is_empty() {
            return CLIENTS.iter().collect();
        }
        let mut clients: Vec<&'static Client> = Vec::new();
        for name in &self.from {
            if !clients.iter().any(|known| known.name == *name) {
                clients.push(client(*name));
            }
        }
        clients
    }

    /// Shows the servers of project files in full, and returns true if they are imported: with `--project`, or if
    /// the user agrees.
    fn admits_projects(&self, candidates: &[ImportCandidate]) -> bool {
        let is_shown = !self.json && (self.project || self.asks());
        if is_shown && candidates.iter().any(ImportCandidate::is_from_project) {
            output::remark(&report::project_servers(candidates));
            return self.project || question::projects(&mut io::stdin().lock(), output::prompt);
        }
        self.project
    }

    /// Returns true if there is a terminal to ask on.
    fn asks(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Returns the grouping into toolboxes: from the arguments or from the user.
    fn grouping(&self, candidates: &[ImportCandidate]) -> Result<Grouping, ImportError> {
        if let Some(toolbox) = &self.toolbox {
            return Ok(Grouping::One(toolbox.clone()));
        }
        let groups = question::groups(candidates);
        if self.by_client {
            return Ok(Grouping::ByClient);
        }
        if !self.asks() || groups.is_empty() {
            let renamed = Vec::new();
            return Ok(Grouping::ByTopic { renamed });
        }
        question::grouping(&groups, &mut io::stdin().lock(), output::prompt)
            .ok_or(ImportError::Stopped)
    }
}

/// Separates readable files from unreadable ones, and prints a warning for each of the latter.
fn readable(files: Vec<DiscoveredFile>) -> (Vec<DiscoveredFile>, Vec<ReadError>) {
    let mut good = Vec::new();
    let mut errors = Vec::new();
    for file in files {
        match file.servers {
            Err(error) => {
                output::remark(&format!("warning: {error}"));
                errors.push(error);
            }
            Ok(servers) => good.push(DiscoveredFile {
                servers: Ok(servers),
                ..file
            }),
        }
    }
    (good, errors)
}

fn nothing(clients: &[&Client], unreadable: &[ReadError]) -> ImportError {
    if !unreadable.is_empty() {
        return ImportError::NothingReadable;
    }
    ImportError::NothingFound {
        clients: match clients {
            [client] => client.title.to_owned(),
            clients => format!("{} clients", clients.len()),
        },
    }
}

/// Refuses a text that is empty or only white space.
pub(super) fn filled(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("the name is empty");
    }
    Ok(text.to_owned())
}
