//! The answers to a `PreToolUse` hook: what the configuration says of the tool that is about to be called. The hook
//! only decides what the client asks; whatever it answers, the workbench keeps to its permissions.

use serde_json::{Value, json};

use crate::{
    config::{Config, Server, ToolMode, Toolbox},
    meta::MetaTool,
    policy::permissions::{Verdict, verdict_by_name},
    visible::visible,
};

/// What is done about tools that the user is to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Questions {
    /// The client asks.
    Asked,
    /// The workbench does, so that the client need not.
    Left,
}

/// What is known when a client asks.
pub(super) struct Hook<'a> {
    pub(super) config: &'a Config,
    /// The name that the client calls the workbench by.
    pub(super) name: &'a str,
    /// The toolbox that is shown natively, if one is.
    pub(super) native: Option<&'a str>,
    pub(super) questions: Questions,
}

/// What is thought of a call.
enum Decision {
    Allow(&'static str),
    Ask(String),
    Deny(String),
    /// It may be a tool of somebody else: a client calls that of a server `workbench__x` by a name that begins as ours do.
    Unknown(&'static str),
}

/// The answer that has the client ask.
pub(super) fn ask(why: &str) -> Value {
    answer("ask", why)
}

/// Whether a question is about the workbench at all.
pub(super) fn is_ours(question: &Value, name: &str) -> bool {
    tool_name(question, name).is_some()
}

/// The name of the tool that is called, if it is one of the workbench.
fn tool_name<'a>(question: &'a Value, name: &str) -> Option<&'a str> {
    let tool = question.get("tool_name")?.as_str()?;
    tool.strip_prefix(&prefix(name))
}

/// What the client puts before the names of our tools.
pub(super) fn prefix(name: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let name: String = name
        .chars()
        .map(|it| if plain(it) { it } else { '_' })
        .collect();
    format!("mcp__{name}__")
}

fn answer(decision: &str, why: &str) -> Value {
    json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": format!("MCP Workbench: {why}"),
        },
    })
}

impl Hook<'_> {
    /// The answer; nothing if the tool is not ours.
    pub(super) fn answer(&self, question: &Value) -> Option<Value> {
        let tool = tool_name(question, self.name)?;
        let decision = match (self.native, MetaTool::named(tool)) {
            (Some(toolbox), _) => self.native_tool(toolbox, tool),
            (None, Some(MetaTool::UseTool)) => self.used_tool(question),
            (None, Some(_)) => Decision::Allow("it only looks"),
            (None, None) if self.config.tool_mode == ToolMode::Dynamic => {
                self.registered_tool(tool)
            }
            (None, None) => Decision::Unknown("it is no tool of the workbench"),
        };
        Some(match (decision, self.questions) {
            (Decision::Allow(why), _) => answer("allow", why),
            (Decision::Ask(_), Questions::Left) => answer(
                "allow",
                "it asks by itself before the tool runs, where that is configured",
            ),
            (Decision::Ask(why), Questions::Asked) => answer("ask", &why),
            (Decision::Deny(why), _) => answer("deny", &why),
            // Nobody else asks about what is not ours.
            (Decision::Unknown(why), _) => answer("ask", why),
        })
    }

    /// A call by `use_tool`.
    fn used_tool(&self, question: &Value) -> Decision {
        let part = |name: &str| {
            question
                .pointer(&format!("/tool_input/tool/{name}"))?
                .as_str()
        };
        let (Some(toolbox), Some(server), Some(tool)) =
            (part("toolbox"), part("server"), part("tool"))
        else {
            return Decision::Ask("the call names no tool".into());
        };
        let server = self
            .config
            .toolboxes
            .get(toolbox)
            .and_then(|it| it.servers.get(server));
        match server {
            Some(server) => decide(server, tool),
            None => Decision::Ask("the configuration has no such server".into()),
        }
    }

    /// A call by a name that stands for toolbox, server and tool. Which one it stands for is known only to the
    /// workbench that has given it, so that all that it could be count.
    fn registered_tool(&self, name: &str) -> Decision {
        let toolboxes = self.config.toolboxes.values();
        let decisions = toolboxes.flat_map(|toolbox| {
            toolbox.servers.values().filter_map(|server| {
                let tool = name.strip_prefix(&format!("{}__{}__", toolbox.name, server.name))?;
                Some(decide(server, tool))
            })
        });
        strictest(decisions)
    }

    /// A call by the tool's own name, which may be that of any server of the toolbox.
    fn native_tool(&self, toolbox: &str, tool: &str) -> Decision {
        let toolbox = self.config.toolboxes.get(toolbox);
        let servers = toolbox
            .into_iter()
            .flat_map(|toolbox: &std::sync::Arc<Toolbox>| toolbox.servers.values());
        let is_of =
            |server: &std::sync::Arc<Server>| tool.starts_with(&format!("{}__", server.name));
        if tool.contains("__") && !servers.clone().any(is_of) {
            return Decision::Unknown("it is not known whose tool this is");
        }
        strictest(servers.flat_map(|server| {
            let own = tool.strip_prefix(&format!("{}__", server.name));
            [
                Some(decide(server, tool)),
                own.map(|own| decide(server, own)),
            ]
            .into_iter()
            .flatten()
        }))
    }
}

/// What the rules of a server say of its tool.
fn decide(server: &Server, tool: &str) -> Decision {
    let shown = visible(tool);
    match verdict_by_name(&server.permissions, tool) {
        Some(Verdict::Allow) => Decision::Allow("its permissions allow the tool"),
        Some(Verdict::Ask(reason)) => Decision::Ask(format!(
            "its permissions want you to be asked about '{shown}' ({reason})"
        )),
        Some(Verdict::Deny(reason)) => {
            Decision::Deny(format!("its permissions do not allow '{shown}' ({reason})"))
        }
        None => Decision::Ask(format!(
            "whether '{shown}' needs your consent depends on what its server says of it"
        )),
    }
}

/// The strictest of several decisions; where there is none, the user is asked.
fn strictest(decisions: impl Iterator<Item = Decision>) -> Decision {
    let rank = |decision: &Decision| match decision {
        Decision::Allow(_) => 0,
        Decision::Ask(_) => 1,
        Decision::Unknown(_) => 2,
        Decision::Deny(_) => 3,
    };
    let strictest = decisions.max_by_key(rank);
    strictest.unwrap_or(Decision::Unknown("it is not known which tool this is"))
}
