//! F57, F59: a host that has run out of something.

use std::{path::Path, time::Duration};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{After, Bench, Failed, Row, faults, table::timed};
use crate::harness::{Script, Setup, exhaust_descriptors, limit_descriptors};

faults![
    no_descriptors_left,
    no_threads_left,
    stderr_is_full,
    stderr_is_closed,
    nothing_is_writable,
    files_may_not_grow,
];

const SOON: Duration = Duration::from_secs(5);

fn healthy_server(setup: Setup) -> Setup {
    setup.server("fs", &Script::new())
}

/// Opens the toolbox, calls, crashes and calls again: everything that logs.
fn works(bench: &mut Bench) -> Duration {
    timed(|| {
        bench.open();
        bench.succeeds("pid");
        bench.fails("crash", &Failed::unknown("server_exited"));
        bench.succeeds("pid");
    })
}

fn no_descriptors_left() -> Row {
    Row {
        number: "F57",
        fault: "no descriptor is left when a server must be started again",
        outcome: "server_start_failed, not_sent, `Too many open files`; no spin; recovers without a restart",
        bound: SOON,
        faulty: healthy_server,
        act: |bench| {
            bench.open();
            bench.fails("crash", &Failed::unknown("server_exited"));
            bench.wait_calm();
            let pid = bench.workbench.pid();
            exhaust_descriptors(pid);
            let took = timed(|| {
                let result = bench.fails("pid", &Failed::not_sent("server_start_failed"));
                let text = result.error();
                assert!(text.contains("Too many open files"), "{text}");
            });
            bench.wait_calm();
            assert_eq!(bench.starts(), 1);
            limit_descriptors(pid, 1024);
            took
        },
        after: After::RecoversAtOpen,
    }
}

fn no_threads_left() -> Row {
    Row {
        number: "F57b",
        fault: "the system gives no thread, as under `ulimit -u`",
        outcome: "everything works, no panic; what is not written to disk is logged",
        bound: SOON,
        // No thread with such a stack can be made. `ulimit -u` does not hold for root, as whom tests may run.
        faulty: |setup| healthy_server(setup.env("RUST_MIN_STACK", "70368744177664")),
        act: |bench| {
            let took = works(bench);
            bench
                .workbench
                .wait_stderr("failed to write the server cache: ");
            took
        },
        after: After::Recovers,
    }
}

fn stderr_is_full() -> Row {
    Row {
        number: "F59a",
        fault: "stderr is on a full disk (/dev/full), with much to log",
        outcome: "everything works, no panic",
        bound: SOON,
        faulty: |setup| {
            let setup = setup.argument("--log-level").argument("trace");
            healthy_server(setup.through(r#"exec "$0" "$@" 2>/dev/full"#))
        },
        act: works,
        after: After::Recovers,
    }
}

fn stderr_is_closed() -> Row {
    Row {
        number: "F59b",
        fault: "stderr is closed, with much to log",
        outcome: "everything works, no panic",
        bound: SOON,
        faulty: |setup| {
            let setup = setup.argument("--log-level").argument("trace");
            healthy_server(setup.through(r#"exec "$0" "$@" 2>&-"#))
        },
        act: works,
        after: After::Recovers,
    }
}

fn nothing_is_writable() -> Row {
    Row {
        number: "F59c",
        fault: "the working directory, HOME and TMPDIR are read-only",
        outcome: "everything works",
        bound: SOON,
        faulty: |setup| {
            let setup = setup.working_in(Path::new("/proc"));
            healthy_server(setup.env("HOME", "/proc").env("TMPDIR", "/proc"))
        },
        act: works,
        after: After::Recovers,
    }
}

fn files_may_not_grow() -> Row {
    Row {
        number: "F59d",
        fault: "the audit log is as large as `ulimit -f` lets a file become",
        outcome: "not ended by SIGXFSZ: everything works, and it is logged as with a full disk",
        bound: SOON,
        faulty: |setup| {
            setup.write("config/audit.jsonl", &"{}\n".repeat(64 * 1024));
            let setup = setup.top("audit", json!({"file": "audit.jsonl"}));
            healthy_server(setup.through(r#"ulimit -f 128 && exec "$0" "$@""#))
        },
        act: |bench| {
            let took = works(bench);
            bench
                .workbench
                .wait_stderr("audit.jsonl; calls continue without being recorded");
            took
        },
        after: After::Recovers,
    }
}
