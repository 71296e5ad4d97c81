//! How a client finds the host, and what it does if there is no safe way to one.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use pretty_assertions::assert_eq;
use rustix::process::Signal;

use super::{Client, Machine, host_processes, pid};
use crate::harness::{Script, Setup, kill};

fn machine() -> Machine {
    Machine::one(&Script::named(&["one"]).answers("one", r#"{"content":[]}"#))
}

/// Checks that a client is served by its own process, which says why in one line.
fn check_alone(mut client: Client, reason: &str) {
    client.initialize();
    client.open();
    assert!(!client.use_tool("one", "{}").failed());
    let stderr = client.wait_stderr("serving alone");
    let said: Vec<&str> = stderr
        .lines()
        .filter(|line| line.contains("serving alone"))
        .collect();
    let [line] = said[..] else {
        panic!("one line about it: {stderr}");
    };
    assert!(line.contains(reason), "{line}");
    assert!(client.finish().success());
}

#[test]
fn a_hundred_clients_at_once_make_one_host() {
    let machine = machine();
    let mut clients: Vec<Client> = (0..100).map(|_| machine.start()).collect();
    for client in &mut clients {
        client.initialize();
        let log = client.stderr();
        assert!(!log.contains("serving alone"), "{log}");
    }
    assert_eq!(host_processes(&machine).len(), 1);
    let host = machine.host();
    assert_eq!(host["clients"].as_array().unwrap().len(), 100);
    for client in &mut clients {
        client.open();
    }
    assert_eq!(machine.journal().pids().len(), 1);
    for client in clients {
        assert!(client.finish().success());
    }
}

#[test]
fn a_stale_socket_is_taken_over() {
    let machine = machine();
    let client = machine.connect();
    let host = machine.host_pid();
    drop(client);
    kill(host, Signal::KILL);
    assert_eq!(super::sockets(&machine.place()), ["host.sock"]);
    let mut client = machine.connect();
    client.open();
    assert_ne!(machine.host_pid(), host);
}

#[test]
fn options_override_the_configuration() {
    let machine = machine();
    let mut alone = machine.command();
    alone.args(["serve", "--alone"]);
    let mut alone = Client::spawn(alone);
    alone.initialize();
    assert_eq!(machine.hosts(), Vec::<serde_json::Value>::new());
    let other = Machine::not_shared(Setup::one(&Script::named(&["one"])));
    let mut shared = other.command();
    shared.args(["serve", "--shared"]);
    let mut shared = Client::spawn(shared);
    shared.initialize();
    assert_eq!(other.hosts().len(), 1);
}

#[test]
fn a_client_in_native_mode_is_attached_with_its_toolbox() {
    let machine = machine();
    let mut command = machine.command();
    command.args(["serve", "--native", "dev"]);
    let mut client = Client::spawn(command);
    client.initialize();
    let tools = client.ask("tools/list", "{}").result();
    assert_eq!(tools["tools"][0]["name"], "one");
    assert_eq!(machine.host()["clients"].as_array().unwrap().len(), 1);
}

#[test]
fn a_client_whose_streams_cannot_be_passed_is_served_alone() {
    let machine = machine();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    fs::write(machine.path("requests"), format!("{request}\n")).unwrap();
    let stdin = fs::File::open(machine.path("requests")).unwrap();
    let done = machine.command().stdin(stdin).output().unwrap();
    let stdout = String::from_utf8(done.stdout).unwrap();
    assert_eq!(stdout, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    let stderr = String::from_utf8(done.stderr).unwrap();
    let reason = "serving alone: stdin and stdout are neither pipes nor sockets";
    assert_eq!(stderr.matches(reason).count(), 1, "{stderr}");
    assert_eq!(machine.hosts(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_host_that_does_not_respond_is_left_alone() {
    let machine = machine();
    let first = machine.connect();
    let host = machine.host_pid();
    kill(host, Signal::STOP);
    check_alone(
        machine.start(),
        "timed out after 300 ms waiting for the host",
    );
    kill(host, Signal::CONT);
    assert_eq!(machine.host_pid(), host);
    drop(first);
}

#[test]
fn a_host_that_has_no_room_for_a_connection_is_left_alone() {
    let machine = machine();
    let socket = free_socket(&machine);
    let lock = fs::File::open(machine.place().join("lock")).unwrap();
    lock.lock().unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    // Nobody accepts it.
    let _waiting = UnixStream::connect(&socket).unwrap();
    check_alone(
        machine.start(),
        "timed out after 300 ms waiting for the host to respond",
    );
    let shown = machine.command().arg("ps").output().unwrap();
    let stderr = String::from_utf8_lossy(&shown.stderr);
    assert!(
        stderr.contains("timed out after 300 ms waiting for the host to respond"),
        "{stderr}"
    );
}

#[test]
fn an_unsafe_runtime_directory_is_not_used() {
    type Prepare = fn(&Machine);
    let rows: [(Prepare, &str); 4] = [
        (
            |machine| {
                let mode = fs::Permissions::from_mode(0o777);
                fs::set_permissions(machine.path("run"), mode).unwrap();
            },
            "is accessible to others",
        ),
        (
            |machine| {
                let root = machine.path("run/mcp-workbench");
                fs::create_dir(&root).unwrap();
                fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
            },
            "is accessible to others",
        ),
        (
            |machine| {
                fs::create_dir(machine.path("elsewhere")).unwrap();
                symlink(machine.path("elsewhere"), machine.path("run/mcp-workbench")).unwrap();
            },
            "is not a folder",
        ),
        (
            |machine| fs::remove_dir(machine.path("run")).unwrap(),
            "cannot be used as the folder of the host",
        ),
    ];
    for (prepare, reason) in rows {
        let machine = machine();
        prepare(&machine);
        check_alone(machine.start(), reason);
    }
}

#[test]
fn a_hostile_socket_gets_nothing() {
    let machine = machine();
    // The folder is made by the first host.
    drop(machine.connect());
    machine.run(&["stop"]);
    machine.wait_clean();
    let place = machine.place();
    let lock = fs::File::open(place.join("lock")).unwrap();
    lock.lock().unwrap();
    // A file, a link, and a socket whose process says nothing useful.
    fs::write(place.join("host.sock"), "").unwrap();
    check_alone(machine.start(), "permission denied");
    fs::remove_file(place.join("host.sock")).unwrap();
    let listener = UnixListener::bind(place.join("host.sock")).unwrap();
    let stranger = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut socket, b"{\"hello\":\"there\"}\n").unwrap();
        let mut received = Vec::new();
        std::io::Read::read_to_end(&mut socket, &mut received).unwrap();
        received
    });
    check_alone(machine.start(), "unexpected message from the other process");
    assert_eq!(stranger.join().unwrap(), b"");
}

/// Returns the socket of a machine's host, which does not run. Its folder is there.
fn free_socket(machine: &Machine) -> PathBuf {
    drop(machine.connect());
    machine.run(&["stop"]);
    machine.wait_clean();
    machine.place().join("host.sock")
}

/// Listens in place of a host: says hello to each process and answers its request. Without an answer it ends.
fn pretend(socket: &Path, hello: &'static str, answer: Option<&'static str>) {
    let (listener, socket) = (UnixListener::bind(socket).unwrap(), socket.to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            writeln!(stream, "{hello}").unwrap();
            let mut request = String::new();
            let _read = BufReader::new(&stream).read_line(&mut request);
            let Some(answer) = answer else {
                return fs::remove_file(socket).unwrap();
            };
            let _written = writeln!(stream, "{answer}");
        }
    });
}

#[test]
fn a_host_of_another_version_or_that_refuses_is_left_alone() {
    let rows = [
        (
            r#"{"link":5,"build":{"version":"9.0.0"},"pid":1}"#,
            r#"{"answer":"attached"}"#,
            "uses a different link (5)",
        ),
        (
            r#"{"link":3,"build":{"version":"0.9.0"},"pid":1}"#,
            r#"{"answer":"done","servers":0}"#,
            "keeps accepting clients",
        ),
        (
            r#"{"link":4,"build":{"version":"9.0.0"},"pid":1}"#,
            r#"{"answer":"refused","reason":"it is full"}"#,
            "the host refused: it is full",
        ),
    ];
    for (hello, answer, reason) in rows {
        let machine = machine();
        pretend(&free_socket(&machine), hello, Some(answer));
        check_alone(machine.start(), reason);
    }
}

#[test]
fn a_host_that_ends_while_a_client_attaches_is_replaced() {
    let machine = machine();
    let hello = r#"{"link":4,"build":{"version":"9.0.0"},"pid":1}"#;
    pretend(&free_socket(&machine), hello, None);
    let mut client = machine.connect();
    client.open();
    assert_eq!(client.stderr().matches("serving alone").count(), 0);
    assert_eq!(machine.host()["clients"].as_array().unwrap().len(), 1);
}

#[test]
fn strange_requests_do_not_hurt_the_host() {
    let machine = machine();
    let mut client = machine.connect();
    client.open();
    let socket = machine.place().join("host.sock");
    let lines: [&[u8]; 6] = [
        b"",
        b"\n",
        b"not json\n",
        b"{\"verb\":\"dance\"}\n",
        b"{\"verb\":\"attach\"}\n",
        br#"{"verb":"attach","build":{"version":"1"},"config":"/x","fingerprint":"","folder":"/","variables":[],"pid":1}
"#,
    ];
    for line in lines {
        let mut stranger = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        std::io::Write::write_all(&mut stranger, line).unwrap();
        stranger.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stranger, &mut answer).unwrap();
        assert!(answer.starts_with("{\"link\":4,"), "{answer}");
    }
    assert!(!client.use_tool("one", "{}").failed());
    assert_eq!(pid(&machine.host()), machine.host_pid());
}

/// The user who may do nothing.
const NOBODY: u32 = 65_534;

#[test]
fn another_user_is_not_trusted() {
    let machine = machine();
    if !rustix::process::geteuid().is_root() {
        // Only root can act as another user. A folder of root is one of another user here.
        let mut command = machine.command();
        command.env("XDG_RUNTIME_DIR", "/proc/1");
        check_alone(
            Client::spawn(command),
            "cannot be used as the folder of the host",
        );
        return;
    }
    // A socket of another user in our folder.
    drop(machine.connect());
    machine.run(&["stop"]);
    machine.wait_clean();
    let socket = machine.place().join("host.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::chown(&socket, Some(NOBODY), Some(NOBODY)).unwrap();
    check_alone(machine.start(), "permission denied");
    drop(listener);
    fs::remove_file(&socket).unwrap();
    // A client of another user beside our host.
    let _ours = machine.connect();
    let mut theirs = as_nobody(&machine);
    theirs.initialize();
    let said = theirs.wait_stderr("serving alone");
    assert!(said.contains("belongs to another user"), "{said}");
    assert_eq!(machine.host()["clients"].as_array().unwrap().len(), 1);
    // The host itself says nothing to another user who reaches its socket.
    let place = machine.place();
    for folder in [place.as_path(), place.parent().unwrap()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let socket = place.join("host.sock");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(hello_for(NOBODY, &socket), "");
    assert!(hello_for(0, &socket).starts_with("{\"link\":"));
}

/// Returns what the process behind a socket says first to a user. The thread that asks keeps the user until it ends.
fn hello_for(user: u32, socket: &Path) -> String {
    let socket = socket.to_owned();
    let asking = std::thread::spawn(move || {
        let user = rustix::process::Uid::from_raw(user);
        rustix::thread::set_thread_uid(user).unwrap();
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    });
    asking.join().unwrap()
}

/// Starts a client as another user, who can read everything but the folder of the host.
fn as_nobody(machine: &Machine) -> Client {
    let program = machine.copy_of_program("program");
    let usual = machine.command();
    for folder in [".", "run", "work"] {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(machine.path(folder), mode).unwrap();
    }
    let config = fs::Permissions::from_mode(0o644);
    fs::set_permissions(machine.setup.config(), config).unwrap();
    let mut command = std::process::Command::new("setpriv");
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    command.args([user.as_str(), group.as_str(), "--clear-groups"]);
    command.arg(&program).args(usual.get_args());
    command.current_dir(machine.path("work")).env_clear();
    for (name, value) in usual.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    Client::spawn(command)
}
