//! Clients and servers of a host under random kills: of hosts, of clients, of waiting processes and of servers. Nothing is lost, answered
//! twice or given to another client, no call runs twice, and nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Client, Machine};
use crate::harness::{Journal, Script, Setup, TIMEOUT, ToolResult, kill, poll, use_arguments};

const SERVERS: [&str; 3] = ["a", "b", "c"];
const CLIENTS: usize = 4;
const ROUNDS: usize = 24;

/// A small generator, so that a failed run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A server whose tool `echo` answers at once, and whose tool `hang` never does.
fn script() -> Script {
    let echo = r#"[{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"got\":$PARAMS}}"}]"#;
    Script::named(&["echo", "hang"])
        .on_call("echo", echo)
        .on_call("hang", r#"["hang"]"#)
}

fn machine() -> Machine {
    let mut setup = Setup::new().toolbox("dev", "Development tools");
    for server in SERVERS {
        setup = setup.server_with(server, &script(), &json!({"cwd": "."}));
    }
    Machine::new(setup)
}

/// The calls that a client has sent and got no answer to: whether each one hangs.
#[derive(Default)]
struct Open(BTreeMap<String, bool>);

/// Connects a client, every other one with sockets.
fn connect(machine: &Machine, number: usize) -> Client {
    let mut client = match number % 2 {
        0 => machine.start(),
        _ => Client::spawn_with_sockets(machine.command()),
    };
    client.initialize();
    client.open();
    client
}

/// Returns the arguments of all calls that the servers have received.
fn executions(machine: &Machine) -> Vec<String> {
    let journals = SERVERS.map(|server| machine.setup.journal("dev", server));
    journals.iter().flat_map(Journal::arguments).collect()
}

/// A call that is sent.
struct SentCall<'a> {
    /// A text that no other call has.
    mark: &'a str,
    /// Set if it may be one that the server does not answer.
    may_hang: bool,
}

fn send(client: &mut Client, open: &mut Open, random: &mut Random, call: &SentCall<'_>) {
    let SentCall { mark, may_hang } = *call;
    let server = SERVERS[random.below(SERVERS.len())];
    let hangs = may_hang && random.below(3) == 0;
    let tool = if hangs { "hang" } else { "echo" };
    let arguments = json!({"mark": mark}).to_string();
    let id = client.send_call(
        "use_tool",
        &use_arguments(["dev", server, tool], Some(&arguments)),
    );
    open.0.insert(id, hangs);
}

/// Takes the answers to all calls, or only to those that do not hang. An answer belongs to an open call of this client.
fn take_answers(client: &mut Client, open: &mut Open, marks: &BTreeMap<String, String>, all: bool) {
    while open.0.values().any(|hangs| all || !hangs) {
        let answer = client.next();
        let Some(id) = answer.id().map(str::to_owned) else {
            continue;
        };
        assert!(
            open.0.remove(&id).is_some(),
            "answered twice or misrouted: {}",
            answer.line
        );
        let result: Value = serde_json::from_str(answer.raw_result()).unwrap();
        match result.get("got") {
            Some(got) => assert_eq!(got["arguments"]["mark"], marks[&id], "{}", answer.line),
            None => {
                let failure = ToolResult::of(&answer);
                let code = failure.failure()["code"].as_str().unwrap().to_owned();
                let expected = ["host_exited", "server_exited", "shutting_down"];
                assert!(expected.contains(&code.as_str()), "{}", answer.line);
            }
        }
    }
}

/// Waits until the host has served all clients for a while. A client whose hosts end again and again at once is served
/// alone, and then its servers are not the host's.
fn wait_settled(machine: &Machine) {
    let settled = poll(TIMEOUT, || {
        let hosts = machine.hosts();
        let clients = hosts.first()?["clients"].as_array()?.clone();
        let is_settled = |it: &Value| it["uptimeSeconds"].as_u64() >= Some(1);
        (clients.len() == CLIENTS && clients.iter().all(is_settled)).then_some(())
    });
    assert!(settled.is_some(), "{:?}", machine.hosts());
}

/// Returns whether the host is killed while calls are on their way.
fn kills_host_at_once(round: usize) -> bool {
    round % 2 == 1
}

#[test]
fn nothing_is_lost_duplicated_or_left_under_random_kills() {
    let machine = machine();
    let mut random = Random(7);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|it| connect(&machine, it)).collect();
    // The calls that have reached a server, and the number of the next mark.
    let (mut sent, mut marked) = (0, 0);
    for round in 0..ROUNDS {
        wait_settled(&machine);
        let mut opens: Vec<Open> = Vec::new();
        let mut all_marks = Vec::new();
        for client in &mut clients {
            let (mut open, mut marks) = (Open::default(), BTreeMap::new());
            for _ in 0..=random.below(5) {
                let mark = format!("{round}-{marked}");
                let call = SentCall {
                    mark: &mark,
                    may_hang: !kills_host_at_once(round),
                };
                send(client, &mut open, &mut random, &call);
                marks.insert(client.ids.to_string(), mark);
                sent += 1;
                marked += 1;
            }
            opens.push(open);
            all_marks.push(marks);
        }
        if kills_host_at_once(round) {
            // The calls are anywhere: not read, with their servers, or answered in part.
            kill(machine.host_pid(), Signal::KILL);
            for ((client, open), marks) in clients.iter_mut().zip(&mut opens).zip(&all_marks) {
                take_answers(client, open, marks, true);
            }
            sent = executions(&machine).len();
            continue;
        }
        // Everything that was sent has reached its server, so that the outcome of each call is known.
        let arrived = poll(TIMEOUT, || {
            (executions(&machine).len() == sent).then_some(())
        });
        assert!(
            arrived.is_some(),
            "{sent} calls: {:?}",
            executions(&machine)
        );
        for ((client, open), marks) in clients.iter_mut().zip(&mut opens).zip(&all_marks) {
            take_answers(client, open, marks, false);
        }
        let victim = random.below(CLIENTS);
        match round / 2 % 4 {
            0 => kill(machine.host_pid(), Signal::KILL),
            1 => {
                // The waiting process of one client, whose calls end with it; then a server of the others.
                clients[victim] = connect(&machine, victim);
                opens[victim] = Open::default();
                kill_servers(&machine);
            }
            2 => {
                // A client that ends with open calls; then a server of the others.
                let next = connect(&machine, victim);
                opens[victim] = Open::default();
                assert!(
                    std::mem::replace(&mut clients[victim], next)
                        .finish()
                        .success()
                );
                kill_servers(&machine);
            }
            _ => kill_servers(&machine),
        }
        for ((client, open), marks) in clients.iter_mut().zip(&mut opens).zip(&all_marks) {
            take_answers(client, open, marks, true);
        }
    }
    let executions = executions(&machine);
    let different: BTreeSet<&String> = executions.iter().collect();
    assert_eq!(different.len(), executions.len(), "a call ran twice");
    for client in clients {
        assert!(client.finish().success());
    }
    machine.run(&["stop"]);
    machine.wait_clean();
    assert_eq!(super::sockets(&machine.place()), Vec::<String>::new());
}

/// Kills the processes of all servers.
fn kill_servers(machine: &Machine) {
    for server in machine.host()["servers"].as_array().unwrap() {
        if let Some(pid) = server["pid"].as_u64() {
            kill(pid.try_into().unwrap(), Signal::KILL);
        }
    }
}
