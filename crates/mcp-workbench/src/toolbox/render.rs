//! An open toolbox as the text that a model reads: minified, in the order of the file, each definition
//! as its server sent it.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::json;

use super::opened::{Opened, ServerFailure};
use crate::{
    config::Toolbox,
    downstream::{ToolDefinition, ToolList},
    ident::{ServerName, ToolboxName},
    wire::RawJson,
};

/// A tool that is not offered, as the result tells it.
#[derive(Serialize)]
struct WithheldTool<'a> {
    server: &'a str,
    tool: &'a str,
    reason: &'a str,
}

/// The result of `open_toolbox`.
pub(super) fn render(
    toolbox: &Toolbox,
    catalogue: &[(ServerName, Arc<ToolList>)],
    connected: usize,
    failures: &[ServerFailure],
) -> RawJson {
    let tools = catalogue
        .iter()
        .flat_map(|(server, list)| list.tools().iter().map(move |tool| (server, tool)));
    let shown = Shown {
        toolbox,
        catalogue,
        connected,
        in_all: None,
        failures,
    };
    text_result(&render_text(&shown, tools))
}

/// The same with only the tools that match a query, best first, and how many there are in all.
pub fn render_matching(opened: &Opened, matching: &[(ServerName, &ToolDefinition)]) -> RawJson {
    let catalogue = &opened.catalogue;
    let in_all = catalogue.iter().map(|(_, list)| list.tools().len()).sum();
    let tools = matching.iter().map(|(server, tool)| (server, *tool));
    let shown = Shown {
        toolbox: &opened.config,
        catalogue,
        connected: opened.connected,
        in_all: Some(in_all),
        failures: &opened.failures,
    };
    text_result(&render_text(&shown, tools))
}

/// A result that holds one text.
pub fn text_result(text: &str) -> RawJson {
    RawJson::of(&json!({ "content": [{ "type": "text", "text": text }] }))
}

/// What is shown beside the tools.
struct Shown<'a> {
    toolbox: &'a Toolbox,
    catalogue: &'a [(ServerName, Arc<ToolList>)],
    /// How many servers are connected.
    connected: usize,
    /// How many tools there are, where not all are shown.
    in_all: Option<usize>,
    failures: &'a [ServerFailure],
}

fn render_text<'a>(
    shown: &Shown<'_>,
    tools: impl Iterator<Item = (&'a ServerName, &'a ToolDefinition)>,
) -> String {
    let Shown {
        toolbox,
        catalogue,
        connected,
        in_all,
        failures,
    } = *shown;
    let mut text = Vec::with_capacity(4096);
    text.extend_from_slice(b"{\"toolbox\":");
    write(&mut text, toolbox.name.as_str());
    text.extend_from_slice(b",\"description\":");
    write(&mut text, &toolbox.description);
    text.extend_from_slice(b",\"servers_connected\":");
    write(&mut text, &connected);
    text.extend_from_slice(b",\"tools\":[");
    for (index, (server, tool)) in tools.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_tool(&mut text, &toolbox.name, server, tool);
    }
    text.push(b']');
    if let Some(in_all) = in_all {
        text.extend_from_slice(b",\"tools_in_all\":");
        write(&mut text, &in_all);
    }
    write_extras(&mut text, catalogue, failures);
    text.push(b'}');
    String::from_utf8(text).expect("made of valid JSON")
}

/// A definition with its place added. A server's own members of these names are left out, so that none
/// can pose as another.
pub(super) fn write_tool(
    text: &mut Vec<u8>,
    toolbox: &ToolboxName,
    server: &ServerName,
    tool: &ToolDefinition,
) {
    text.push(b'{');
    for member in tool.definition.members().unwrap_or_default() {
        if member.key != "server" && member.key != "toolbox" {
            text.extend_from_slice(member.key_as_sent);
            text.push(b':');
            member.value.minify_into(text);
            text.push(b',');
        }
    }
    text.extend_from_slice(b"\"server\":");
    write(text, server.as_str());
    text.extend_from_slice(b",\"toolbox\":");
    write(text, toolbox.as_str());
    text.push(b'}');
}

/// The members that are there only when they are not empty.
fn write_extras(
    text: &mut Vec<u8>,
    catalogue: &[(ServerName, Arc<ToolList>)],
    failures: &[ServerFailure],
) {
    let errors: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let withheld = catalogue.iter().flat_map(|(server, list)| {
        list.withheld.iter().map(move |it| WithheldTool {
            server: server.as_str(),
            tool: &it.tool,
            reason: &it.reason,
        })
    });
    let withheld: Vec<WithheldTool<'_>> = withheld.collect();
    let notices = catalogue.iter().flat_map(|(server, list)| {
        list.notices
            .iter()
            .map(move |notice| format!("server '{server}': {notice}"))
    });
    let notices: Vec<String> = notices.collect();
    let instructions = catalogue.iter().filter_map(|(server, list)| {
        Some((server.as_str(), list.introduction.instructions.as_deref()?))
    });
    let instructions: IndexMap<&str, &str> = instructions.collect();
    write_extra(text, "_errors", errors.is_empty(), &errors);
    write_extra(text, "withheld", withheld.is_empty(), &withheld);
    write_extra(text, "notices", notices.is_empty(), &notices);
    write_extra(text, "instructions", instructions.is_empty(), &instructions);
}

fn write_extra(text: &mut Vec<u8>, key: &str, is_empty: bool, value: &impl Serialize) {
    if !is_empty {
        text.push(b',');
        write(text, key);
        text.push(b':');
        write(text, value);
    }
}

fn write(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(text, value).expect("writing our own values to memory cannot fail");
}

#[cfg(test)]
mod tests;
