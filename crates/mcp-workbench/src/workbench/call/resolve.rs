//! The first step of a call: finds the server that has the tool, toolbox first, then server, then tool.

use std::sync::Arc;

use ident::{ToolIdentifier, ToolName};

use super::{Mode, ToolNames};
use crate::{
    call::ClientHandle,
    config::MetaTool,
    downstream::{Cause, ConnectError, ServerHandle, Status, ToolList, Urgency, Withheld},
    policy::permissions::NotPermitted,
    toolbox::Toolbox,
    workbench::Workbench,
};

/// The reason why a tool could not be found.
#[derive(Debug)]
pub(crate) enum LookupError {
    /// No such toolbox is configured.
    ToolboxUnknown,
    /// The toolbox is not open; this meta-tool would open it.
    ToolboxNotOpen(MetaTool),
    /// The toolbox has no such server.
    ServerUnknown,
    /// The server has no such tool.
    ToolUnknown,
    /// The server has one of this name that is withheld.
    ToolWithheld {
        /// The reason in words, with the command that reviews it.
        reason: String,
    },
    /// The tool may not be called.
    NotPermitted(NotPermitted),
    /// The tool is withheld because nobody has approved it.
    ToolNotApproved {
        /// The reason in words, with the next step.
        reason: String,
    },
    /// The server is not up and could not be started.
    NotConnected(Arc<ConnectError>),
}

impl LookupError {
    /// Returns the stable code for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::ToolboxUnknown => "toolbox_unknown",
            Self::ToolboxNotOpen(_) => "toolbox_not_open",
            Self::ServerUnknown => "server_unknown",
            Self::ToolUnknown => "tool_unknown",
            Self::ToolWithheld { .. } => "tool_withheld",
            Self::NotPermitted(refusal) => refusal.code(),
            Self::ToolNotApproved { .. } => "tool_not_approved",
            Self::NotConnected(error) => error.code(),
        }
    }
}

/// The outcome of a lookup. A wait is represented as data, so that a call that does not wait creates no future.
pub(super) enum Lookup {
    /// The server has the tool, or had it when it was last up.
    Found {
        server: Arc<ServerHandle>,
        tool: ToolIdentifier,
        /// Set if the user may have to be asked: there are rules for the tools of the server.
        may_ask: bool,
    },
    /// The toolbox is not open, and this call waits for that.
    Unopened(Arc<Toolbox>),
    /// The server has to list its tools first.
    Unlisted(Arc<ServerHandle>),
}

/// The number of times that a call has waited for its tool to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    /// The call has waited: the present state decides.
    Again,
}

/// Finds a tool by the names that a client uses, as far as this is possible without waiting.
pub(super) fn look_up(
    workbench: &Workbench,
    mode: Mode,
    names: ToolNames<'_>,
    attempt: Attempt,
    client: &Arc<dyn ClientHandle>,
) -> Result<Lookup, LookupError> {
    match mode {
        Mode::Native => look_up_shown(workbench, names.tool, attempt),
        Mode::UseTool | Mode::Registered | Mode::Script => {
            look_up_identifier(workbench, names, attempt, client)
        }
    }
}

fn look_up_identifier(
    workbench: &Workbench,
    names: ToolNames<'_>,
    attempt: Attempt,
    client: &Arc<dyn ClientHandle>,
) -> Result<Lookup, LookupError> {
    // Borrowed to the end, so that toolbox and configuration are those of one moment.
    let now = workbench.now.borrow();
    let toolbox = now
        .toolboxes
        .get(names.toolbox)
        .ok_or(LookupError::ToolboxUnknown)?;
    if !toolbox.is_usable() {
        if now.config.auto_open {
            // The call needs only its own server, so it continues without waiting for the others.
            workbench.open_in_background(toolbox, client);
        } else if attempt == Attempt::First {
            // An open that was requested just before may not have begun yet.
            return Ok(Lookup::Unopened(Arc::clone(toolbox)));
        } else {
            return Err(LookupError::ToolboxNotOpen(opener(&now.config.meta_tools)));
        }
    }
    let contents = toolbox.contents();
    let server = contents.servers().get_key_value(names.server);
    let (server_name, server) = server.ok_or(LookupError::ServerUnknown)?;
    // By reference: cloning the status would cost every call two counters of its list.
    let found = server.inspect(|status| find_listed(status, names.tool, attempt))?;
    Ok(match found {
        Some(Listed { name, may_ask }) => Lookup::Found {
            server: Arc::clone(server),
            tool: ToolIdentifier {
                toolbox: toolbox.name().clone(),
                server: server_name.clone(),
                tool: name,
            },
            may_ask,
        },
        None => Lookup::Unlisted(Arc::clone(server)),
    })
}

/// A tool that a server has listed.
struct Listed {
    name: ToolName,
    may_ask: bool,
}

/// Returns a tool that the server has listed; `None` if the server has to be asked.
fn find_listed(
    status: &Status,
    tool: &str,
    attempt: Attempt,
) -> Result<Option<Listed>, LookupError> {
    let Some(tools) = &status.tools else {
        return Ok(None);
    };
    match tools.get(tool) {
        Some(tool) => Ok(Some(Listed {
            name: tool.name.clone(),
            may_ask: tools.is_judged(),
        })),
        // A stale list may lack the tool that the server has just announced.
        None if status.stale && attempt == Attempt::First => Ok(None),
        None => Err(missing(tools, tool)),
    }
}

/// Finds the tool that native mode shows under a name.
fn look_up_shown(
    workbench: &Workbench,
    name: &str,
    attempt: Attempt,
) -> Result<Lookup, LookupError> {
    let native = workbench.native().ok_or(LookupError::ToolUnknown)?;
    let toolbox = native.toolbox();
    if toolbox.opened().is_none() && attempt == Attempt::First {
        return Ok(Lookup::Unopened(Arc::clone(toolbox)));
    }
    let route = native.route(name);
    let server = route.as_ref().and_then(|it| toolbox.server(&it.server));
    match (route, server) {
        (Some(route), Some(server)) => {
            let tool = ToolIdentifier {
                toolbox: toolbox.name().clone(),
                server: route.server,
                tool: (&*route.original).into(),
            };
            // Only the list of the server would tell, and the check reads that anyway.
            let may_ask = true;
            Ok(Lookup::Found {
                server,
                tool,
                may_ask,
            })
        }
        _ => Err(match native.missing(name) {
            Some((_, list)) => missing(&list, name),
            None => LookupError::ToolUnknown,
        }),
    }
}

/// Waits for the condition that a lookup needs. Fails if the server requires a sign-in.
pub(super) async fn wait(
    workbench: &Workbench,
    lookup: Lookup,
    client: &Arc<dyn ClientHandle>,
) -> Result<(), LookupError> {
    match lookup {
        Lookup::Found { .. } => Ok(()),
        Lookup::Unopened(toolbox) => {
            if workbench.native().is_some() {
                workbench.open_native(client).await;
            } else {
                toolbox.is_open().await;
            }
            Ok(())
        }
        Lookup::Unlisted(server) => {
            let listed = server.connect(Urgency::ForCall, Arc::clone(client)).await;
            listed.map(drop).map_err(LookupError::NotConnected)
        }
    }
}

/// Returns the meta-tool with which a toolbox is opened.
fn opener(meta_tools: &[MetaTool]) -> MetaTool {
    if meta_tools.contains(&MetaTool::OpenToolbox) {
        MetaTool::OpenToolbox
    } else {
        MetaTool::SearchTools
    }
}

/// Returns the reason why a tool is not in a list.
fn missing(tools: &ToolList, name: &str) -> LookupError {
    if let Some(refusal) = tools.denied(name) {
        return LookupError::NotPermitted(refusal);
    }
    match tools.withheld_as(name) {
        Some(Withheld {
            cause: Cause::NotApproved,
            reason,
            ..
        }) => LookupError::ToolNotApproved {
            reason: reason.clone(),
        },
        Some(Withheld { reason, .. }) => LookupError::ToolWithheld {
            reason: reason.clone(),
        },
        None => LookupError::ToolUnknown,
    }
}

/// Returns the names that a caller may have meant, where a lookup failed.
pub(super) fn known_names(
    workbench: &Workbench,
    tool: &ToolIdentifier,
    error: &LookupError,
) -> Vec<String> {
    let toolbox = workbench.toolbox(tool.toolbox.as_str());
    match (error, toolbox) {
        (LookupError::ToolboxUnknown, _) => {
            let names = workbench.toolbox_names();
            names.iter().map(ToString::to_string).collect()
        }
        (LookupError::ServerUnknown, Some(toolbox)) => {
            let contents = toolbox.contents();
            contents.servers().keys().map(ToString::to_string).collect()
        }
        (LookupError::ToolUnknown, Some(toolbox)) => {
            let server = toolbox.server(&tool.server);
            let tools = server
                .and_then(|server| server.status().tools)
                .unwrap_or_default();
            tools.tools().iter().map(|it| it.name.to_string()).collect()
        }
        _ => Vec::new(),
    }
}
