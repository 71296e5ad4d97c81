//! Remarks of the scanner for a user who is about to approve: withheld tools, and findings that may be harmless.

use serde::Serialize;

use crate::{
    cli::{probe::ProbeResult, terminal::count},
    downstream::{Cause, ToolList},
    policy::scan::{self, Finding, ServerTools},
    visible::revealed,
};

/// The maximum number of remarks per server.
const MAX_REMARKS: usize = 20;

/// A remark about a server or one of its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Remark {
    /// The tool; `None` for a remark about the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    pub(super) text: String,
}

impl Remark {
    pub(super) fn of_server(said: &str) -> Self {
        Self {
            tool: None,
            text: said.to_owned(),
        }
    }

    fn of_tool(tool: &str, said: &str) -> Self {
        Self {
            text: format!("tool '{}': {said}", revealed(tool)),
            tool: Some(tool.to_owned()),
        }
    }
}

/// Returns the remarks about a server among all that were started with it.
pub(super) fn of(server: &ProbeResult, all: &[ProbeResult]) -> Vec<Remark> {
    let Ok(list) = &server.tools else {
        return Vec::new();
    };
    let withheld = list
        .withheld
        .iter()
        .filter(|it| matches!(it.cause, Cause::Definition | Cause::Finding(_)));
    let withheld =
        withheld.map(|it| Remark::of_tool(it.name.as_str(), &format!("withheld: {}", it.reason)));
    let definitions = list.tools().iter().flat_map(|tool| {
        let findings = scan::scan(&tool.definition).into_iter();
        findings.map(|finding| Remark::of_tool(tool.name.as_str(), &finding.to_string()))
    });
    let remarks = withheld
        .chain(instructions(list))
        .chain(definitions)
        .chain(across(server, all));
    bounded(remarks.collect())
}

/// Returns remarks about the server's instructions.
fn instructions(list: &ToolList) -> impl Iterator<Item = Remark> {
    let text = list.introduction.instructions.as_deref();
    let findings = text.map(scan::instructions).unwrap_or_default().into_iter();
    findings.map(|finding: Finding| Remark::of_server(&format!("server instructions: {finding}")))
}

/// Returns remarks that only show when the servers of a toolbox are compared.
fn across(server: &ProbeResult, all: &[ProbeResult]) -> impl Iterator<Item = Remark> {
    // Only servers of the same toolbox are shown to a model together.
    let beside = all.iter().filter(|it| it.toolbox == server.toolbox);
    let lists = beside.filter_map(|probed| {
        let tools = probed.tools.as_ref().ok()?.tools().iter();
        Some(ServerTools {
            server: probed.server.name.as_str(),
            tools: tools.map(|it| (it.name.as_str(), &it.definition)).collect(),
        })
    });
    let findings = scan::across(&lists.collect::<Vec<_>>()).into_iter();
    let name = server.server.name.clone();
    let findings = findings.filter(move |it| it.server == name.as_str());
    findings.map(|finding| Remark {
        text: finding.to_string(),
        tool: Some(finding.tool),
    })
}

/// Limits the number of remarks.
fn bounded(mut remarks: Vec<Remark>) -> Vec<Remark> {
    let more = remarks.len().saturating_sub(MAX_REMARKS);
    if more > 0 {
        remarks.truncate(MAX_REMARKS);
        remarks.push(Remark {
            tool: None,
            text: format!("{} more of this kind", count(more, "finding")),
        });
    }
    remarks
}
