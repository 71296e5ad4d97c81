//! Two builds of the program on one machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use pretty_assertions::assert_eq;

use super::{Client, Machine, pid};
use crate::harness::{Script, TIMEOUT, poll};

/// Copies the program, as a build that is older or newer than itself.
fn build(machine: &Machine, name: &str, age: Age) -> PathBuf {
    let program = machine.setup.command().get_program().to_owned();
    let copy = machine.copy_of_program(name);
    let now = fs::metadata(&program).unwrap().modified().unwrap();
    let day = Duration::from_hours(24);
    let modified: SystemTime = match age {
        Age::Older => now - day,
        Age::Newer => now + day,
    };
    let file = fs::File::open(&copy).unwrap();
    file.set_modified(modified).unwrap();
    copy
}

#[derive(Clone, Copy)]
enum Age {
    Older,
    Newer,
}

/// Starts a client with a build.
fn start(machine: &Machine, program: &Path) -> Client {
    let usual = machine.command();
    let mut command = Command::new(program);
    command.args(usual.get_args());
    command.current_dir(usual.get_current_dir().unwrap());
    command.env_clear();
    for (name, value) in usual.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut client = Client::spawn(command);
    client.initialize();
    client
}

fn machine() -> Machine {
    Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#))
}

#[test]
fn a_newer_build_drains_the_host_of_an_older_one() {
    let machine = machine();
    let newer = build(&machine, "newer", Age::Newer);
    let mut old_client = machine.connect();
    old_client.open();
    let old_host = machine.host_pid();
    let mut new_client = start(&machine, &newer);
    new_client.open();
    // Both hosts are visible to both builds, and the old client is served as before.
    let hosts = machine.hosts();
    assert_eq!(hosts.len(), 2);
    let old = hosts.iter().find(|it| pid(it) == old_host).unwrap();
    assert_eq!(old["draining"], true);
    assert!(!old_client.use_tool("one", "{}").failed());
    assert!(!new_client.use_tool("one", "{}").failed());
    // The old host ends with its last client.
    assert!(old_client.finish().success());
    let ended = poll(TIMEOUT, || (machine.hosts().len() == 1).then_some(()));
    assert!(ended.is_some());
    assert_ne!(machine.host_pid(), old_host);
    assert_eq!(super::sockets(&machine.place()), ["host.sock"]);
}

#[test]
fn an_older_build_attaches_to_a_newer_host() {
    let machine = machine();
    let older = build(&machine, "older", Age::Older);
    let mut new_client = machine.connect();
    new_client.open();
    let host = machine.host_pid();
    for _ in 0..3 {
        let mut old_client = start(&machine, &older);
        old_client.open();
        assert!(!old_client.use_tool("one", "{}").failed());
        drop(machine.connect());
    }
    assert_eq!(machine.host_pid(), host);
    assert_eq!(machine.journal().pids().len(), 1);
}

#[test]
fn a_client_whose_program_was_replaced_starts_the_next_host() {
    let machine = machine();
    let program = build(&machine, "program", Age::Older);
    let mut client = start(&machine, &program);
    client.open();
    // As an update does it.
    fs::rename(build(&machine, "update", Age::Newer), &program).unwrap();
    machine.run(&["stop"]);
    machine.wait_clean();
    assert!(!client.use_tool("one", "{}").failed());
    assert_eq!(machine.host()["clients"].as_array().unwrap().len(), 1);
    let said = client.stderr();
    assert!(!said.contains("WARN") && !said.contains("alone"), "{said}");
    assert!(!machine.log().contains("WARN"), "{}", machine.log());
}

#[test]
fn ps_and_stop_work_across_builds() {
    let machine = machine();
    let newer = build(&machine, "newer", Age::Newer);
    let _old_client = machine.connect();
    let _new_client = start(&machine, &newer);
    assert_eq!(machine.hosts().len(), 2);
    let said = machine.run(&["stop"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    machine.wait_clean();
}
