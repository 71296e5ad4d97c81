//! `man`: the manual page, of the program or of one command.

use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};
use thiserror::Error;

use super::{Arguments, CommandResult, PROGRAM, output};
use crate::{near::nearest, visible::visible};

#[derive(Args)]
pub(super) struct ManArguments {
    /// A command [default: the whole program]
    command: Option<String>,
}

#[derive(Debug, Error)]
#[error("unknown command `{}`\n  hint: {}", visible(.name), hint(.near.as_deref()))]
struct UnknownCommand {
    name: String,
    near: Option<String>,
}

/// The exit codes of the program.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success."),
    (
        "1",
        "The command failed, a check found problems, or nothing was found.",
    ),
    ("2", "The command line is wrong."),
    (
        "3",
        "The tool that was called answered with an error result.",
    ),
    ("4", "The client left stdout unread for 60 s."),
];

/// The files that the program reads and writes.
const FILES: &[(&str, &str)] = &[
    (
        "./workbench-config.json",
        "The configuration, if neither --config nor WORKBENCH_CONFIG names a file.",
    ),
    (
        "~/.config/mcp-workbench/workbench-config.json",
        "The configuration, if there is none in the current directory. \
         On Windows it is below %APPDATA%.",
    ),
    (
        "~/.cache/mcp-workbench/servers",
        "The server cache: protocols, tools and approved definitions. It may be deleted at any time.",
    ),
    (
        "~/.local/state/mcp-workbench/token",
        "The generated token of HTTP clients, if no other is given.",
    ),
];

/// The environment variables that the program reads.
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "WORKBENCH_CONFIG",
        "The configuration file, if --config is not given.",
    ),
    (
        "WORKBENCH_TOKEN",
        "The token of HTTP clients, if --token-file is not given.",
    ),
    ("NO_COLOR", "If set and not empty, output has no colour."),
    (
        "XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_STATE_HOME",
        "Used instead of ~/.config, ~/.cache and ~/.local/state.",
    ),
    (
        "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY",
        "Proxies for connections to remote servers.",
    ),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "Certificates that remote servers are verified with.",
    ),
];

pub(super) fn run(arguments: &ManArguments) -> CommandResult {
    let mut program = Arguments::command().disable_help_subcommand(true);
    // Without this the global options are missing from the page of a command.
    program.build();
    let command = match &arguments.command {
        Some(name) => match find(&program, name) {
            Ok(command) => command,
            Err(error) => {
                output::failure(&error);
                return Ok(ExitCode::from(output::EXIT_USAGE));
            }
        },
        None => program,
    };
    let mut page = Vec::new();
    let source = format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(source).render(&mut page)?;
    let mut more = Roff::new();
    for (title, entries) in [
        ("EXIT STATUS", EXIT_STATUS),
        ("FILES", FILES),
        ("ENVIRONMENT", ENVIRONMENT),
    ] {
        more.control("SH", [title]);
        for (term, meaning) in entries {
            more.control("TP", []);
            more.text([bold(*term)]);
            more.text([roman(*meaning)]);
        }
    }
    more.to_writer(&mut page)?;
    output::data(&String::from_utf8(page)?);
    Ok(ExitCode::SUCCESS)
}

fn find(program: &Command, name: &str) -> Result<Command, UnknownCommand> {
    let known = || program.get_subcommands().filter(|it| !it.is_hide_set());
    let found = known().find(|it| it.get_name() == name).cloned();
    found.ok_or_else(|| UnknownCommand {
        name: name.to_owned(),
        near: nearest(name, known().map(Command::get_name)).map(str::to_owned),
    })
}

fn hint(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcp-workbench --help` lists the commands".to_owned(),
    }
}
