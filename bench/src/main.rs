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
    instructions::{count, table},
    peers::PEERS,
    report::{Machine, Report, publish},
    store::Store,
    target::{Programs, Target},
};
use clap::Parser;
use rustix::thread::{CpuSet, sched_setaffinity};

/// How long a run may take if nothing else is said.
const USUAL_MINUTES: u64 = 30;

/// Measures what stands between a client and MCP servers
#[derive(Parser)]
struct Arguments {
    /// Measure for about two minutes, our own targets only
    #[arg(long)]
    quick: bool,
    /// Only these cases
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = clap::builder::PossibleValuesParser::new(CASES))]
    only: Vec<String>,
    /// Only these targets, `direct` and `relay`
    #[arg(long, value_name = "NAME", num_args = 1..)]
    targets: Vec<String>,
    /// The CPU that everything runs on
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    cpu: usize,
    /// After so many minutes no further round begins
    #[arg(long, value_name = "M", default_value_t = USUAL_MINUTES)]
    minutes: u64,
    /// Where the results go
    #[arg(long, value_name = "FOLDER", default_value = "target/bench")]
    output: PathBuf,
    /// Count instructions with valgrind instead of measuring times
    #[arg(long)]
    instructions: bool,
    /// Measure nothing; put the results of the last run into docs/benchmarks.md
    #[arg(long)]
    publish: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.publish {
        return Ok(publish(&arguments.output, Path::new("docs"))?);
    }
    let machine = Machine::this();
    let mut cpus = CpuSet::new();
    cpus.set(arguments.cpu);
    sched_setaffinity(None, &cpus)?;
    let mut run = prepare(&arguments)?;
    if arguments.instructions {
        let counts = table(&count(&run.programs)?);
        fs::create_dir_all(&arguments.output)?;
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
        store: &run.store,
        targets: &run.targets,
        http_targets: &run.http_targets,
    };
    report.write(&arguments.output)?;
    write!(io::stdout(), "{}", report.text())?;
    Ok(())
}

fn prepare(arguments: &Arguments) -> io::Result<Run> {
    let own = std::env::current_exe()?;
    let own = own.parent().map(PathBuf::from).unwrap_or_default();
    let peers = own.with_file_name("bench-peers");
    let mut targets = Target::OWN.to_vec();
    let mut http_targets = Target::HTTP.to_vec();
    if !arguments.quick || !arguments.targets.is_empty() {
        let (http, pipes): (Vec<_>, Vec<_>) = PEERS.iter().partition(|peer| peer.has_http());
        targets.extend(pipes.into_iter().map(Target::Peer));
        http_targets.extend(http.into_iter().map(Target::Peer));
    }
    let wanted = |target: &Target| {
        let is_base = target.name().starts_with("direct") || target.name().starts_with("relay");
        is_base
            || arguments.targets.is_empty()
            || arguments.targets.iter().any(|it| it == target.name())
    };
    Ok(Run {
        programs: Programs { own, peers },
        plan: if arguments.quick {
            Plan::QUICK
        } else {
            Plan::FULL
        },
        targets: targets.into_iter().filter(wanted).collect(),
        http_targets: http_targets.into_iter().filter(wanted).collect(),
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
