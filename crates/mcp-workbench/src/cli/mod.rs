//! The command line: one file a command. Arguments are parsed, a command runs, and what it says becomes
//! an exit code.

mod call;
mod check;
mod configuration;
mod demo;
mod doctor;
mod http;
mod list;
mod output;
mod probe;
mod serve;
mod signals;
mod terminal;
mod token;
mod tokens;
mod typed;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::{config::Environment, demo::DemoServer, telemetry};

/// One MCP server in front of all the others.
///
/// Without a command it serves MCP over stdin and stdout.
#[derive(Parser)]
#[command(name = "mcp-workbench", version, max_term_width = 100)]
struct Arguments {
    /// The configuration file [default: `$WORKBENCH_CONFIG`, ./workbench-config.json, or
    /// mcp-workbench/workbench-config.json in your configuration directory]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    /// How much is logged to stderr [default: info while serving, error elsewhere]
    #[arg(long, value_name = "LEVEL", global = true)]
    log_level: Option<LogLevel>,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP over stdin and stdout (the default), or over HTTP
    Serve(serve::ServeArguments),
    /// Check the configuration and show what it holds
    Check,
    /// List toolboxes, servers and, with --tools, what the servers have
    List(list::ListArguments),
    /// Call a tool
    Call(call::CallArguments),
    /// Start every server and say what is wrong with it
    Doctor(doctor::DoctorArguments),
    /// Count what the definitions of tools cost a model
    Tokens(tokens::TokensArguments),
    /// Show a session with the built-in demo toolbox
    Demo {
        /// Print the demo's configuration instead, to be pasted into a client
        #[arg(long)]
        print_config: bool,
    },
    /// Be one of the demo's servers
    #[command(hide = true)]
    DemoServer {
        /// Which one
        server: DemoServer,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// Runs the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(target_os = "linux")]
    if let Some(done) = be_guard(&arguments) {
        return done;
    }
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error),
    };
    let environment = Environment::of_process();
    let colour = environment
        .variable("NO_COLOR")
        .is_none_or(std::ffi::OsStr::is_empty);
    let level = arguments.log_level.unwrap_or(match arguments.command {
        None | Some(Command::Serve(_)) => LogLevel::Info,
        // What is worth knowing is in the output.
        Some(_) => LogLevel::Error,
    });
    telemetry::start_logging(level.into(), colour);
    let config = arguments.config.as_deref();
    let done = match arguments.command {
        None => serve::run_stdio(config, &environment),
        Some(Command::Serve(arguments)) => serve::run(config, arguments, &environment),
        Some(Command::Check) => check::run(config, &environment),
        Some(Command::List(arguments)) => list::run(config, &arguments, &environment),
        Some(Command::Call(arguments)) => call::run(config, &arguments, &environment),
        Some(Command::Doctor(arguments)) => doctor::run(config, &arguments, &environment),
        Some(Command::Tokens(arguments)) => tokens::run(config, &arguments, &environment),
        Some(Command::Demo {
            print_config: false,
        }) => demo::run(colour),
        Some(Command::Demo { print_config: true }) => demo::print_config(),
        Some(Command::DemoServer { server }) => demo::be_server(server),
    };
    match done {
        Ok(code) => code,
        Err(error) => output::failure(&*error),
    }
}

/// What a command ends with: an exit code, or an error that is reported.
type Done = Result<ExitCode, Box<dyn std::error::Error>>;

/// The guard is this program too, started by itself; it must be small and needs nothing else.
#[cfg(target_os = "linux")]
fn be_guard(arguments: &[OsString]) -> Option<ExitCode> {
    use crate::downstream::process::guard;
    let [_, first, marker] = arguments else {
        return None;
    };
    if first != guard::GUARD_ARGUMENT {
        return None;
    }
    guard::run(marker.to_str()?);
    Some(ExitCode::SUCCESS)
}
