//! What a client can be told about our tools in its own rules. Every rule lets our meta-tools through, because the
//! workbench decides by itself about the tools behind them; Claude Code can also ask it.

use serde_json::{Value, json};

use super::hook::prefix;
use crate::{
    cli::shell::quoted,
    clients::{ClientName, client},
    meta::MetaTool,
};

/// Where the workbench is, as a client knows it.
pub(super) struct Place<'a> {
    /// The name that the client calls it by.
    pub(super) name: &'a str,
    pub(super) program: &'a str,
    pub(super) config: &'a str,
    /// The toolbox that is shown natively, if one is.
    pub(super) native: Option<&'a str>,
}

/// What a person is told.
pub(super) struct Told {
    /// What it is, and where it goes.
    pub(super) about: String,
    /// What is to be put there.
    pub(super) text: String,
}

/// What a client can be told; nothing if it has no such rules.
pub(super) fn snippet(name: ClientName, place: &Place<'_>) -> Option<Told> {
    let title = client(name).title;
    let (file, text) = match name {
        ClientName::ClaudeCode => return Some(claude_code(place)),
        // The rules of the others go by the names of tools, of which there are not two that are ours here.
        _ if place.native.is_some() => return has_rules(name).then(|| native(title)),
        ClientName::Codex => ("~/.codex/config.toml", codex(place)),
        ClientName::Cursor => ("~/.cursor/permissions.json", pretty(&cursor(place))),
        ClientName::Gemini => (
            "a file such as ~/.gemini/policies/workbench.toml",
            gemini(place),
        ),
        ClientName::OpenCode => ("its opencode.json", pretty(&opencode(place))),
        ClientName::Cline | ClientName::Kiro => ("the workbench's entry", approved("autoApprove")),
        ClientName::Roo => ("the workbench's entry", approved("alwaysAllow")),
        _ => return None,
    };
    let mut about = format!(
        "For {title}, in {file}: it lets the workbench's own tools run without a question, because the\nworkbench \
         decides about each tool behind them by the permissions in its configuration."
    );
    if name == ClientName::Cursor {
        about.push_str(
            "\nThis list takes the place of the one in Cursor's settings: add what you have allowed there.",
        );
    }
    Some(Told { about, text })
}

fn has_rules(name: ClientName) -> bool {
    matches!(
        name,
        ClientName::Codex
            | ClientName::Cursor
            | ClientName::Gemini
            | ClientName::OpenCode
            | ClientName::Cline
            | ClientName::Kiro
            | ClientName::Roo
    )
}

fn native(title: &str) -> Told {
    Told {
        about: format!(
            "A toolbox that is shown natively needs nothing: {title} sees each tool by its own name, and its rules \
             can tell them apart."
        ),
        text: String::new(),
    }
}

fn claude_code(place: &Place<'_>) -> Told {
    let mut words = vec![place.program, "permissions", "--hook", "--leave-questions"];
    words.extend(["--config", place.config, "--name", place.name]);
    if let Some(toolbox) = place.native {
        words.extend(["--toolbox", toolbox]);
    }
    let command: Vec<String> = words.into_iter().map(quoted).collect();
    let hook = json!({
        "hooks": {
            "PreToolUse": [{
                "matcher": format!("{}.*", prefix(place.name)),
                "hooks": [{ "type": "command", "command": command.join(" ") }],
            }],
        },
    });
    Told {
        about: "For Claude Code, in ~/.claude/settings.json or a project's .claude/settings.json: before each call \
                it asks the\nworkbench, which answers by the permissions in its configuration. What you are to be \
                asked about, the workbench\nasks; without --leave-questions Claude Code asks, and the workbench \
                again."
            .to_owned(),
        text: pretty(&hook),
    }
}

fn codex(place: &Place<'_>) -> String {
    let name = toml_edit::Key::new(place.name);
    let tools = MetaTool::ALL.into_iter().map(|tool| {
        let tool = tool.name();
        format!("[mcp_servers.{name}.tools.{tool}]\napproval_mode = \"approve\"\n")
    });
    tools.collect::<Vec<_>>().join("\n")
}

fn cursor(place: &Place<'_>) -> Value {
    let tools = MetaTool::ALL.into_iter();
    let tools: Vec<_> = tools
        .map(|tool| format!("{}:{}", place.name, tool.name()))
        .collect();
    json!({ "mcpAllowlist": tools })
}

fn gemini(place: &Place<'_>) -> String {
    let name = toml_edit::Value::from(place.name);
    let tools = MetaTool::ALL.into_iter().map(|tool| {
        let tool = tool.name();
        format!(
            "[[rule]]\nmcpName = {name}\ntoolName = \"{tool}\"\ndecision = \"allow\"\npriority = 100\n"
        )
    });
    tools.collect::<Vec<_>>().join("\n")
}

fn opencode(place: &Place<'_>) -> Value {
    let tools = MetaTool::ALL.into_iter();
    let tools = tools.map(|tool| (format!("{}_{}", place.name, tool.name()), json!("allow")));
    json!({ "permission": Value::Object(tools.collect()) })
}

/// A list in the entry of the server itself.
fn approved(key: &str) -> String {
    let tools: Vec<_> = MetaTool::ALL.into_iter().map(MetaTool::name).collect();
    pretty(&json!({ key: tools }))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
