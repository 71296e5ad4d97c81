//! The commands that people and scripts use every day: what they print where, how they end, and that nothing of their
//! servers is left.

mod call;
mod doctor;
mod hidden;
mod list;
mod on_a_terminal;
mod terminal;
mod tokens;

use serde_json::{Value, json};

pub(crate) use terminal::OnTerminal;

use crate::harness::{Finished, Setup, TIMEOUT, Workbench};

/// Starts a command on the configuration of a setup.
fn start(setup: Setup, arguments: &[&str]) -> Workbench {
    setup.write_config();
    let config = setup.config().to_str().unwrap().to_owned();
    let arguments: Vec<&str> = ["--config", &config]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    setup.start_with(&arguments)
}

/// Runs a command to its end. The workbench is given back because the directory of the test goes with it.
fn run(setup: Setup, arguments: &[&str]) -> (Finished, Workbench) {
    let mut command = start(setup, arguments);
    let finished = command.finish();
    command.wait_no_survivors(TIMEOUT);
    (finished, command)
}

fn exit_code(finished: &Finished) -> i32 {
    finished.status.code().expect("it was not killed")
}

/// Returns the output of a command, which is one JSON document.
fn document(finished: &Finished) -> Value {
    let text = finished.stdout.join("\n");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A call that asks its client to fill in a form, and answers with the whole reply.
fn asks(form: &Value) -> String {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"structuredContent":$REPLY}}"#;
    let request = json!({"method": "elicitation/create", "params": form});
    json!([{"request": request}, {"line": answer}]).to_string()
}
