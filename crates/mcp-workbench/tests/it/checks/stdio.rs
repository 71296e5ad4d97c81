//! The servers of the rows over stdio: a fixture server for each row.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{
    definitions,
    run::Servers,
    table::{Event, Row, ServerKind},
};
use crate::harness::{Journal, Message, Script, Setup};

const DONE: &str = r#"{"answer":{"content":[{"type":"text","text":"done"}]}}"#;

pub(super) struct StdioServers {
    servers: Vec<StdioServer>,
}

struct StdioServer {
    journal: Journal,
    /// Exists while `tools/list` is answered at once.
    list_gate: PathBuf,
    /// Exist when the process before the event was started and connected to.
    started: [PathBuf; 2],
}

impl StdioServers {
    /// Adds a server for each row to the last toolbox.
    pub(super) fn add(mut setup: Setup, kind: ServerKind, rows: &[Row]) -> (Setup, Self) {
        for row in rows {
            setup.write(&gate_name(row), "");
            let script = script(&setup, kind, row);
            let mut keys = definitions::keys(row.rule);
            keys["era"] = json!(era(kind));
            setup = setup.server_with(&row.server(), &script, &keys);
        }
        let servers = rows.iter().map(|row| StdioServer {
            journal: setup.journal("dev", &row.server()),
            list_gate: setup.path(&gate_name(row)),
            started: ["started", "connected"].map(|name| file(&setup, row, name)),
        });
        let servers = servers.collect();
        (setup, Self { servers })
    }
}

impl Servers for StdioServers {
    fn log(&self, row: &Row) -> Vec<String> {
        let received = self.servers[row.number].journal.events("in").into_iter();
        let received = received.map(Message::parse);
        let entries = received.filter_map(|message| match message.method.as_deref() {
            Some("tools/list") => Some("list".to_owned()),
            Some("tools/call") => {
                let step = &message.params()["arguments"]["step"];
                Some(format!("call {}", step.as_str().unwrap()))
            }
            _ => None,
        });
        entries.collect()
    }

    fn delay_list(&self, row: &Row) {
        fs::remove_file(&self.servers[row.number].list_gate).unwrap();
    }

    fn release_list(&self, row: &Row) {
        fs::write(&self.servers[row.number].list_gate, "").unwrap();
    }

    fn change(&self, row: &Row) {
        panic!("a process changes during a call: {row:?}");
    }

    fn forget_starts(&self) {
        for server in &self.servers {
            for file in server.started.iter().chain([&server.journal.file]) {
                let _absent = fs::remove_file(file);
            }
        }
    }
}

fn era(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::LegacyStdio => "legacy",
        ServerKind::ModernStdio => "modern",
        ServerKind::LegacyHttp | ServerKind::ModernHttp | ServerKind::Sse => {
            panic!("not over stdio: {kind:?}")
        }
    }
}

fn gate_name(row: &Row) -> String {
    format!("rows/{}.list", row.number)
}

fn file(setup: &Setup, row: &Row, name: &str) -> PathBuf {
    setup.path(&format!("rows/{}.{name}", row.number))
}

fn script(setup: &Setup, kind: ServerKind, row: &Row) -> Script {
    let file = |name: &str| json!(file(setup, row, name));
    let after = definitions::after(row);
    let change = format!(r#"{{"setTools":{after}}}"#);
    let era = json!(era(kind)).to_string();
    let script = Script::new()
        .set("era", &era)
        .tools(&definitions::before(row));
    match row.event {
        Event::Restart => {
            let exit = once(&file("exited"), r#"{"exit":3}"#, DONE);
            let (method, connected) = connected(kind, row);
            script
                .set("onStart", &actions(&once(&file("started"), "", &change)))
                .on_method(
                    method,
                    &actions(&once(&file("connected"), &connected[0], &connected[1])),
                )
                .on_call(&row.tool(), &actions(&once(&file("called"), DONE, &exit)))
        }
        Event::ListChanged => {
            let notice = r#"{"change":{"method":"notifications/tools/list_changed"}}"#;
            let list = json!([{"awaitFile": file("list")}, "listTools"]);
            script.on_method("tools/list", &list.to_string()).on_call(
                &row.tool(),
                &format!(r#"[{{"inTurn":[[{DONE}],[{change},{notice},{DONE}],[{DONE}]]}}]"#),
            )
        }
        Event::Renewal | Event::HeaderMismatch => panic!("not over stdio: {row:?}"),
    }
}

/// Returns the first request that the server gets, and the actions that answer it before and after the event.
fn connected(kind: ServerKind, row: &Row) -> (&'static str, [String; 2]) {
    let versions = [definitions::VERSION, definitions::version_after(row)];
    let answer = |result: String| format!(r#"{{"answer":{result}}}"#);
    match era(kind) {
        "legacy" => (
            "initialize",
            versions.map(|it| answer(definitions::initialize_result(it))),
        ),
        _ => (
            "server/discover",
            versions.map(|it| answer(definitions::discover_result(it))),
        ),
    }
}

/// Returns a raw action that does the first while a file does not exist, which it creates, and the other later.
fn once(file: &Value, first: &str, later: &str) -> String {
    format!(r#"{{"once":{{"file":{file},"actions":[{first}],"otherwise":[{later}]}}}}"#)
}

fn actions(action: &str) -> String {
    format!("[{action}]")
}
