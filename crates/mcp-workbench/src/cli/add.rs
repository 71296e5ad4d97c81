//! `add`: puts a server into a toolbox of the configuration.

use std::{path::Path, process::ExitCode};

use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::{
    CommandResult,
    editing::{EditArguments, EditOutcome, Editing, EditingError, usual_description},
    output,
};
use crate::{
    config::{Environment, LiteralPlace, literal_secrets},
    near::nearest,
    visible::visible,
};

#[derive(Args)]
#[command(
    group(ArgGroup::new("server").required(true).args(["url", "command"])),
    override_usage = "mcp-workbench add [OPTIONS] <TOOLBOX> <NAME> -- <COMMAND>...\n       \
                      mcp-workbench add [OPTIONS] <TOOLBOX> <NAME> --url <URL>"
)]
pub(super) struct AddArguments {
    /// The toolbox; created if it does not exist
    toolbox: String,

    /// The name of the server
    name: String,

    /// An environment variable of the program; '${VAR}' stands for a variable of the workbench's
    /// environment
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = variable)]
    env: Vec<Pair>,

    /// The working directory of the program, relative to the folder of the configuration file
    /// [default: where the workbench is started]
    #[arg(long, value_name = "DIRECTORY")]
    cwd: Option<String>,

    /// The address of a remote server, instead of a command
    #[arg(long, conflicts_with_all = ["env", "cwd"])]
    url: Option<String>,

    /// A header of every request to the remote server; '${VAR}' works here too
    #[arg(long = "header", value_name = "NAME: VALUE", conflicts_with = "command", value_parser = header)]
    headers: Vec<Pair>,

    /// The transport of the remote server [default: detected]
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "command")]
    kind: Option<RemoteType>,

    /// The description of a new toolbox
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    #[command(flatten)]
    edit: EditArguments,

    /// The program and its arguments, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

/// A name and its value.
type Pair = (String, String);

#[derive(Clone, Copy, ValueEnum)]
enum RemoteType {
    Http,
    Sse,
}

/// The toolbox does not exist, but one with a similar name does.
#[derive(Debug, Error)]
#[error(
    "there is no toolbox `{}`\n  hint: did you mean `{}`? To create a new one, add --description",
    visible(.name), visible(.near)
)]
struct ProbablyMisspelt {
    name: String,
    near: String,
}

pub(super) fn run(
    config: Option<&Path>,
    arguments: &AddArguments,
    environment: &Environment,
) -> CommandResult {
    let mut editing = Editing::open(config, environment)?;
    // The toolbox comes first, so that a misspelt name is refused before anything is changed.
    let toolbox = ensure_toolbox(&mut editing, arguments)?;
    let entry = arguments.entry();
    let added = editing
        .text
        .add_server(&arguments.toolbox, &arguments.name, &entry);
    added.map_err(|error| editing.refused(error))?;
    let done = format!(
        "added the server `{}` to the toolbox `{}`",
        visible(&arguments.name),
        visible(&arguments.toolbox)
    );
    if editing.finish(&arguments.edit, environment, &done)? == EditOutcome::Written {
        toolbox.remark(&arguments.toolbox);
    }
    // Reported after the edit: the entry works, but the secret is better in a variable.
    for place in literal_secrets(&entry) {
        output::remark(&secret_remark(&place));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the remark about a literal secret in the entry. It never contains the secret.
fn secret_remark(place: &LiteralPlace) -> String {
    let (what, variable) = match place {
        LiteralPlace::Variable(name) => {
            (format!("the value of `{}`", visible(name)), name.as_str())
        }
        LiteralPlace::Header(name) => (
            format!("the value of the header `{}`", visible(name)),
            "VARIABLE",
        ),
        LiteralPlace::Argument(index) => (format!("argument {}", index + 1), "VARIABLE"),
        LiteralPlace::OAuth(_) => (place.to_string(), "VARIABLE"),
        LiteralPlace::Url => ("the URL".to_owned(), "VARIABLE"),
    };
    let variable = visible(variable);
    format!(
        "{what} looks like a secret in plain text\n  hint: write '${{{variable}}}' instead and set that \
         variable where the workbench is started, to keep the secret out of the file"
    )
}

/// The state of the toolbox before a server is added to it.
enum ToolboxState {
    Existing,
    /// The toolbox existed, so the given description is ignored.
    ExistingDescribed,
    /// The toolbox was created with a default description.
    CreatedWithDefault(String),
    /// The toolbox was created with the given description.
    Created,
}

impl ToolboxState {
    fn remark(&self, toolbox: &str) {
        let toolbox = visible(toolbox);
        match self {
            Self::Existing | Self::Created => {}
            Self::ExistingDescribed => output::remark(&format!(
                "the toolbox `{toolbox}` exists already; its description was not changed"
            )),
            Self::CreatedWithDefault(description) => output::remark(&format!(
                "the toolbox is new; its description is \"{}\"\n  \
                 hint: models choose a toolbox by its description; edit it to say what the tools are for",
                visible(description)
            )),
        }
    }
}

fn ensure_toolbox(
    editing: &mut Editing,
    arguments: &AddArguments,
) -> Result<ToolboxState, Box<dyn std::error::Error>> {
    let name = &arguments.toolbox;
    let known = editing
        .text
        .toolboxes()
        .map_err(|error| editing.refused(error))?;
    if known.contains(name) {
        return Ok(match arguments.description {
            Some(_) => ToolboxState::ExistingDescribed,
            None => ToolboxState::Existing,
        });
    }
    if let Some(description) = &arguments.description {
        make_toolbox(editing, name, description)?;
        return Ok(ToolboxState::Created);
    }
    // Without a description a similar name is more likely a typo than a new toolbox.
    if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
        let (name, near) = (name.clone(), near.to_owned());
        return Err(ProbablyMisspelt { name, near }.into());
    }
    let description = usual_description(name);
    make_toolbox(editing, name, &description)?;
    Ok(ToolboxState::CreatedWithDefault(description))
}

fn make_toolbox(editing: &mut Editing, name: &str, text: &str) -> Result<(), EditingError> {
    let made = editing.text.add_toolbox(name, text);
    made.map_err(|error| editing.refused(error))
}

impl AddArguments {
    /// Returns the configuration entry of the server.
    fn entry(&self) -> Value {
        let Some(url) = &self.url else {
            let mut entry = program_entry(&self.command);
            if !self.env.is_empty() {
                entry.insert("env".into(), members(&self.env));
            }
            if let Some(cwd) = &self.cwd {
                entry.insert("cwd".into(), json!(cwd));
            }
            return entry.into();
        };
        let mut entry = Map::new();
        if let Some(kind) = self.kind {
            entry.insert("type".into(), json!(kind.word()));
        }
        entry.insert("url".into(), json!(url));
        if !self.headers.is_empty() {
            entry.insert("headers".into(), members(&self.headers));
        }
        entry.into()
    }
}

impl RemoteType {
    fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// Returns the entry of a program with its arguments.
pub(super) fn program_entry(words: &[String]) -> Map<String, Value> {
    let mut entry = Map::new();
    if let [program, arguments @ ..] = words {
        entry.insert("command".into(), json!(program));
        if !arguments.is_empty() {
            entry.insert("args".into(), json!(arguments));
        }
    }
    entry
}

/// Returns pairs as an object; the last value of a duplicate name wins.
fn members(pairs: &[Pair]) -> Value {
    let pairs = pairs.iter().cloned();
    Value::Object(pairs.map(|(name, value)| (name, value.into())).collect())
}

fn variable(text: &str) -> Result<Pair, &'static str> {
    let (name, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if name.trim().is_empty() {
        return Err("the name of the variable is empty");
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn header(text: &str) -> Result<Pair, &'static str> {
    let (name, value) = text.split_once(':').ok_or("write 'NAME: VALUE'")?;
    if name.trim().is_empty() {
        return Err("the name of the header is empty");
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_warned_about_without_its_value() {
        let entry = json!({"env": {"TOKEN": "hunter2-hunter2"}});
        let remarks: Vec<String> = literal_secrets(&entry).iter().map(secret_remark).collect();
        assert_eq!(
            remarks,
            [
                "the value of `TOKEN` looks like a secret in plain text\n  hint: write '${TOKEN}' instead and set \
                 that variable where the workbench is started, to keep the secret out of the file"
            ]
        );
    }
}
