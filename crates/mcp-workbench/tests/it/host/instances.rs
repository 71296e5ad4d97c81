//! Which clients share an instance of a server.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Machine;
use crate::{
    asking_back::asks,
    harness::{Script, Setup, TIMEOUT, poll},
};

/// A machine whose server `fs` has more keys in its entry.
fn machine(keys: &Value) -> Machine {
    let setup = Setup::new().toolbox("dev", "Development tools");
    let script = Script::named(&["one"]).answers("one", r#"{"content":[]}"#);
    Machine::new(setup.server_with("fs", &script, keys))
}

/// Returns how many processes two clients in two folders, and with two values of `TOKEN`, start.
fn processes(keys: &Value, folders: [&str; 2], tokens: [&str; 2]) -> usize {
    let machine = machine(keys);
    let clients: Vec<_> = std::iter::zip(folders, tokens)
        .map(|(folder, token)| {
            let folder = machine.path(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let mut command = machine.command();
            command.current_dir(folder).env("TOKEN", token);
            let mut client = super::Client::spawn(command);
            client.initialize();
            client.open();
            client
        })
        .collect();
    let count = machine.journal().pids().len();
    drop(clients);
    count
}

#[test]
fn an_instance_is_shared_if_everything_that_defines_it_is_equal() {
    let token = json!({"T": "${TOKEN}"});
    let rows = [
        (json!({}), ["a", "a"], ["1", "1"], 1),
        (json!({}), ["a", "b"], ["1", "1"], 2),
        (json!({"cwd": "."}), ["a", "b"], ["1", "2"], 1),
        (json!({"cwd": ".", "env": token}), ["a", "a"], ["1", "1"], 1),
        (json!({"cwd": ".", "env": token}), ["a", "a"], ["1", "2"], 2),
        (
            json!({"cwd": ".", "args": ["${TOKEN}"]}),
            ["a", "a"],
            ["1", "2"],
            2,
        ),
        (json!({"share": "machine"}), ["a", "b"], ["1", "1"], 1),
        (
            json!({"share": "machine", "env": token}),
            ["a", "b"],
            ["1", "2"],
            2,
        ),
        (
            json!({"share": "project", "cwd": "."}),
            ["a", "a"],
            ["1", "1"],
            1,
        ),
        (
            json!({"share": "project", "cwd": "."}),
            ["a", "b"],
            ["1", "1"],
            2,
        ),
        (
            json!({"share": "client", "cwd": "."}),
            ["a", "a"],
            ["1", "1"],
            2,
        ),
    ];
    for (keys, folders, tokens, expected) in rows {
        assert_eq!(
            processes(&keys, folders, tokens),
            expected,
            "{keys} {folders:?} {tokens:?}"
        );
    }
}

#[test]
fn a_server_runs_in_the_folder_and_with_the_values_of_its_client() {
    let machine = machine(&json!({"env": {"T": "${TOKEN}"}}));
    for (folder, token) in [("a", "first"), ("b", "second")] {
        let directory = machine.path(folder);
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = machine.command();
        command.current_dir(&directory).env("TOKEN", token);
        let mut client = super::Client::spawn(command);
        client.initialize();
        client.open();
        let pid = *machine.journal().pids().last().unwrap();
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
        assert_eq!(cwd, directory.canonicalize().unwrap());
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let environment = String::from_utf8_lossy(&environment);
        assert!(
            environment.contains(&format!("T={token}\0")),
            "{environment}"
        );
    }
}

#[test]
fn ps_says_why_servers_of_one_name_are_apart() {
    let machine = machine(&json!({"env": {"T": "${TOKEN}"}, "cwd": "."}));
    let clients = ["1", "2"].map(|token| machine.open_with("TOKEN", token));
    let host = machine.host();
    let reasons: Vec<&Value> = host["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["apart"])
        .collect();
    assert_eq!(reasons, ["variables differ: T", "variables differ: T"]);
    assert!(!machine.run(&["ps"]).contains("TOKEN"));
    drop(clients);
}

#[test]
fn a_server_that_asks_back_is_kept_for_one_client() {
    let script = asks("roots/list", "{}");
    let setup = Setup::new().toolbox("dev", "Development tools");
    let machine = Machine::new(setup.server_with("fs", &script, &json!({"cwd": "."})));
    let mut one = machine.start();
    one.initialize_with(&json!({"roots": {}}));
    one.open();
    let mut other = machine.start();
    other.initialize_with(&json!({"roots": {}}));
    other.open();
    assert_eq!(machine.journal().pids().len(), 1);
    let id = one.send_use("ask", "{}");
    let question = one.next();
    assert_eq!(question.method.as_deref(), Some("roots/list"));
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[{{"uri":"file:///one"}}]}}}}"#,
        question.id().unwrap()
    );
    one.send(&answer);
    assert!(one.response(&id).raw_result().contains("file:///one"));
    // The other client has a process of its own from now on, and so has a new one.
    let apart = poll(TIMEOUT, || {
        let host = machine.host();
        (host["servers"].as_array().unwrap().len() == 2).then_some(())
    });
    assert!(apart.is_some(), "the server was separated");
    // Nobody answers this one.
    other.send_use("ask", "{}");
    machine.wait_received("tools/call", 2);
    assert_eq!(machine.journal().pids().len(), 2);
    let mut late = machine.connect();
    late.open();
    let started = poll(TIMEOUT, || {
        (machine.journal().pids().len() == 3).then_some(())
    });
    assert!(started.is_some(), "a new client has a process of its own");
}

#[test]
fn a_server_that_asked_back_in_an_earlier_run_is_not_shared() {
    let script = asks("roots/list", "{}");
    let setup = Setup::new().toolbox("dev", "Development tools");
    let machine = Machine::new(setup.server_with("fs", &script, &json!({"cwd": "."})));
    let mut first = machine.connect();
    first.open();
    first.use_tool("ask", "{}");
    assert!(first.finish().success());
    machine.run(&["stop"]);
    machine.wait_clean();
    let before = machine.journal().pids().len();
    let mut clients = [machine.connect(), machine.connect()];
    for client in &mut clients {
        client.open();
    }
    let started = poll(TIMEOUT, || {
        (machine.journal().pids().len() == before + 2).then_some(())
    });
    assert!(started.is_some(), "{:?}", machine.journal().pids());
}

#[test]
fn a_changed_file_reaches_every_client() {
    let script = Script::named(&["one", "two"]).answers("two", r#"{"content":[]}"#);
    let machine = Machine::one(&script);
    let mut clients = [machine.connect(), machine.connect()];
    for client in &mut clients {
        client.open();
    }
    let text = std::fs::read_to_string(machine.setup.config()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["toolboxes"]["dev"]["mcpServers"]["fs"]["toolFilters"] = json!(["one"]);
    std::fs::write(machine.setup.config(), config.to_string()).unwrap();
    for client in &mut clients {
        let denied = poll(TIMEOUT, || {
            let result = client.use_tool("two", "{}");
            result.failed().then(|| result.error().to_owned())
        });
        let denied = denied.expect("the filter is applied");
        assert!(denied.contains("'two' not found"), "{denied}");
        assert!(!client.open().failed());
    }
    // Both clients use the new server.
    let host = machine.host();
    let users: Vec<&Value> = host["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["clients"])
        .collect();
    assert!(users.contains(&&json!([1, 2])), "{users:?}");
}

#[test]
fn a_variable_that_the_file_names_later_reaches_the_server() {
    let machine = machine(&json!({"cwd": "."}));
    let mut client = machine.open_with("NAMED_LATER", "value");
    let first = machine.journal().pids();
    let text = std::fs::read_to_string(machine.setup.config()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["toolboxes"]["dev"]["mcpServers"]["fs"]["env"] = json!({"T": "${NAMED_LATER}"});
    std::fs::write(machine.setup.config(), config.to_string()).unwrap();
    let started = poll(TIMEOUT, || {
        client.use_tool("one", "{}");
        let pids = machine.journal().pids();
        pids.iter().find(|pid| !first.contains(pid)).copied()
    });
    let pid = started.expect("the server restarts");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("T=value\0"), "{environment}");
    // The process of the client names it to the next host too.
    crate::harness::kill(machine.host_pid(), rustix::process::Signal::KILL);
    assert!(!client.use_tool("one", "{}").failed());
}

/// Returns the capabilities that each process of the server has learned.
fn announced(machine: &Machine) -> Vec<Value> {
    let received = machine.journal().received("initialize").into_iter();
    let capabilities = received.map(|message| {
        let message: Value = serde_json::from_str(&message.line).unwrap();
        message["params"]["capabilities"].clone()
    });
    capabilities.collect()
}

#[test]
fn clients_with_different_capabilities_share_only_what_the_user_says() {
    let (none, roots) = (json!({}), json!({"roots": {}}));
    let own = json!({"experimental": {"x": {}}, "extensions": {"test/x": {}}});
    let (auto, machine_wide) = (json!({"cwd": "."}), json!({"cwd": ".", "share": "machine"}));
    // The capabilities of two clients, and those that each server process learns.
    let rows = [
        (&auto, [&none, &none], vec![&none]),
        (&auto, [&roots, &roots], vec![&roots]),
        (&auto, [&roots, &none], vec![&roots, &none]),
        (&auto, [&own, &own], vec![&own]),
        (&auto, [&own, &none], vec![&own, &none]),
        (&machine_wide, [&roots, &none], vec![&roots]),
        // An experimental capability could mean something to one client alone.
        (&machine_wide, [&own, &none], vec![&none]),
    ];
    for (keys, capabilities, learned) in rows {
        let machine = machine(keys);
        let clients: Vec<_> = capabilities
            .iter()
            .map(|capabilities| {
                let mut client = machine.start();
                client.initialize_with(capabilities);
                client.open();
                client
            })
            .collect();
        let announced = announced(&machine);
        let announced: Vec<&Value> = announced.iter().collect();
        assert_eq!(announced, learned, "{keys} {capabilities:?}");
        drop(clients);
    }
}

#[test]
fn a_server_restarts_with_the_capabilities_of_its_clients() {
    let machine = machine(&json!({"cwd": "."}));
    let mut client = machine.start();
    client.initialize_with(&json!({"roots": {}}));
    client.open();
    machine.run(&["stop", "fs"]);
    // The command, which declares nothing, starts the server again.
    machine.run(&["call", "dev", "fs", "one"]);
    let roots = json!({"roots": {}});
    assert_eq!(announced(&machine), [roots.clone(), roots]);
}
