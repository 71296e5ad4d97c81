//! The meta-tools that a configuration can enable.

#[cfg(test)]
use schemars::JsonSchema;

use super::{
    problems::ValueFault,
    raw::{Node, Reader},
};
use crate::near::nearest;

/// A tool of the workbench itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename_all = "snake_case"))]
pub enum MetaTool {
    /// Connects to the servers of a toolbox and returns their tools.
    OpenToolbox,
    /// Runs one of those tools.
    UseTool,
    /// Finds tools in all toolboxes by what they do.
    SearchTools,
    /// Reads more of a result that was over its budget.
    ReadResult,
    /// Runs a script that calls tools.
    RunCode,
}

/// The names of all meta-tools.
const NAMES: &[&str] = &[
    "open_toolbox",
    "use_tool",
    "search_tools",
    "read_result",
    "run_code",
];

impl MetaTool {
    /// All meta-tools, in the order of their names.
    pub const ALL: [Self; 5] = [
        Self::OpenToolbox,
        Self::UseTool,
        Self::SearchTools,
        Self::ReadResult,
        Self::RunCode,
    ];

    /// The meta-tools that are enabled by default.
    pub const DEFAULT: [Self; 2] = [Self::OpenToolbox, Self::UseTool];

    /// Returns the meta-tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns the name that clients call it by.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// Reads a list of meta-tools. It must have no duplicates, and must allow a model to find a tool and to call it.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Vec<MetaTool>> {
    let items = reader.items(node)?;
    let mut tools = Vec::new();
    let mut is_whole = true;
    for item in &items {
        let Some(word) = reader.text(item) else {
            is_whole = false;
            continue;
        };
        match MetaTool::named(&word.written) {
            Some(tool) if tools.contains(&tool) => {
                let word = word.written;
                reader.report_value(item, ValueFault::Repeated { word });
            }
            Some(tool) => tools.push(tool),
            None => {
                is_whole = false;
                let fault = ValueFault::UnknownWord {
                    near: nearest(&word.written, NAMES.iter().copied()),
                    found: word.written,
                    known: NAMES,
                };
                reader.report_value(item, fault);
            }
        }
    }
    // A misspelled name must not be reported as missing as well.
    if is_whole {
        for lack in lacks(&tools) {
            reader.report_value(node, lack);
        }
    }
    Some(tools)
}

/// Returns the actions that are impossible with these tools alone.
fn lacks(tools: &[MetaTool]) -> Vec<ValueFault> {
    let ways = [
        ("called", &["use_tool"][..], &[MetaTool::UseTool][..]),
        (
            "found",
            &["open_toolbox", "search_tools"],
            &[MetaTool::OpenToolbox, MetaTool::SearchTools],
        ),
    ];
    let lacking = ways
        .into_iter()
        .filter(|(_, _, ways)| !ways.iter().any(|way| tools.contains(way)));
    lacking
        .map(|(what, names, _)| ValueFault::NoMetaTool { what, names })
        .collect()
}
