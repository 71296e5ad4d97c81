//! Findings about the tools of servers that are up. All are remarks; none is an error.

use std::fmt;

use super::finding::listed;
use crate::{
    cli::terminal::count,
    policy::scan::{CrossFinding, Finding},
    visible::{visible, visible_name},
};

/// A finding about the tools of a server or of a toolbox.
#[derive(Debug)]
pub(super) enum ToolFinding {
    /// The server has no tools.
    None {
        /// True if filters may have removed them.
        is_filtered: bool,
    },
    /// A tool is not offered.
    Withheld { tool: String, reason: String },
    /// A tool is not offered because it is not approved.
    NotApproved { tool: String, reason: String },
    /// The list is over a bound of the configuration and was not read to its end.
    Incomplete(String),
    /// Something about the list of tools.
    Notice(String),
    /// A filter under `resultSelect` is for a tool that the server does not have.
    UnknownSelect(String),
    /// Names that are too long for clients.
    LongNames {
        tools: Vec<String>,
        clients: Vec<&'static str>,
        /// True if clients see the names.
        is_shown: bool,
    },
    /// Names with characters that clients refuse.
    RefusedNames {
        tools: Vec<String>,
        clients: Vec<&'static str>,
    },
    /// More tools than clients show.
    TooMany {
        count: usize,
        clients: Vec<(&'static str, usize)>,
    },
    /// Servers of one toolbox have tools of the same name.
    DuplicateTool { tool: String, servers: Vec<String> },
    /// A scanner finding in a definition.
    Definition { tool: String, finding: Finding },
    /// A scanner finding in the server's instructions.
    Instructions(Finding),
    /// Scanner findings beyond the number that is shown.
    MoreDefinitions { count: usize },
    /// A scanner finding about the tools of several servers.
    Across(CrossFinding),
}

impl ToolFinding {
    /// Returns the stable code for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::None { .. } => "no_tools",
            Self::Withheld { .. } => "tool_withheld",
            Self::NotApproved { .. } => "tool_not_approved",
            Self::Incomplete(_) => "tools_incomplete",
            Self::Notice(_) => "notice",
            Self::UnknownSelect(_) => "unknown_select",
            Self::LongNames { .. } => "name_too_long",
            Self::RefusedNames { .. } => "name_refused",
            Self::TooMany { .. } => "too_many_tools",
            Self::DuplicateTool { .. } => "duplicate_tool",
            Self::Definition { finding, .. } | Self::Instructions(finding) => finding.code(),
            Self::MoreDefinitions { .. } => "more_findings",
            Self::Across(finding) => finding.code(),
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::None { is_filtered: true } => "check its \"toolFilters\"",
            Self::None { is_filtered: false } => {
                "it may have prompts or resources only; native mode shows them"
            }
            Self::Withheld { .. } => "report this to the developer of the server",
            Self::NotApproved { .. } => "review the difference before you approve it",
            Self::Incomplete(_) => {
                "raise \"maxTools\" or \"maxToolListBytes\" of the server if you trust it with the memory"
            }
            Self::Notice(_) => "if you do not expect this, find out why before you use the server",
            Self::UnknownSelect(_) => "correct the name, or remove the filter",
            Self::LongNames { is_shown: true, .. } | Self::RefusedNames { .. } => {
                "use \"toolMode\": \"proxy\", which does not expose these names to the client"
            }
            Self::LongNames {
                is_shown: false, ..
            } => {
                "nothing needs to be done: use_tool accepts any name; in native mode they would be cut or \
                 refused"
            }
            Self::TooMany { .. } => {
                "remove tools with \"toolFilters\", or use \"toolMode\": \"proxy\""
            }
            Self::DuplicateTool { .. } => {
                "nothing needs to be done: the server tells them apart; \"toolFilters\" can remove \
                 one"
            }
            Self::Definition { .. } | Self::MoreDefinitions { .. } | Self::Across(_) => {
                "it may be harmless: read the definition (list --tools --json); \"toolFilters\" can remove \
                 the tool"
            }
            Self::Instructions(_) => {
                "it may be harmless: a model reads it when it opens the toolbox; \"disabled\": true removes \
                 the server"
            }
        }
    }
}

impl fmt::Display for ToolFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { .. } => f.write_str("it offers no tools"),
            Self::Withheld { tool, reason } | Self::NotApproved { tool, reason } => {
                let (tool, reason) = (visible_name(tool), visible(reason));
                write!(f, "tool '{tool}' is not offered: {reason}")
            }
            Self::Incomplete(incomplete) => {
                write!(f, "incomplete tool list: {}", visible(incomplete))
            }
            Self::Notice(notice) => write!(f, "{}", visible(notice)),
            Self::UnknownSelect(words) => f.write_str(words),
            Self::LongNames { tools, clients, .. } => {
                let clients = clients.join(", ");
                write!(
                    f,
                    "names that are too long for {clients}: {}",
                    listed(tools)
                )
            }
            Self::RefusedNames { tools, clients } => {
                let clients = clients.join(", ");
                let tools = listed(tools);
                write!(f, "names with characters that {clients} refuse: {tools}")
            }
            Self::TooMany { count, clients } => {
                let clients = clients
                    .iter()
                    .map(|(client, most)| format!("{client} ({most})"))
                    .collect::<Vec<_>>()
                    .join(", ");
                write!(f, "{count} tools, more than these clients show: {clients}")
            }
            Self::DuplicateTool { tool, servers } => {
                let tool = visible_name(tool);
                write!(
                    f,
                    "tool '{tool}' is in several servers: {}",
                    listed(servers)
                )
            }
            Self::Definition { tool, finding } => {
                write!(f, "tool '{}': {finding}", visible_name(tool))
            }
            Self::Instructions(finding) => write!(f, "server instructions: {finding}"),
            Self::MoreDefinitions { count: more } => {
                write!(f, "{} more of this kind", count(*more, "finding"))
            }
            Self::Across(finding) => finding.fmt(f),
        }
    }
}
