//! `live`: shows and steers the host or the workbench that serves over HTTP, like the page does.

mod client;

use std::{path::Path, process::ExitCode};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

pub(super) use client::ask;
use client::ask_text;

use super::{
    CommandResult, output,
    terminal::{Column, OutputStyle, Table},
    ui::page_record,
};
use crate::{config::Environment, visible::visible};

#[derive(Args)]
pub(super) struct LiveArguments {
    #[command(subcommand)]
    command: LiveCommand,
}

#[derive(Subcommand)]
enum LiveCommand {
    /// Show the state of every server
    Servers(Shown),
    /// Show the latest calls, or one of them with its messages
    Calls {
        /// The number of a call
        id: Option<u64>,
        #[command(flatten)]
        filter: CallFilter,
        #[command(flatten)]
        shown: Shown,
    },
    /// Show what happened to servers, questions and approvals
    Activity(Shown),
    /// Show the calls that wait for your decision
    Approvals(Shown),
    /// Decide about a call that waits
    Decide {
        /// The number of the call
        id: u64,
        decision: DecisionWord,
    },
    /// Print the metrics in the format of Prometheus
    Metrics,
    /// Start a server
    Start(ServerArguments),
    /// Stop a server; it starts again when it is needed
    Stop(ServerArguments),
    /// Stop a server and start it again
    Restart(ServerArguments),
}

#[derive(Args)]
struct Shown {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ServerArguments {
    toolbox: String,
    server: String,
    /// The one of several servers of this name, by its `instance` in `live servers --json`
    #[arg(long, value_name = "NUMBER")]
    instance: Option<u64>,
}

/// The calls to show: those that contain these texts, as on the page.
#[derive(Args)]
struct CallFilter {
    /// Only calls of clients whose name contains this
    #[arg(long, value_name = "TEXT", conflicts_with = "id")]
    client: Option<String>,
    /// Only calls of servers whose toolbox/server contains this
    #[arg(long, value_name = "TEXT", conflicts_with = "id")]
    server: Option<String>,
    /// Only calls whose tool, target or method contains this
    #[arg(long, value_name = "TEXT", conflicts_with = "id")]
    tool: Option<String>,
    /// Only calls with this outcome
    #[arg(long, value_name = "OUTCOME", conflicts_with = "id")]
    outcome: Option<String>,
}

impl CallFilter {
    /// Removes the other calls.
    fn apply(&self, document: &mut Value) {
        if let Some(calls) = document["calls"].as_array_mut() {
            calls.retain(|call| self.wants(call));
        }
    }

    fn wants(&self, call: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let client = &call["client"];
        // The texts that the page shows, and that its filters search.
        let number = client["number"].as_u64();
        let number = number.map(|it| format!(" #{it}")).unwrap_or_default();
        let name = client["name"].as_str();
        let name = name.map_or_else(|| text(&client["principal"]), str::to_owned);
        let called = [&call["tool"], &call["target"], &call["method"]];
        let called = called.into_iter().find(|it| it.is_string());
        contains(self.client.as_ref(), &format!("{name}{number}"))
            && contains(
                self.server.as_ref(),
                &format!("{}/{}", text(&call["toolbox"]), text(&call["server"])),
            )
            && contains(self.tool.as_ref(), &called.map(text).unwrap_or_default())
            && self
                .outcome
                .as_deref()
                .is_none_or(|it| call["outcome"] == it)
    }
}

/// Returns whether a text contains what is wanted, whatever the case of its letters.
fn contains(wanted: Option<&String>, text: &str) -> bool {
    let wanted = wanted.map(|it| it.to_lowercase()).unwrap_or_default();
    text.to_lowercase().contains(&wanted)
}

#[derive(Clone, Copy, ValueEnum)]
enum DecisionWord {
    /// This call runs
    Once,
    /// All calls of the tool in this session of the client run
    Session,
    /// The configuration allows the tool
    Always,
    /// The call fails
    Deny,
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &LiveArguments,
    environment: &Environment,
) -> CommandResult {
    let record = page_record(config, environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let get = |path: &str| runtime.block_on(ask(&record, "GET", path, None));
    let post = |path: &str, body: &Value| {
        let asked = ask(&record, "POST", path, Some(body));
        runtime.block_on(asked)
    };
    let style = OutputStyle::of_stdout(environment);
    let act = |place: &ServerArguments, action: &str| {
        let body = json!({
            "toolbox": place.toolbox, "server": place.server, "instance": place.instance, "action": action,
        });
        post("/ui/api/servers", &body)
    };
    match &arguments.command {
        LiveCommand::Servers(shown) => {
            show(shown, &get("/ui/api/servers")?, |it| servers(it, style));
        }
        LiveCommand::Calls {
            id: None,
            filter,
            shown,
        } => {
            let mut document = get("/ui/api/calls")?;
            filter.apply(&mut document);
            show(shown, &document, |it| calls(it, style));
        }
        LiveCommand::Calls { id: Some(id), .. } => {
            output::json(&get(&format!("/ui/api/calls?id={id}"))?);
        }
        LiveCommand::Activity(shown) => {
            show(shown, &get("/ui/api/activity")?, |it| activity(it, style));
        }
        LiveCommand::Approvals(shown) => {
            show(shown, &get("/ui/api/approvals")?, |it| approvals(it, style));
        }
        LiveCommand::Decide { id, decision } => {
            let word = decision
                .to_possible_value()
                .map(|it| it.get_name().to_owned());
            post("/ui/api/approvals", &json!({ "id": id, "decision": word }))?;
        }
        LiveCommand::Metrics => {
            output::data(&runtime.block_on(ask_text(&record, "/metrics"))?);
        }
        LiveCommand::Start(place) => drop(act(place, "start")?),
        LiveCommand::Stop(place) => drop(act(place, "stop")?),
        LiveCommand::Restart(place) => drop(act(place, "restart")?),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(shown: &Shown, document: &Value, render: impl FnOnce(&Value) -> String) {
    if shown.json {
        output::json(document);
    } else {
        output::data(&render(document));
    }
}

/// Returns the members of the objects in a list as the rows of a table.
fn table<const N: usize>(list: &Value, names: [&'static str; N], style: OutputStyle) -> String {
    let mut table = Table::new(names.map(Column::Text));
    for item in list.as_array().into_iter().flatten() {
        table.row(names.map(|name| match &item[name] {
            Value::Null => String::new(),
            Value::String(text) => visible(text).into_owned(),
            other => other.to_string(),
        }));
    }
    table.render(style, "")
}

fn servers(document: &Value, style: OutputStyle) -> String {
    let names = ["toolbox", "server", "state", "pid", "tools", "calls"];
    let mut text = table(&document["servers"], names, style);
    // Below the table: they are sentences, and would make every line of it long.
    for server in document["servers"].as_array().into_iter().flatten() {
        let word = |name: &str| visible(server[name].as_str().unwrap_or_default()).into_owned();
        if server["reason"].is_string() {
            let place = format!("{}/{}", word("toolbox"), word("server"));
            let (reason, remedy) = (word("reason"), word("remedy"));
            text.push_str(&format!("\n{place}: {reason}\n  hint: {remedy}\n"));
        }
    }
    text
}

fn calls(document: &Value, style: OutputStyle) -> String {
    let names = [
        "id",
        "time",
        "toolbox",
        "server",
        "tool",
        "method",
        "outcome",
        "duration_us",
    ];
    table(&document["calls"], names, style)
}

fn activity(document: &Value, style: OutputStyle) -> String {
    table(&document["activity"], ["time", "text"], style)
}

fn approvals(document: &Value, style: OutputStyle) -> String {
    let names = ["id", "toolbox", "server", "tool", "arguments", "reason"];
    table(&document["approvals"], names, style)
}
