//! Processes: grandchildren that outlive their use, and the ways in which a process can end. All of them use `sh`,
//! `setsid` and `exec`, which need no unsafe code.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use crate::script::{Session, Spawn};

/// Starts a process that sleeps for ten minutes, and gives its id.
pub(crate) fn spawn(spawn: &Spawn) -> io::Result<u32> {
    let trap = if spawn.ignore_term {
        "trap '' TERM; "
    } else {
        ""
    };
    let sleeper = format!("{trap}exec sleep 600");
    let mut command = match spawn.session {
        Session::Same => Command::new("sh"),
        Session::Own => {
            let mut command = Command::new("setsid");
            command.arg("sh");
            command
        }
    };
    command.args(["-c", &sleeper]).stdin(Stdio::null());
    // A pipe that it holds open keeps the reader from seeing the end.
    if !spawn.hold_output {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    Ok(command.spawn()?.id())
}

/// Restarts this program in the same process with SIGTERM ignored. Returns only on failure.
pub(crate) fn become_deaf_to_term(arguments: &[String], marker: &str) -> io::Error {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    Command::new("sh")
        .args(["-c", r#"trap '' TERM; exec "$0" "$@""#])
        .arg(program)
        .args(arguments)
        .arg(marker)
        .exec()
}

/// Closes stdout and goes on as a process that reads stdin to its end; returns only on failure.
pub(crate) fn close_stdout() -> io::Error {
    Command::new("sh")
        .args(["-c", "exec 1>&-; while read -r line; do :; done"])
        .exec()
}

/// Ends the process by a signal; returns only on failure.
pub(crate) fn die(signal: &str) -> io::Error {
    Command::new("sh")
        .args(["-c", &format!("kill -s {signal} $$")])
        .exec()
}
