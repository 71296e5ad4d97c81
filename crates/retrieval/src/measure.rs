//! The cost of the index: the time to build it, to replace one server and to answer, and its memory.

use std::{
    fs, hint,
    time::{Duration, Instant},
};

use search::{Index, Query};

use crate::set::Set;

/// As many hits as a client gets that does not say how many it wants.
const USUAL_LIMIT: usize = 10;
/// Each time is the best of so many, because others use the machine too.
const TIMES: usize = 5;

/// The cost of the index of a set.
#[derive(Debug)]
pub struct Cost {
    pub build: Duration,
    /// To put a server in again: the median of all servers, and the worst.
    pub again: [Duration; 2],
    /// To answer a query: the median of all queries, and that which one in a hundred takes.
    pub query: [Duration; 2],
    /// Its memory, where the system reports it.
    pub memory: Option<usize>,
}

/// Measures the index of a set.
pub fn cost(set: &Set) -> Cost {
    let mut index = set.index();
    let queries = set.questions.iter().map(|question| {
        best(|| {
            let query = Query {
                text: &question.query,
                toolbox: None,
                limit: USUAL_LIMIT,
            };
            hint::black_box(index.search(&query));
        })
    });
    let queries = sorted(queries.collect());
    let shelves = set
        .shelves
        .iter()
        .map(|shelf| best(|| set.put(&mut index, shelf)));
    let again = sorted(shelves.collect());
    Cost {
        build: best(|| drop(hint::black_box(set.index()))),
        again: [quantile(&again, 50), quantile(&again, 100)],
        query: [quantile(&queries, 50), quantile(&queries, 99)],
        memory: memory(set),
    }
}

/// How much memory grows by an index, as the average of several.
fn memory(set: &Set) -> Option<usize> {
    // The first ones use up memory that was freed before.
    let kept: Vec<Index> = (0..TIMES).map(|_| set.index()).collect();
    let before = resident()?;
    let more: Vec<Index> = (0..TIMES).map(|_| set.index()).collect();
    let after = resident()?;
    drop((kept, more));
    Some(after.saturating_sub(before) / TIMES)
}

/// Returns the resident memory of this process, on Linux.
fn resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..TIMES).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort_unstable();
    times
}

fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(last * percent / 100)
        .copied()
        .unwrap_or_default()
}
