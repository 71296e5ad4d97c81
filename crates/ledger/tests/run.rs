//! A short run for each of some fixed seeds, with the real binaries. They lie in one directory;
//! `cargo test --workspace` builds them all.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ledger::{Amount, Options};

const SEEDS: [u64; 3] = [1, 2, 3];
const STEPS: u64 = 1500;

fn beside(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_ledger")).with_file_name(name);
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build --workspace`, or run the tests with --workspace",
        path.display()
    );
    path
}

/// One run after the other: the time bounds are those of a machine that does nothing else.
#[test]
fn nothing_is_lost_while_servers_are_killed_and_stopped() {
    for seed in SEEDS {
        let options = Options {
            seed,
            amount: Amount::Steps(STEPS),
            servers: 6,
            pace: Duration::from_millis(100),
            workbench: beside("mcp-workbench"),
            fixture_server: beside("fixture-server"),
        };
        let report = ledger::run(&options).expect("a run");
        println!("{report}");
        assert!(report.violations.is_empty(), "see above");
        assert!(report.tally.calls > STEPS, "the run is too small");
        assert!(report.deeds.kills > 0, "nobody was killed");
    }
}
