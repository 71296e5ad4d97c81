//! A team under trouble: three replicas behind a balancer with a store and an identity provider, and users with official SDKs of both
//! eras. Replicas are killed every second, the store is restarted and stopped, and all replicas are restarted in turn.
//!
//! ```text
//! users (SDKs) ─► haproxy ─► 3 replicas ─► servers ─► execution journal ─┐
//!   │                           ▲   └─► Redis                           ├─► check ─► violations
//!   ├─► lines ──────────────────│───────────▲───────────────────────────┘
//!   └─► oidc-provider           └─ trouble ─┘
//! ```

pub mod check;
mod figures;
pub mod history;
mod load;
mod place;
mod report;
mod trouble;
mod users;

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use thiserror::Error;

pub use figures::{Figures, measure};
pub use load::Throughput;
pub use report::{Tally, TeamReport};
pub use trouble::TeamDeeds;

use self::{check::check, place::Place, trouble::Trouble, users::Users};
use crate::{random::Random, waiting::poll_until};

/// How long the last calls may take after the trouble.
const SETTLE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct TeamOptions {
    pub seed: u64,
    pub time: Duration,
    pub workbench: PathBuf,
    /// The program of the servers.
    pub fixture_server: PathBuf,
    /// The root of the repository, with the packages of the tests under its target folder.
    pub root: PathBuf,
}

/// A reason why a run has no result.
#[derive(Debug, Error)]
pub enum TeamError {
    #[error(
        "{program} not found (install it with `apt install {package}`, or run ./scripts/test-services)"
    )]
    NotInstalled {
        program: &'static str,
        package: &'static str,
    },
    #[error("{0} not found (run ./scripts/test once, which installs the packages of the tests)")]
    NoPackages(PathBuf),
    #[error("failed to start {0}")]
    Start(String, #[source] io::Error),
    #[error("timed out waiting for {0}")]
    NotUp(String),
    #[error("the directory of the run cannot be used")]
    Place(#[from] io::Error),
}

/// Runs a team under trouble, and returns the report.
pub fn run(options: &TeamOptions) -> Result<TeamReport, TeamError> {
    let begun = Instant::now();
    let mut place = Place::new(options)?;
    place.start_replicas()?;
    place.start_balancer()?;
    let users = Users::start(&place)?;
    let mut trouble = Trouble::new(Random::new(options.seed));
    while begun.elapsed() < options.time {
        trouble.cycle(&mut place, begun + options.time)?;
    }
    let calls = users.finish(SETTLE);
    // A server writes its line before it does anything, so all that ran is in the journal.
    let executions = place.executions()?;
    let violations = check(&calls, &executions, &trouble.events);
    Ok(TeamReport {
        seed: options.seed,
        duration: begun.elapsed(),
        tally: report::Tally::of(&calls),
        executed: executions.len(),
        deeds: trouble.deeds,
        slowest: check::slowest(&calls, &trouble.events),
        kept: (!violations.is_empty()).then(|| place.keep()),
        violations,
    })
}

/// Sleeps until a moment, or not at all if it has passed.
fn sleep_until(moment: Instant) {
    poll_until(moment, || None::<()>);
}
