//! `ledger`: runs the workbench in the same directory under load and faults, and prints the results.

use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{ArgGroup, Parser};
use ledger::{
    Amount, Options,
    team::{self, TeamOptions},
};

/// Random calls through one workbench while its servers are killed and stopped; exits with 1 if
/// anything was lost, duplicated, misrouted, run twice or left behind.
#[derive(Parser)]
#[command(version, group(ArgGroup::new("amount")))]
struct Arguments {
    /// How many requests
    #[arg(long, value_name = "N", group = "amount")]
    calls: Option<u64>,
    /// For how many minutes
    #[arg(long, value_name = "M", group = "amount")]
    minutes: Option<f64>,
    /// The seed of the calls and the faults
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How many servers
    #[arg(long, value_name = "K", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=200))]
    servers: u64,
    /// How many faults a second: kills, and stops of some hundred milliseconds
    #[arg(long, value_name = "R", default_value_t = 5.0)]
    kills_per_second: f64,
    /// A team instead: three replicas with a store and a balancer, of which one is killed every second, and users with official SDKs; for
    /// some minutes
    #[arg(long, requires = "minutes", conflicts_with = "calls")]
    team: bool,
    /// The figures of a team instead: requests per second with one to three replicas, and the memory of sessions
    #[arg(long, conflicts_with_all = ["team", "amount"])]
    team_figures: bool,
    /// The program under test; the one beside this if not given
    #[arg(long, value_name = "FILE")]
    workbench: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = if arguments.team || arguments.team_figures {
        run_team(arguments)
    } else {
        run_one(arguments)
    };
    outcome.unwrap_or_else(|error| fail(&*error))
}

fn run_one(arguments: Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let report = ledger::run(&options(arguments)?)?;
    drop(write!(io::stdout(), "{report}"));
    Ok(ExitCode::from(u8::from(!report.violations.is_empty())))
}

fn run_team(arguments: Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let is_measured = arguments.team_figures;
    let options = team_options(arguments)?;
    if is_measured {
        drop(write!(io::stdout(), "{}", team::measure(&options)?));
        return Ok(ExitCode::SUCCESS);
    }
    let report = team::run(&options)?;
    drop(write!(io::stdout(), "{report}"));
    Ok(ExitCode::from(u8::from(!report.violations.is_empty())))
}

fn team_options(arguments: Arguments) -> Result<TeamOptions, Box<dyn Error>> {
    let beside = std::env::current_exe()?;
    let workbench = arguments.workbench;
    let minutes = arguments.minutes.unwrap_or_default();
    Ok(TeamOptions {
        seed: arguments.seed,
        time: Duration::try_from_secs_f64(minutes * 60.0)?,
        workbench: workbench.unwrap_or_else(|| beside.with_file_name("mcp-workbench")),
        fixture_server: beside.with_file_name("fixture-server"),
        root: std::env::current_dir()?,
    })
}

fn options(arguments: Arguments) -> Result<Options, Box<dyn Error>> {
    let beside = std::env::current_exe()?;
    let workbench = arguments.workbench;
    Ok(Options {
        seed: arguments.seed,
        amount: match (arguments.minutes, arguments.calls) {
            (Some(minutes), _) => Amount::Time(Duration::try_from_secs_f64(minutes * 60.0)?),
            (None, Some(steps)) => Amount::Steps(steps),
            (None, None) => return Err("--calls or --minutes is needed".into()),
        },
        servers: usize::try_from(arguments.servers)?,
        pace: Duration::try_from_secs_f64(1.0 / arguments.kills_per_second)?,
        workbench: workbench.unwrap_or_else(|| beside.with_file_name("mcp-workbench")),
        fixture_server: beside.with_file_name("fixture-server"),
    })
}

fn fail(error: &dyn Error) -> ExitCode {
    let mut text = format!("ledger: {error}");
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!("\n  caused by: {next}"));
        cause = next.source();
    }
    drop(writeln!(io::stderr(), "{text}"));
    ExitCode::from(2)
}
