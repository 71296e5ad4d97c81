//! `ledger`: runs the workbench in the same directory under load and faults, and prints the results.

use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{ArgGroup, Parser};
use ledger::{Amount, Options};

/// Random calls through one workbench while its servers are killed and stopped; exits with 1 if
/// anything was lost, doubled, misrouted, run twice or left behind.
#[derive(Parser)]
#[command(version, group(ArgGroup::new("amount").required(true)))]
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
    /// The program under test; the one beside this if not given
    #[arg(long, value_name = "FILE")]
    workbench: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = match options(arguments) {
        Ok(options) => options,
        Err(error) => return fail(&*error),
    };
    match ledger::run(&options) {
        Ok(report) => {
            drop(write!(io::stdout(), "{report}"));
            ExitCode::from(u8::from(!report.violations.is_empty()))
        }
        Err(error) => fail(&error),
    }
}

fn options(arguments: Arguments) -> Result<Options, Box<dyn Error>> {
    let beside = std::env::current_exe()?;
    let workbench = arguments.workbench;
    Ok(Options {
        seed: arguments.seed,
        amount: match (arguments.minutes, arguments.calls) {
            (Some(minutes), _) => Amount::Time(Duration::try_from_secs_f64(minutes * 60.0)?),
            (None, steps) => Amount::Steps(steps.unwrap_or_default()),
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
