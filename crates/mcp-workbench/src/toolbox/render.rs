//! An open toolbox as the text that a model reads: minified, in the order of the file, each definition
//! as its server sent it.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::json;

use super::opened::ServerFailure;
use crate::{
    config::Toolbox,
    downstream::{ToolDefinition, ToolList},
    ident::ServerName,
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
pub fn render(
    toolbox: &Toolbox,
    catalogue: &[(ServerName, Arc<ToolList>)],
    connected: usize,
    failures: &[ServerFailure],
) -> RawJson {
    let text = render_text(toolbox, catalogue, connected, failures);
    let text = String::from_utf8(text).expect("made of valid JSON");
    RawJson::of(&json!({ "content": [{ "type": "text", "text": text }] }))
}

fn render_text(
    toolbox: &Toolbox,
    catalogue: &[(ServerName, Arc<ToolList>)],
    connected: usize,
    failures: &[ServerFailure],
) -> Vec<u8> {
    let mut text = Vec::with_capacity(4096);
    text.extend_from_slice(b"{\"toolbox\":");
    write(&mut text, toolbox.name.as_str());
    text.extend_from_slice(b",\"description\":");
    write(&mut text, &toolbox.description);
    text.extend_from_slice(b",\"servers_connected\":");
    write(&mut text, &connected);
    text.extend_from_slice(b",\"tools\":[");
    let tools = catalogue
        .iter()
        .flat_map(|(server, list)| list.tools().iter().map(move |tool| (server, tool)));
    for (index, (server, tool)) in tools.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_tool(&mut text, toolbox, server, tool);
    }
    text.push(b']');
    write_extras(&mut text, catalogue, failures);
    text.push(b'}');
    text
}

/// A definition with its place added. A server's own members of these names are left out, so that none
/// can pose as another.
fn write_tool(text: &mut Vec<u8>, toolbox: &Toolbox, server: &ServerName, tool: &ToolDefinition) {
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
    write(text, toolbox.name.as_str());
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
