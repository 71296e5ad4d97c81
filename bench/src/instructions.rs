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

/// A reason why instructions could not be counted.
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

/// Makes the C library copy memory with vectors. Above 2 KiB it uses one instruction that moves any number of bytes and
/// that callgrind counts once for each byte.
const COPY_BY_VECTORS: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.x86_rep_movsb_threshold=0x40000000",
);

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

/// The instructions of a whole call: one after the other, and with [`IN_FLIGHT`] in flight.
pub struct CallCount {
    target: String,
    alone: f64,
    in_flight: f64,
}

/// Whole calls: the instructions of the workbench process per call, for each target. The profiles of the longer runs go
/// into a folder, for `callgrind_annotate`.
pub fn count_targets<'a>(
    programs: &Programs,
    targets: impl Iterator<Item = &'a Target>,
    profiles: &Path,
) -> Result<Vec<CallCount>, CountError> {
    let mut counts = Vec::new();
    for target in targets {
        // The first start of a configuration also writes its lock file and its cache.
        drop(Session::ready(target.prepare(programs, Layout::SMALL)?)?);
        let per_call = |in_flight| -> Result<f64, CountError> {
            let count = |calls| count_calls(programs, target, in_flight, calls);
            let (few, _) = count(FEW)?;
            let (many, profile) = count(MANY)?;
            let file = format!("callgrind.{}-{in_flight}", target.name());
            fs::write(profiles.join(file), profile)?;
            Ok(one(few, many))
        };
        counts.push(CallCount {
            target: target.name().to_owned(),
            alone: per_call(1)?,
            in_flight: per_call(IN_FLIGHT)?,
        });
    }
    Ok(counts)
}

#[expect(clippy::cast_precision_loss, reason = "a small difference")]
fn one(few: f64, many: f64) -> f64 {
    (many - few) / (MANY - FEW) as f64
}

fn valgrind(log: &Path, profile: &Path) -> Vec<String> {
    let log = format!("--log-file={}", log.display());
    let profile = format!("--callgrind-out-file={}", profile.display());
    let arguments = ["valgrind", "--tool=callgrind", &profile, &log];
    arguments.map(str::to_owned).to_vec()
}

fn count_program(program: &str, name: &str, times: usize) -> Result<f64, CountError> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let command = valgrind(&log, Path::new("/dev/null"));
    Command::new(&command[0])
        .args(&command[1..])
        .args([program, name, &times.to_string()])
        .env(COPY_BY_VECTORS.0, COPY_BY_VECTORS.1)
        .stdin(Stdio::null())
        .status()?;
    collected(&log)
}

/// Counts a run of this many calls; returns the profile too. All processes of the workbench write both, and those of
/// the first one count.
fn count_calls(
    programs: &Programs,
    target: &Target,
    in_flight: usize,
    calls: usize,
) -> Result<(f64, Vec<u8>), CountError> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str, pid: &str| folder.path().join(format!("{name}.{pid}"));
    let mut prepared = target.prepare(programs, Layout::SMALL)?;
    let (name, value) = COPY_BY_VECTORS;
    prepared
        .environment
        .push((name.to_owned(), value.to_owned()));
    let prepared = prepared.under(valgrind(&file("log", "%p"), &file("profile", "%p")));
    let mut session = Session::ready(prepared)?;
    session.in_flight_exactly(in_flight, calls)?;
    let pid = session.pid().to_string();
    drop(session);
    let profile = fs::read(file("profile", &pid))?;
    Ok((collected(&file("log", &pid))?, profile))
}

fn collected(log: &Path) -> Result<f64, CountError> {
    let text = fs::read_to_string(log)?;
    let line = text.lines().find_map(|line| line.split_once("Collected :"));
    let number = line.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or(CountError::Uncounted)
}

/// The counts as tables: the parts of a call, if they were counted, and whole calls.
pub fn tables(parts: &[(String, f64)], calls: &[CallCount]) -> String {
    let mut tables = String::new();
    if !parts.is_empty() {
        tables += "| part | instructions |\n| --- | --- |\n";
    }
    for (name, count) in parts {
        tables += &format!("| {name} | {count:.0} |\n");
    }
    if !parts.is_empty() {
        tables += "\n";
    }
    tables += &format!("| whole call | 1 in flight | {IN_FLIGHT} |\n| --- | --- | --- |\n");
    for CallCount {
        target,
        alone,
        in_flight,
    } in calls
    {
        tables += &format!("| {target} | {alone:.0} | {in_flight:.0} |\n");
    }
    tables
}
