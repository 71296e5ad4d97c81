//! The command line: one file per command. `main` parses the arguments, runs a command and turns its result into
//! an exit code.

mod add;
mod allow;
mod call;
mod check;
mod completions;
mod configuration;
mod deferred;
mod demo;
mod doctor;
mod editing;
mod host;
mod http;
mod import;
mod init;
mod install;
mod list;
mod live;
mod log;
mod man;
mod oauth;
mod output;
mod part;
mod permissions;
mod probe;
mod reload;
mod remove;
mod run;
mod schema;
mod search;
mod serve;
mod shell;
mod signals;
mod switch;
mod terminal;
mod token;
mod tokens;
mod trust;
mod typed;
mod ui;
mod usage;
mod warm;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use ::demo::DemoServer;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, error::ErrorKind};
use tracing::level_filters::LevelFilter;

use self::{deferred::Deferred, switch::Switch};
use crate::{
    config::Environment,
    jq::worker,
    scripts,
    telemetry::{self, LogSettings},
};

/// The program name as a user types it.
const PROGRAM: &str = "mcp-workbench";

/// One MCP server in front of all the others.
///
/// Without a command it serves MCP over stdin and stdout.
#[derive(Parser)]
#[command(name = PROGRAM, version, max_term_width = 80)]
struct CommandLine<C: Subcommand> {
    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    command: Option<C>,
}

type Arguments = CommandLine<Command>;

#[derive(Args)]
struct Options {
    /// The configuration file [default: `$WORKBENCH_CONFIG`, ./workbench-config.json, or
    /// mcp-workbench/workbench-config.json in your configuration directory]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    /// Log level on stderr [default: info while serving, error elsewhere]
    #[arg(long, value_name = "LEVEL", global = true)]
    log_level: Option<LogLevel>,

    /// Format of log lines
    #[arg(long, value_name = "FORMAT", global = true, default_value = "text")]
    log_format: LogFormat,

    /// Append log lines to this file instead of stderr. At 10 MiB it is renamed to FILE.1
    #[arg(long, value_name = "FILE", global = true)]
    log_file: Option<PathBuf>,
    /// Serve only what this client of the configuration may use
    #[arg(long = "as", value_name = "NAME")]
    client: Option<String>,
}

/// The only command that starts for every client.
#[derive(Subcommand)]
enum ServeCommand {
    Serve(serve::ServeArguments),
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP over stdin and stdout (the default), or over HTTP
    Serve(Deferred<serve::ServeArguments>),
    /// Create a configuration file
    Init(Deferred<init::InitArguments>),
    /// Import servers from the MCP clients on this machine
    Import(Deferred<import::ImportArguments>),
    /// Add the workbench to the configuration of an MCP client
    Install(Deferred<install::InstallArguments>),
    /// Add a server to a toolbox
    Add(Deferred<add::AddArguments>),
    /// Remove a server or a toolbox from the configuration
    Remove(Deferred<remove::RemoveArguments>),
    /// Enable servers
    Enable(Deferred<switch::SwitchArguments>),
    /// Disable servers without removing them from the configuration
    Disable(Deferred<switch::SwitchArguments>),
    /// Check the configuration and show a summary
    Check,
    /// List toolboxes, servers and, with --tools, their tools
    List(Deferred<list::ListArguments>),
    /// Find tools in all toolboxes by what they do
    Search(Deferred<search::SearchArguments>),
    /// Call a tool
    Call(Deferred<call::CallArguments>),
    /// Run a script that calls tools
    Run(Deferred<run::RunArguments>),
    /// Start every server and report problems
    Doctor(Deferred<doctor::DoctorArguments>),
    /// Count the tokens that tool definitions cost a model
    Tokens(Deferred<tokens::TokensArguments>),
    /// Start servers once to fill the tool cache
    Warm(Deferred<warm::WarmArguments>),
    /// Show which tools may be called, and print rules for a client
    Permissions(Deferred<permissions::PermissionsArguments>),
    /// Let a tool run without asking
    Allow(Deferred<allow::AllowArguments>),
    /// Show the audit log of tool calls
    Log(Deferred<log::LogArguments>),
    /// Open a page that shows servers, calls and approvals of the host or of the workbench that serves over HTTP
    Ui(Deferred<ui::UiArguments>),
    /// Show and control the host or the workbench that serves over HTTP, like the page does
    Live(Deferred<live::LiveArguments>),
    /// Review and approve changes to servers and tools
    Trust(Deferred<trust::TrustArguments>),
    /// Sign in to a remote server
    Login(Deferred<oauth::LoginArguments>),
    /// Sign out of remote servers
    Logout(Deferred<oauth::LogoutArguments>),
    /// Show sign-in status of remote servers
    Auth(Deferred<oauth::AuthArguments>),
    /// Show a session with the built-in demo toolbox
    Demo {
        /// Print the demo's configuration instead
        #[arg(long)]
        print_config: bool,
    },
    /// Print the JSON Schema of the configuration
    Schema,
    /// Print a shell completion script for commands, options and names
    Completions(Deferred<completions::CompletionsArguments>),
    /// Print the manual page of the program or of a command
    Man(Deferred<man::ManArguments>),
    /// Show the shared hosts, their clients and their servers
    #[cfg(unix)]
    Ps(Deferred<host::PsArguments>),
    /// Stop a server of a shared host, or the host
    #[cfg(unix)]
    Stop(Deferred<host::SelectionArguments>),
    /// Restart a server of a shared host, or the host
    #[cfg(unix)]
    Restart(Deferred<host::SelectionArguments>),
    /// Run the host that the clients of a configuration share
    #[cfg(unix)]
    #[command(hide = true)]
    HostProcess(Deferred<host::HostArguments>),
    /// Run one of the demo's servers
    #[command(hide = true)]
    DemoServer {
        /// The server
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

#[derive(Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl From<LogFormat> for telemetry::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
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

pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(target_os = "linux")]
    if let Some(done) = be_guard(&arguments) {
        return done;
    }
    if let Some(done) = be_worker(&arguments) {
        return done;
    }
    if matches!(&arguments[..], [_, first] if first == worker::WORKER_ARGUMENT) {
        return worker::run();
    }
    let environment = Environment::of_process();
    // A completion script passes an unfinished command line, which would not parse.
    if let Some(done) = completions::answer(&arguments, &environment) {
        return done.unwrap_or_else(|error| output::failure(&*error));
    }
    let Arguments { options, command } = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&usage::with_suggestion(error)),
    };
    let may_serve = matches!(&command, None | Some(Command::Serve(_)));
    if options.client.is_some() && !may_serve {
        let error = Arguments::command().error(
            ErrorKind::ArgumentConflict,
            "--as is an option of serving: `mcp-workbench --as NAME`, or `mcp-workbench serve --as NAME`",
        );
        return output::usage(&error);
    }
    let colour = environment
        .variable("NO_COLOR")
        .is_none_or(std::ffi::OsStr::is_empty);
    let level = options.log_level.unwrap_or(match command {
        None | Some(Command::Serve(_)) => LogLevel::Info,
        #[cfg(unix)]
        Some(Command::HostProcess(_)) => LogLevel::Info,
        // Other commands report everything that matters in their output.
        Some(_) => LogLevel::Error,
    });
    let logging = telemetry::start_logging(LogSettings {
        level: level.into(),
        format: options.log_format.into(),
        file: options.log_file,
        colour,
    });
    if let Err(error) = logging {
        return output::failure(&error);
    }
    let config = options.config.as_deref();
    let done = match command {
        None => serve::run_stdio(config, options.client, &environment),
        Some(Command::Serve(serve)) => serve::run(config, serve.0, options.client, &environment),
        Some(command) => run(command, config, &environment),
    };
    match done {
        Ok(code) => code,
        Err(error) => output::failure(&*error),
    }
}

/// Parses the command line. Clap exits by itself with `parse`; here its output goes through `output` like all other text.
fn parse(arguments: Vec<OsString>) -> Result<Arguments, clap::Error> {
    // Clap copies the global options into every command. To do that for thirty commands would be a fifth of the
    // instructions of a start, so the command that clients start is tried alone. All others, help and errors need the
    // whole definition.
    if let Ok(serving) = CommandLine::try_parse_from(&arguments) {
        let command = serving.command;
        return Ok(Arguments {
            options: serving.options,
            command: command.map(|ServeCommand::Serve(it)| Command::Serve(Deferred(it))),
        });
    }
    Arguments::try_parse_from(arguments)
}

fn run(command: Command, config: Option<&Path>, environment: &Environment) -> CommandResult {
    match command {
        // Not reached: `main` handles it with the `--as` in front of the command.
        Command::Serve(arguments) => serve::run(config, arguments.0, None, environment),
        Command::Init(arguments) => init::run(config, &arguments, environment),
        Command::Import(arguments) => import::run(config, &arguments, environment),
        Command::Install(arguments) => install::run(config, &arguments, environment),
        Command::Add(arguments) => add::run(config, &arguments, environment),
        Command::Remove(arguments) => remove::run(config, &arguments, environment),
        Command::Enable(arguments) => switch::run(config, Switch::On, &arguments, environment),
        Command::Disable(arguments) => switch::run(config, Switch::Off, &arguments, environment),
        Command::Check => check::run(config, environment),
        Command::List(arguments) => list::run(config, &arguments, environment),
        Command::Search(arguments) => search::run(config, &arguments, environment),
        Command::Call(arguments) => call::run(config, &arguments, environment),
        Command::Run(arguments) => run::run(config, &arguments, environment),
        Command::Doctor(arguments) => doctor::run(config, &arguments, environment),
        Command::Tokens(arguments) => tokens::run(config, &arguments, environment),
        Command::Warm(arguments) => warm::run(config, &arguments, environment),
        Command::Permissions(arguments) => permissions::run(config, &arguments, environment),
        Command::Allow(arguments) => allow::run(config, &arguments, environment),
        Command::Log(arguments) => log::run(config, &arguments, environment),
        Command::Ui(arguments) => ui::run(config, &arguments, environment),
        Command::Live(arguments) => live::run(config, &arguments, environment),
        Command::Trust(arguments) => trust::run(config, &arguments, environment),
        Command::Login(arguments) => oauth::login(config, &arguments, environment),
        Command::Logout(arguments) => oauth::logout(config, &arguments, environment),
        Command::Auth(arguments) => oauth::run(config, &arguments, environment),
        Command::Demo {
            print_config: false,
        } => demo::run(environment),
        Command::Demo { print_config: true } => demo::print_config(),
        Command::Schema => Ok(schema::run()),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        #[cfg(unix)]
        Command::Ps(arguments) => host::ps(config, &arguments, environment),
        #[cfg(unix)]
        Command::Stop(arguments) => host::stop(config, &arguments, environment),
        #[cfg(unix)]
        Command::Restart(arguments) => host::restart(config, &arguments, environment),
        #[cfg(unix)]
        Command::HostProcess(arguments) => host::run(config, &arguments, environment),
        Command::DemoServer { server } => demo::be_server(server),
    }
}

/// The result of a command: an exit code, or an error to report.
type CommandResult = Result<ExitCode, Box<dyn std::error::Error>>;

/// Runs the guard process if the arguments ask for it. It is handled before anything else is set up, because the
/// guard is this same program and must stay small.
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

/// Runs a worker for one script if the arguments ask for it. Like the guard it is this same program.
fn be_worker(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, first] = arguments else {
        return None;
    };
    (first == scripts::WORKER_ARGUMENT).then(script::run_worker)
}
