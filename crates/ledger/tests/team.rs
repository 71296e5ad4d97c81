//! A short run of a team with the real parts. `./scripts/soak --team` runs it for minutes.

use std::{
    io::{self, Write},
    path::Path,
    time::Duration,
};

use ledger::team::{self, TeamError, TeamOptions, check::TeamViolation};

#[test]
fn a_team_loses_nothing_while_replicas_are_killed() {
    let ledger = Path::new(env!("CARGO_BIN_EXE_ledger"));
    let options = TeamOptions {
        seed: 1,
        time: Duration::from_secs(16),
        workbench: ledger.with_file_name("mcp-workbench"),
        fixture_server: ledger.with_file_name("fixture-server"),
        root: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
    };
    let report = match team::run(&options) {
        Ok(report) => report,
        Err(error @ (TeamError::NotInstalled { .. } | TeamError::NoPackages(_))) => {
            // Past the capture of what tests print.
            drop(writeln!(io::stderr(), "NOT TESTED: {error}"));
            return;
        }
        Err(error) => panic!("{error:?}"),
    };
    println!("{report}");
    // How long an outcome takes says little on a machine that runs other tests meanwhile.
    let is_promise = |it: &&TeamViolation| !matches!(it, TeamViolation::LateOutcome { .. });
    assert_eq!(report.violations.iter().filter(is_promise).count(), 0);
    assert!(report.tally.results > 100, "the run is too small");
    let deeds = report.deeds;
    assert!(deeds.kills > 10 && deeds.store_stops == 1 && deeds.rolling_restarts == 1);
}
