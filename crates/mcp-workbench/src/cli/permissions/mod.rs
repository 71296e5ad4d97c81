//! `permissions`: shows the rules of the configuration, prints rules for a client, and answers a client's hook.

mod hook;
mod snippet;

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use ident::ToolboxName;
use serde_json::{Value, json};
use thiserror::Error;

use self::{
    hook::{ApprovalQuestions, Hook},
    snippet::{WorkbenchEntry, snippet},
};
use super::{
    CommandResult,
    configuration::{choose_toolbox, load_configuration, read_configuration},
    install::stable_program,
    output,
    terminal::{Ink, OutputStyle},
};
use crate::{
    clients::{ClientName, client},
    config::{Config, Environment, PermissionRule, Permissions, ToolMode, Toolbox},
    downstream::ToolCache,
    visible::visible,
};

/// The largest hook input that is read.
const MAX_QUESTION: u64 = 16 * 1024 * 1024;

#[derive(Args)]
pub(super) struct PermissionsArguments {
    /// Print rules for this client that leave approval to the workbench
    #[arg(long, value_name = "CLIENT")]
    client: Option<ClientName>,

    /// Only this toolbox; with --client or --hook, the toolbox of native mode
    #[arg(long, value_name = "TOOLBOX")]
    toolbox: Option<String>,

    /// Answer a `PreToolUse` hook of Claude Code, read from stdin, with allow, ask or deny
    #[arg(long, conflicts_with_all = ["client", "json"])]
    hook: bool,

    /// With --hook: allow calls that the workbench itself asks the user about
    #[arg(long, requires = "hook")]
    leave_questions: bool,

    /// The name of the workbench in the client's configuration
    #[arg(long, value_name = "NAME", default_value = "workbench", value_parser = super::import::filled)]
    name: String,

    /// Print JSON
    #[arg(long, conflicts_with = "client")]
    json: bool,
}

/// Reasons why nothing can be printed.
#[derive(Debug, Error)]
enum PermissionsError {
    #[error("cannot determine the path of this program")]
    Program(#[source] io::Error),
    /// A client's file cannot contain a path that is not UTF-8.
    #[error("the path `{}` is not UTF-8 text\n  hint: move the configuration", .0.display())]
    NotText(PathBuf),
    #[error(
        "the workbench cannot write permission rules for {client}\n  hint: the \
         workbench applies its own permissions in any case; `mcp-workbench permissions` shows them"
    )]
    NoRules { client: &'static str },
}

/// Shows the rules, prints rules for a client, or answers a hook.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &PermissionsArguments,
    environment: &Environment,
) -> CommandResult {
    if arguments.hook {
        answer_hook(config, arguments, environment);
        return Ok(ExitCode::SUCCESS);
    }
    // Loaded also with `--client`, so that rules are only printed for a valid configuration.
    let mut loaded = load_configuration(config, environment)?.config;
    let toolbox = arguments.toolbox.as_deref();
    choose_toolbox(&mut loaded, toolbox)?;
    let Some(name) = arguments.client else {
        if arguments.json {
            output::json(&as_json(&loaded));
        } else {
            output::data(&rendered(&loaded, OutputStyle::of_stdout(environment)));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let (file, _) = read_configuration(config, environment)?;
    print_client_rules(
        name,
        &loaded,
        &environment.absolute(&file),
        arguments,
        environment,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn print_client_rules(
    name: ClientName,
    loaded: &Config,
    file: &Path,
    arguments: &PermissionsArguments,
    environment: &Environment,
) -> Result<(), PermissionsError> {
    let program = stable_program(environment).map_err(PermissionsError::Program)?;
    let text = file
        .to_str()
        .ok_or_else(|| PermissionsError::NotText(file.to_owned()))?;
    let place = WorkbenchEntry {
        name: &arguments.name,
        program: &program,
        config: text,
        native: native_toolbox(loaded, arguments.toolbox.as_deref()),
    };
    let client = client(name);
    let snippet = snippet(name, &place).ok_or(PermissionsError::NoRules {
        client: client.title,
    })?;
    output::remark(&snippet.about);
    if let Some(warning) = without_rules(loaded) {
        output::remark(&warning);
    }
    output::data(&snippet.text);
    Ok(())
}

/// Returns a warning about servers without rules: nobody asks about their tools once the client does not.
fn without_rules(config: &Config) -> Option<String> {
    let servers: Vec<String> = config
        .toolboxes
        .values()
        .flat_map(|toolbox| {
            let servers = toolbox
                .servers
                .values()
                .filter(|it| it.permissions.is_empty());
            servers.map(|server| visible(&format!("{}/{}", toolbox.name, server.name)).into_owned())
        })
        .collect();
    (!servers.is_empty()).then(|| {
        let servers = servers.join(", ");
        format!("warning: all tools of these servers will run without approval, because they have no `permissions`: {servers}")
    })
}

/// Returns the toolbox of native mode.
fn native_toolbox<'a>(config: &'a Config, named: Option<&'a str>) -> Option<&'a str> {
    match &config.tool_mode {
        ToolMode::Native(toolbox) => Some(toolbox.as_str()),
        ToolMode::Proxy | ToolMode::Dynamic => named,
    }
}

/// Answers a hook. If something fails the answer is to ask, because clients continue when a hook fails.
fn answer_hook(config: Option<&Path>, arguments: &PermissionsArguments, environment: &Environment) {
    let questions = if arguments.leave_questions {
        ApprovalQuestions::LeaveToWorkbench
    } else {
        ApprovalQuestions::AskInClient
    };
    let mut text = Vec::new();
    let read = io::stdin().lock().take(MAX_QUESTION).read_to_end(&mut text);
    let question = serde_json::from_slice::<Value>(&text).ok();
    let Some(question) = question.filter(|_| read.is_ok()) else {
        let why = "stdin is not the input of a PreToolUse hook";
        return output::json(&hook::ask(why));
    };
    let answer = match load_configuration(config, environment) {
        Ok(loaded) => {
            let hook = Hook {
                native: native_toolbox(&loaded.config, arguments.toolbox.as_deref()),
                config: &loaded.config,
                cache: &ToolCache::of(&loaded.config),
                name: &arguments.name,
                questions,
            };
            hook.answer(&question)
        }
        // A hook sees the calls of all servers; those of others get no answer.
        Err(_) if !hook::is_ours(&question, &arguments.name) => None,
        Err(_) => Some(hook::ask(
            "the configuration of MCP Workbench cannot be read; run `mcp-workbench check`",
        )),
    };
    if let Some(answer) = answer {
        output::json(&answer);
    }
}

fn rendered(config: &Config, style: OutputStyle) -> String {
    let mut text = format!("{}\n", visible(&config.file.to_string_lossy()));
    for (name, toolbox) in &config.toolboxes {
        text.push_str(&rendered_toolbox(name, toolbox, style));
    }
    text
}

fn rendered_toolbox(name: &ToolboxName, toolbox: &Toolbox, style: OutputStyle) -> String {
    let mut text = format!("\n{}\n", style.paint(Ink::Strong, &visible(name.as_str())));
    for server in toolbox.servers.values() {
        let permissions = &server.permissions;
        text.push_str(&format!("  {}\n", visible(server.name.as_str())));
        if permissions.is_empty() {
            text.push_str("    all tools run without approval\n");
            continue;
        }
        let lists = [
            ("deny", Some(&permissions.deny)),
            ("ask", Some(&permissions.ask)),
        ];
        for (word, list) in lists
            .into_iter()
            .chain([("allow", permissions.allow.as_ref())])
        {
            if let Some(list) = list.filter(|list| !list.is_empty()) {
                let rules: Vec<_> = list.iter().map(|rule| visible(rule.written())).collect();
                text.push_str(&format!("    {word:<6}{}\n", rules.join(", ")));
            }
        }
        text.push_str(&format!(
            "    {:<6}{}\n",
            "else",
            default_decision(permissions)
        ));
    }
    text
}

/// Returns the decision for a tool that no rule matches.
fn default_decision(permissions: &Permissions) -> &'static str {
    match permissions.allow {
        Some(_) => "ask",
        None => "allow",
    }
}

fn as_json(config: &Config) -> Value {
    let rules =
        |list: &[PermissionRule]| -> Value { list.iter().map(PermissionRule::written).collect() };
    let toolboxes = config.toolboxes.iter().map(|(name, toolbox)| {
        let servers = toolbox.servers.values().map(|server| {
            let permissions = &server.permissions;
            let entry = json!({
                "deny": rules(&permissions.deny),
                "ask": rules(&permissions.ask),
                "allow": permissions.allow.as_deref().map(rules),
                "otherwise": default_decision(permissions),
            });
            (server.name.to_string(), entry)
        });
        (name.to_string(), Value::Object(servers.collect()))
    });
    json!({ "file": config.file.to_string_lossy(), "toolboxes": Value::Object(toolboxes.collect()) })
}
