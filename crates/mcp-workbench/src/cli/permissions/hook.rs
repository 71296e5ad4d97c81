//! Answers a `PreToolUse` hook with the permissions of the configuration for the tool about to be called. The
//! hook only decides what the client asks; the workbench enforces its permissions in any case.
//!
//! A client names a tool by one joined name. It is never taken apart: it is compared with the names of all tools that
//! the tool cache has. A name that is not among them, or that may be one of several tools, gets no decision.

use ident::{ToolIdentifier, ToolName};
use serde_json::{Value, json};

use crate::{
    config::{Config, Server, ToolMode},
    downstream::ToolCache,
    meta::MetaTool,
    policy::permissions::{Verdict, verdict_by_name},
    toolbox::{possible_names, possible_registered_names},
    visible::visible,
};

/// The handling of tools that need the user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalQuestions {
    AskInClient,
    /// The workbench asks itself, so the client need not.
    LeaveToWorkbench,
}

/// The context of a hook.
pub(super) struct Hook<'a> {
    pub(super) config: &'a Config,
    /// The tools that the servers listed when they last ran.
    pub(super) cache: &'a ToolCache,
    /// The name that the client calls the workbench by.
    pub(super) name: &'a str,
    /// The toolbox of native mode.
    pub(super) native: Option<&'a str>,
    pub(super) questions: ApprovalQuestions,
}

/// The opinion of the hook on a call.
enum Decision {
    Allow(&'static str),
    Ask(String),
    Deny(String),
    /// The server has no rules, or the tool is unknown or not ours. The client applies its own rules, and the
    /// workbench its permissions.
    Unknown,
}

/// Returns the answer that makes the client ask the user.
pub(super) fn ask(why: &str) -> Value {
    answer("ask", why)
}

/// Returns true if the hook is about a tool of the workbench.
pub(super) fn is_ours(question: &Value, name: &str) -> bool {
    client_tool_name(question).is_some_and(|called| called.starts_with(&prefix(name)))
}

/// Returns the tool name that the client uses.
fn client_tool_name(question: &Value) -> Option<&str> {
    question.get("tool_name")?.as_str()
}

/// Returns the prefix of our tool names in the client.
pub(super) fn prefix(name: &str) -> String {
    format!("mcp__{}__", cleaned(name))
}

/// Replaces characters in a name the way the client does.
fn cleaned(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let name = name.chars();
    name.map(|it| if is_plain(it) { it } else { '_' }).collect()
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
    /// Returns the answer, or `None` if the tool is unknown or not ours.
    pub(super) fn answer(&self, question: &Value) -> Option<Value> {
        let called = client_tool_name(question)?;
        let mut meta_tools = MetaTool::ALL.into_iter();
        let meta_tool = meta_tools.find(|it| self.is_called(it.name(), called));
        let decision = match (self.native, meta_tool) {
            // In native mode the meta-tools are not exposed, so a tool may even have one of their names.
            (Some(toolbox), _) => self.native_tool(toolbox, called),
            (None, Some(MetaTool::UseTool)) => self.used_tool(question),
            (None, Some(MetaTool::RunCode)) => {
                Decision::Ask("its script may call any tool that scripts may call".to_owned())
            }
            (None, Some(_)) => Decision::Allow("this tool is read-only"),
            (None, None) if self.config.tool_mode == ToolMode::Dynamic => {
                self.registered_tool(called)
            }
            (None, None) => Decision::Unknown,
        };
        Some(match (decision, self.questions) {
            (Decision::Allow(why), _) => answer("allow", why),
            (Decision::Ask(_), ApprovalQuestions::LeaveToWorkbench) => answer(
                "allow",
                "it asks the user itself before the tool runs, if that is configured",
            ),
            (Decision::Ask(why), ApprovalQuestions::AskInClient) => answer("ask", &why),
            (Decision::Deny(why), _) => answer("deny", &why),
            (Decision::Unknown, _) => return None,
        })
    }

    /// Returns true if `called` is the client's name for a tool of the workbench.
    fn is_called(&self, tool: &str, called: &str) -> bool {
        format!("{}{}", prefix(self.name), cleaned(tool)) == called
    }

    /// Decides about a call through `use_tool`.
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

    /// Decides about a call by a registered name, which is compared with all names that the cached tools can
    /// have.
    fn registered_tool(&self, called: &str) -> Decision {
        let toolboxes = self.config.toolboxes.values();
        let servers = toolboxes.flat_map(|toolbox| {
            let servers = toolbox.servers.values();
            servers.map(move |server| (toolbox, server))
        });
        let decisions = servers.flat_map(|(toolbox, server)| {
            let tools = self.cache.tool_names(server).into_iter();
            tools.filter_map(move |tool| {
                let tool = ToolIdentifier {
                    toolbox: toolbox.name.clone(),
                    server: server.name.clone(),
                    tool,
                };
                let names = possible_registered_names(&tool, self.config.tool_name_limit);
                let mut names = names.iter();
                let is_called = names.any(|name| self.is_called(name, called));
                is_called.then(|| decide(server, tool.tool.as_str()))
            })
        });
        combine(decisions)
    }

    /// Decides about a call in native mode, by the tool's own name or by the one for duplicates.
    fn native_tool(&self, toolbox: &str, called: &str) -> Decision {
        let toolbox = self.config.toolboxes.get(toolbox).into_iter();
        let servers = toolbox.flat_map(|toolbox| toolbox.servers.values());
        let tools: Vec<(&Server, ToolName)> = servers
            .flat_map(|server| {
                let tools = self.cache.tool_names(server).into_iter();
                tools.map(|tool| (&**server, tool))
            })
            .collect();
        // Which server keeps a duplicate name depends on the servers that are up.
        let is_taken = |tool: &ToolName| tools.iter().filter(|it| it.1 == *tool).count() > 1;
        let decisions = tools.iter().filter_map(|(server, tool)| {
            let own = self.is_called(tool.as_str(), called);
            let is_called = own || self.is_called_as_second(server, tool, called) && is_taken(tool);
            is_called.then(|| decide(server, tool.as_str()))
        });
        combine(decisions)
    }

    /// Returns true if `called` is the name that a tool gets if another server has the same tool name.
    fn is_called_as_second(&self, server: &Server, tool: &ToolName, called: &str) -> bool {
        let (server, tool) = (server.name.as_str(), tool.as_str());
        let plain = format!("{server}__{tool}");
        let names = possible_names(&plain, &[server, tool], self.config.tool_name_limit);
        names.iter().any(|name| self.is_called(name, called))
    }
}

/// Decides by the rules of a server. Without rules the client decides: an answer would be an approval that nobody
/// has given.
fn decide(server: &Server, tool: &str) -> Decision {
    if server.permissions.is_empty() {
        return Decision::Unknown;
    }
    let shown = visible(tool);
    match verdict_by_name(&server.permissions, tool) {
        Some(Verdict::Allow) => Decision::Allow("its permissions allow the tool"),
        Some(Verdict::Ask(reason)) => Decision::Ask(format!(
            "its permissions require your approval for '{shown}' ({reason})"
        )),
        Some(Verdict::Deny(reason)) => {
            Decision::Deny(format!("its permissions do not allow '{shown}' ({reason})"))
        }
        None => Decision::Ask(format!(
            "the approval for '{shown}' depends on the annotations of its server"
        )),
    }
}

/// Combines the decisions about all tools that a name may mean. A call is denied only if all of them are denied,
/// and allowed only if none is denied or without rules.
fn combine(decisions: impl Iterator<Item = Decision>) -> Decision {
    let decisions: Vec<Decision> = decisions.collect();
    let is_denied = |decision: &&Decision| matches!(decision, Decision::Deny(_));
    // The name may mean several tools, and it is unknown which one is called.
    let denied = decisions.iter().filter(is_denied).count();
    let is_unknown = |decision: &Decision| matches!(decision, Decision::Unknown);
    if (denied > 0 && denied < decisions.len()) || decisions.iter().any(is_unknown) {
        return Decision::Unknown;
    }
    let rank = |decision: &Decision| match decision {
        Decision::Unknown => 0,
        Decision::Allow(_) => 1,
        Decision::Ask(_) => 2,
        Decision::Deny(_) => 3,
    };
    let strictest = decisions.into_iter().max_by_key(rank);
    strictest.unwrap_or(Decision::Unknown)
}
