//! The host outlives everything of the client that started it.

use std::{
    io::{BufRead, BufReader, Write, pipe},
    process::{Command, Stdio},
};

use pretty_assertions::assert_eq;
use rustix::{
    fs::{Mode, OFlags, open},
    process::Signal,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::json;

use super::Machine;
use crate::harness::{Script, alive, kill};

/// The process group, the session and the terminal of a process.
fn places(pid: u32) -> [i64; 3] {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = after.split_whitespace().collect();
    [2, 3, 4].map(|index| fields[index].parse().unwrap())
}

/// Starts a client as the leader of a session, with `setsid` and its arguments, and waits until it is served. Returns the
/// process, with the host and where both are.
fn start(machine: &Machine, arguments: &[&str], stdin: Stdio) -> Started {
    let usual = machine.command();
    let (reader, mut writer) = pipe().unwrap();
    let mut command = Command::new("setsid");
    // `setsid --ctty` takes stdin as the terminal, so that the pipe of the client comes as stderr.
    command
        .args(arguments)
        .args(["sh", "-c", r#"exec "$@" <&2 2>/dev/null"#, "sh"]);
    command.arg(usual.get_program()).args(usual.get_args());
    command
        .current_dir(usual.get_current_dir().unwrap())
        .env_clear();
    for (name, value) in usual.get_envs() {
        command.env(name, value.unwrap());
    }
    command.stdin(stdin).stdout(Stdio::piped()).stderr(reader);
    let mut child = command.spawn().unwrap();
    let params = super::initialize_params(&json!({}));
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    writeln!(writer, "{line}").unwrap();
    let mut answer = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut answer).unwrap();
    assert!(answer.contains("protocolVersion"), "{answer}");
    let client = super::pid(&machine.host()["clients"][0]);
    Started {
        client,
        host: machine.host_pid(),
        child,
    }
}

struct Started {
    client: u32,
    host: u32,
    child: std::process::Child,
}

fn machine() -> Machine {
    Machine::one(&Script::named(&["one"]))
}

// One after the other: processes that leave a session at the same moment disturb the terminal of the second.
#[test]
fn a_host_is_detached_from_the_session_of_its_client() {
    without_a_terminal_a_host_has_a_process_group_of_its_own();
    with_a_terminal_a_host_has_a_session_of_its_own();
}

fn without_a_terminal_a_host_has_a_process_group_of_its_own() {
    let machine = machine();
    let mut started = start(&machine, &[], Stdio::null());
    let [client, host] = [started.client, started.host].map(places);
    assert_eq!((host[1], host[2]), (client[1], 0), "the same session");
    assert_ne!(host[0], client[0]);
    // Everything of the client is killed.
    let group = rustix::process::Pid::from_raw(client[0].try_into().unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::KILL).unwrap();
    started.child.wait().unwrap();
    assert_eq!(machine.host_pid(), started.host);
}

fn with_a_terminal_a_host_has_a_session_of_its_own() {
    let machine = machine();
    // Processes of tests that run at the same time must not inherit the terminal.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = open(name, flags, Mode::empty()).unwrap();
    // A terminal that nobody has open belongs to no session.
    let stdin = Stdio::from(terminal.try_clone().unwrap());
    let mut started = start(&machine, &["--ctty"], stdin);
    let [client, host] = [started.client, started.host].map(places);
    // Without a terminal it would be the same one. That of the client is not compared: now and then the kernel reports none
    // any more at this point, although the host has just opened it.
    assert_ne!(host[1], client[1]);
    assert_eq!(host[2], 0);
    // The terminal is closed, which ends its session. The client gets the signal in any case.
    drop(master);
    kill(started.client, Signal::HUP);
    started.child.wait().unwrap();
    assert!(alive(started.host));
    assert_eq!(machine.host_pid(), started.host);
    kill(started.host, Signal::KILL);
}
