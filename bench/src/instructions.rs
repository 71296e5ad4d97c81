//! Counted instructions, which do not depend on what else a machine does. Each count is the difference between
//! two runs of different length, divided by that difference, so that start and end do not count.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use thiserror::Error;

use crate::{
    session::{Session, SessionError},
    target::{Layout, Programs, Target},
};

/// Why instructions could not be counted.
#[derive(Debug, Error)]
pub enum CountError {
    /// The tool could not be started, or left nothing to read.
    #[error("valgrind: {0}\n  hint: install valgrind")]
    Tool(#[from] io::Error),
    /// It did not say how many.
    #[error("valgrind did not say how many instructions there were")]
    Uncounted,
    /// The workbench did not work under it.
    #[error("the workbench under valgrind: {0}")]
    Session(#[from] SessionError),
    /// The workbench could not be prepared.
    #[error("{0}")]
    Prepare(#[from] crate::peers::PeerError),
}

const FEW: usize = 1_000;
const MANY: usize = 2_000;
/// How many calls are in flight while whole calls are counted, apart from one after the other.
const IN_FLIGHT: usize = 64;

/// The parts of a call: their names, and the instructions that each takes.
pub fn count_parts(programs: &Programs) -> Result<Vec<(String, f64)>, CountError> {
    let hot = programs.own("bench-hot");
    let names = Command::new(&hot).output()?.stdout;
    let names = String::from_utf8_lossy(&names).into_owned();
    let mut counts = Vec::new();
    for name in names.lines() {
        let count = |times: usize| count_program(&hot, name, times);
        counts.push((name.to_owned(), one(count(FEW)?, count(MANY)?)));
    }
    Ok(counts)
}

/// Whole calls: the instructions of the workbench process per call, for each target.
pub fn count_targets<'a>(
    programs: &Programs,
    targets: impl Iterator<Item = &'a Target>,
) -> Result<Vec<(String, f64)>, CountError> {
    let mut counts = Vec::new();
    for target in targets {
        // The first start of a configuration also writes its lock file and its cache.
        drop(Session::ready(target.prepare(programs, Layout::SMALL)?)?);
        for in_flight in [1, IN_FLIGHT] {
            let count = |calls| count_calls(programs, target, in_flight, calls);
            let name = format!("whole call, {}, {in_flight} in flight", target.name());
            counts.push((name, one(count(FEW)?, count(MANY)?)));
        }
    }
    Ok(counts)
}

#[expect(clippy::cast_precision_loss, reason = "a small difference")]
fn one(few: f64, many: f64) -> f64 {
    (many - few) / (MANY - FEW) as f64
}

fn valgrind(log: &Path) -> Vec<String> {
    let log = format!("--log-file={}", log.display());
    let arguments = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        &log,
    ];
    arguments.map(str::to_owned).to_vec()
}

fn count_program(program: &str, name: &str, times: usize) -> Result<f64, CountError> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let command = valgrind(&log);
    Command::new(&command[0])
        .args(&command[1..])
        .args([program, name, &times.to_string()])
        .stdin(Stdio::null())
        .status()?;
    collected(&log)
}

/// All processes of the workbench write a log; that of the first one counts.
fn count_calls(
    programs: &Programs,
    target: &Target,
    in_flight: usize,
    calls: usize,
) -> Result<f64, CountError> {
    let folder = tempfile::tempdir()?;
    let prepared = target.prepare(programs, Layout::SMALL)?;
    let prepared = prepared.under(valgrind(&folder.path().join("log.%p")));
    let mut session = Session::ready(prepared)?;
    session.in_flight_exactly(in_flight, calls)?;
    let log = folder.path().join(format!("log.{}", session.pid()));
    drop(session);
    collected(&log)
}

fn collected(log: &Path) -> Result<f64, CountError> {
    let text = fs::read_to_string(log)?;
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    let number = line.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or(CountError::Uncounted)
}

/// The counts as a table.
pub fn table(counts: &[(String, f64)]) -> String {
    let mut table = String::from("| what | instructions |\n| --- | --- |\n");
    for (name, count) in counts {
        table += &format!("| {name} | {count:.0} |\n");
    }
    table
}
