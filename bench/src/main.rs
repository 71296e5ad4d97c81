//! `bench`: measures the targets on one CPU and prints what was found.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bench::{
    cases::{CASES, Plan, Run},
    instructions::{CountError, count_parts, count_targets, tables},
    pairs,
    peers::PEERS,
    report::{Machine, Report, publish},
    store::Store,
    target::{Programs, Target},
};
use clap::Parser;
use rustix::thread::{CpuSet, sched_setaffinity};

/// The default limit of a run.
const USUAL_MINUTES: u64 = 30;

/// Measures what stands between a client and MCP servers
#[derive(Parser)]
struct Arguments {
    /// Measure for about three minutes, our own targets only
    #[arg(long)]
    quick: bool,
    /// Only these cases
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = clap::builder::PossibleValuesParser::new(CASES))]
    only: Vec<String>,
    /// Only these targets, with the direct connections and relays that they are compared with
    #[arg(long, value_name = "NAME", num_args = 1..)]
    targets: Vec<String>,
    /// The CPU that everything runs on
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    cpu: usize,
    /// After so many minutes no further round begins
    #[arg(long, value_name = "M", default_value_t = USUAL_MINUTES)]
    minutes: u64,
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    output: PathBuf,
    /// Count instructions with valgrind instead of measuring times
    #[arg(long)]
    instructions: bool,
    /// The workbench that is measured, if not the one in the folder of this program
    #[arg(long, value_name = "PROGRAM")]
    workbench: Option<PathBuf>,
    /// Measure nothing; put the results of the last run into docs/evidence/benchmarks.md
    #[arg(long)]
    publish: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.publish {
        return Ok(publish(&arguments.output, Path::new("docs/evidence"))?);
    }
    let machine = Machine::this();
    let mut cpus = CpuSet::new();
    cpus.set(arguments.cpu);
    sched_setaffinity(None, &cpus)?;
    let mut run = prepare(&arguments)?;
    if arguments.instructions {
        fs::create_dir_all(&arguments.output)?;
        let counts = count_instructions(&arguments, &run)?;
        fs::write(arguments.output.join("instructions.md"), &counts)?;
        return Ok(write!(io::stdout(), "{counts}")?);
    }
    for name in CASES {
        if arguments.only.is_empty() || arguments.only.iter().any(|it| it == name) {
            run.case(name);
        }
    }
    let report = Report {
        machine: &machine,
        command: &command(&arguments),
        run: &run,
    };
    report.write(&arguments.output)?;
    write!(io::stdout(), "{}", report.text())?;
    Ok(())
}

/// Counts the parts of a call, unless targets are named, and whole calls through the workbench. Returns the tables.
fn count_instructions(arguments: &Arguments, run: &Run) -> Result<String, CountError> {
    let is_named = |target: &&Target| arguments.targets.iter().any(|it| it == target.name());
    let all = || run.all_targets().filter(|it| it.is_workbench());
    if arguments.targets.is_empty() {
        // The pairs have those over pipes and with HTTP on both sides.
        let wanted = all().filter(|it| it.is_pair() || it.is_mixed_transport());
        let parts = count_parts(&run.programs)?;
        let calls = count_targets(&run.programs, wanted, &arguments.output)?;
        return Ok(tables(&parts, &calls));
    }
    let calls = count_targets(&run.programs, all().filter(is_named), &arguments.output)?;
    Ok(tables(&[], &calls))
}

fn prepare(arguments: &Arguments) -> io::Result<Run> {
    let own = std::env::current_exe()?
        .parent()
        .map(PathBuf::from)
        .unwrap_or_default();
    let peers = own.with_file_name("bench-peers");
    let workbench = match &arguments.workbench {
        Some(path) => path.canonicalize()?,
        None => own.join("mcp-workbench"),
    };
    let mut targets = Target::OWN.to_vec();
    let mut http_targets = Target::HTTP.to_vec();
    if !arguments.quick || !arguments.targets.is_empty() {
        let (http, pipes): (Vec<_>, Vec<_>) = PEERS.iter().partition(|peer| peer.has_http());
        targets.extend(pipes.into_iter().map(Target::peer));
        http_targets.extend(http.into_iter().map(Target::peer));
    }
    let wanted = |target: &Target| {
        target.is_baseline()
            || arguments.targets.is_empty()
            || arguments.targets.iter().any(|it| it == target.name())
    };
    Ok(Run {
        programs: Programs {
            own,
            peers,
            workbench,
        },
        plan: if arguments.quick {
            Plan::QUICK
        } else {
            Plan::FULL
        },
        targets: targets.into_iter().filter(wanted).collect(),
        http_targets: http_targets.into_iter().filter(wanted).collect(),
        pairs: pairs::STDIO.into_iter().filter(wanted).collect(),
        http_pairs: pairs::HTTP.into_iter().filter(wanted).collect(),
        deadline: Instant::now() + Duration::from_mins(arguments.minutes),
        store: Store::default(),
    })
}

/// The command as somebody would type it.
fn command(arguments: &Arguments) -> String {
    let mut command = String::from("./scripts/bench");
    if arguments.quick {
        command += " --quick";
    }
    if arguments.minutes != USUAL_MINUTES {
        command += &format!(" --minutes {}", arguments.minutes);
    }
    for (option, names) in [
        ("--only", &arguments.only),
        ("--targets", &arguments.targets),
    ] {
        if !names.is_empty() {
            command += &format!(" {option} {}", names.join(" "));
        }
    }
    command
}
