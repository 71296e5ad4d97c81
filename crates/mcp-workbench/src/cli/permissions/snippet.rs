//! Rules for clients about our tools. They allow the meta-tools, because the workbench itself decides about the
//! tools behind them. Claude Code can also ask the workbench through a hook.

use serde_json::{Value, json};

use super::hook::prefix;
use crate::{
    cli::shell::quoted,
    clients::{ClientName, client},
    meta::MetaTool,
};

/// The workbench as a client knows it.
pub(super) struct WorkbenchEntry<'a> {
    /// The name of the workbench in the client.
    pub(super) name: &'a str,
    pub(super) program: &'a str,
    pub(super) config: &'a str,
    /// The toolbox of native mode.
    pub(super) native: Option<&'a str>,
}

/// Text for the user to paste.
pub(super) struct Snippet {
    /// A description, with the file it belongs to.
    pub(super) about: String,
    pub(super) text: String,
}

/// Returns the rules for a client; `None` if it has none.
pub(super) fn snippet(name: ClientName, place: &WorkbenchEntry<'_>) -> Option<Snippet> {
    let title = client(name).title;
    let (file, text) = match name {
        ClientName::ClaudeCode => return Some(claude_code(place)),
        // The rules of other clients match tool names. In native mode these are the servers' own, so there is
        // nothing to write.
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
        "For {title}, in {file}: it lets the workbench's own tools run without approval, because the\nworkbench \
         decides about each tool behind them by the permissions in its configuration."
    );
    if name == ClientName::Cursor {
        about.push_str(
            "\nThis list replaces the one in Cursor's settings: add the tools that you have allowed there.",
        );
    }
    Some(Snippet { about, text })
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

fn native(title: &str) -> Snippet {
    Snippet {
        about: format!(
            "A toolbox in native mode needs no rules: {title} sees each tool by its own name, and its own rules \
             can tell them apart."
        ),
        text: String::new(),
    }
}

fn claude_code(place: &WorkbenchEntry<'_>) -> Snippet {
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
    Snippet {
        about: "For Claude Code, in ~/.claude/settings.json or a project's .claude/settings.json: before each call \
                it asks the\nworkbench, which answers by the permissions in its configuration. Where your approval is \
                needed, the workbench\nasks; without --leave-questions Claude Code asks, and the workbench asks \
                again."
            .to_owned(),
        text: pretty(&hook),
    }
}

fn codex(place: &WorkbenchEntry<'_>) -> String {
    let name = toml_edit::Key::new(place.name);
    let tools = MetaTool::ALL.into_iter().map(|tool| {
        let tool = tool.name();
        format!("[mcp_servers.{name}.tools.{tool}]\napproval_mode = \"approve\"\n")
    });
    tools.collect::<Vec<_>>().join("\n")
}

fn cursor(place: &WorkbenchEntry<'_>) -> Value {
    let tools: Vec<_> = MetaTool::ALL
        .into_iter()
        .map(|tool| format!("{}:{}", place.name, tool.name()))
        .collect();
    json!({ "mcpAllowlist": tools })
}

fn gemini(place: &WorkbenchEntry<'_>) -> String {
    let name = toml_edit::Value::from(place.name);
    let tools = MetaTool::ALL.into_iter().map(|tool| {
        let tool = tool.name();
        format!(
            "[[rule]]\nmcpName = {name}\ntoolName = \"{tool}\"\ndecision = \"allow\"\npriority = 100\n"
        )
    });
    tools.collect::<Vec<_>>().join("\n")
}

fn opencode(place: &WorkbenchEntry<'_>) -> Value {
    let tools = MetaTool::ALL
        .into_iter()
        .map(|tool| (format!("{}_{}", place.name, tool.name()), json!("allow")));
    json!({ "permission": Value::Object(tools.collect()) })
}

/// Returns a list for the entry of the server itself.
fn approved(key: &str) -> String {
    let tools: Vec<_> = MetaTool::ALL.into_iter().map(MetaTool::name).collect();
    pretty(&json!({ key: tools }))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
