//! Renders an open toolbox as the text that a model reads: minified, in the order of the file, each definition as its
//! server sent it.

use std::sync::Arc;

use ident::{ServerName, ToolboxName};
use indexmap::IndexMap;
use rawjson::{RawJson, write_escaped};
use serde::Serialize;

use super::{
    compact::write_input_schema,
    lean::{matching_text, opened_text},
    opened::{Opened, ServerFailure},
    shared_uris::shown_skills,
};
use crate::{
    config::{Detail, Toolbox},
    downstream::{ToolDefinition, ToolList, Withheld},
    visible::visible,
};

/// A tool that is not offered, as the result lists it.
#[derive(Serialize)]
struct WithheldTool<'a> {
    server: &'a str,
    tool: &'a str,
    reason: &'a str,
}

/// A skill, as the result lists it.
#[derive(Serialize)]
struct NamedSkill<'a> {
    server: &'a str,
    name: &'a str,
    description: &'a str,
    uri: &'a str,
}

/// The maximum size of the definitions in one answer. Servers share it, so that none can push out the tools of
/// another.
const MAX_LISTED_BYTES: usize = 16 * 1024 * 1024;

/// The maximum size of the withheld tools in one answer. Servers share it too.
const MAX_WITHHELD_BYTES: usize = 1024 * 1024;

/// The members of a definition that the detail `compact` has.
const COMPACT_MEMBERS: [&str; 3] = ["name", "description", "inputSchema"];

/// Returns the result of `open_toolbox` in any detail.
pub(crate) fn render_opened(opened: &Opened, detail: Detail) -> RawJson {
    match detail {
        Detail::Full => opened.full_result(),
        Detail::Compact => render(
            &opened.config,
            &opened.catalogue,
            opened.connected,
            &opened.failures,
            detail,
        ),
        Detail::Names | Detail::Brief | Detail::Signature => {
            text_result(&opened_text(opened, detail))
        }
    }
}

/// Returns the result of `open_toolbox` as JSON, with definitions in the detail `compact` or `full`.
pub(super) fn render(
    toolbox: &Toolbox,
    catalogue: &[(ServerName, Arc<ToolList>)],
    connected: usize,
    failures: &[ServerFailure],
    detail: Detail,
) -> RawJson {
    let sizes: Vec<usize> = catalogue.iter().map(|(_, list)| list.bytes()).collect();
    let share = share(&sizes, MAX_LISTED_BYTES);
    let tools: Vec<_> = catalogue
        .iter()
        .flat_map(|(server, list)| {
            let tools = within(list.tools().iter(), share, definition_bytes);
            tools.map(move |tool| (server, tool))
        })
        .collect();
    let shown = Shown {
        toolbox,
        catalogue,
        connected,
        left_out: count(catalogue) - tools.len(),
        in_all: None,
        notice: None,
        failures,
        detail,
    };
    render_shown(&shown, tools.iter().copied())
}

/// The tools of an open toolbox that match a query.
pub(crate) struct Matching<'a> {
    pub query: &'a str,
    /// The tools, best first.
    pub tools: Vec<(ServerName, &'a ToolDefinition)>,
    /// False if these are only the nearest tools.
    pub is_good: bool,
}

impl Matching<'_> {
    /// Returns the remark about a query without a good match.
    pub(super) fn no_good_match(&self) -> String {
        format!(
            "no good match for '{}', the tools are probably for something else",
            visible(self.query.trim())
        )
    }
}

/// Returns the result of `open_toolbox` with only the tools that match a query, best first, and with the total
/// number of tools.
pub(crate) fn render_matching(opened: &Opened, matching: &Matching<'_>, detail: Detail) -> RawJson {
    if !matches!(detail, Detail::Compact | Detail::Full) {
        return text_result(&matching_text(opened, matching, detail));
    }
    let catalogue = &opened.catalogue;
    let is_far = !matching.is_good && !matching.tools.is_empty();
    let notice = is_far.then(|| matching.no_good_match());
    let matching = &matching.tools;
    let definitions = matching.iter().map(|(_, tool)| *tool);
    let fitting = within(definitions, MAX_LISTED_BYTES, definition_bytes).count();
    let shown = Shown {
        toolbox: &opened.config,
        catalogue,
        connected: opened.connected,
        left_out: matching.len() - fitting,
        in_all: Some(count(catalogue)),
        notice,
        failures: &opened.failures,
        detail,
    };
    let tools = matching[..fitting]
        .iter()
        .map(|(server, tool)| (server, *tool));
    render_shown(&shown, tools)
}

fn count(catalogue: &[(ServerName, Arc<ToolList>)]) -> usize {
    catalogue.iter().map(|(_, list)| list.tools().len()).sum()
}

/// Returns the first items that together have at most `bytes` bytes.
fn within<'a, T: 'a>(
    items: impl Iterator<Item = &'a T>,
    bytes: usize,
    size: impl Fn(&T) -> usize,
) -> impl Iterator<Item = &'a T> {
    let mut used = 0;
    // Ends at the first item that does not fit, so that the answer has the beginning of the list and not some of it.
    items.take_while(move |item| {
        used += size(item);
        used <= bytes
    })
}

fn definition_bytes(tool: &ToolDefinition) -> usize {
    tool.definition.as_bytes().len()
}

fn withheld_bytes(withheld: &Withheld) -> usize {
    withheld.tool.len() + withheld.reason.len()
}

/// Returns the withheld tools of each server that fit into an answer, and the number of those that do not.
pub(super) fn shown_withheld(
    catalogue: &[(ServerName, Arc<ToolList>)],
) -> (Vec<&[Withheld]>, usize) {
    let lists = || catalogue.iter().map(|(_, list)| &list.withheld[..]);
    let sizes: Vec<usize> = lists()
        .map(|withheld| withheld.iter().map(withheld_bytes).sum())
        .collect();
    let share = share(&sizes, MAX_WITHHELD_BYTES);
    let shown: Vec<&[Withheld]> = lists()
        .map(|withheld| {
            let fitting = within(withheld.iter(), share, withheld_bytes).count();
            &withheld[..fitting]
        })
        .collect();
    let count: usize = shown.iter().map(|it| it.len()).sum();
    let left_out = lists().map(<[Withheld]>::len).sum::<usize>() - count;
    (shown, left_out)
}

/// Returns the error about withheld tools that do not fit into an answer.
pub(super) fn withheld_error(toolbox: &ToolboxName, left_out: usize) -> Option<String> {
    let toolbox = visible(toolbox.as_str());
    (left_out > 0).then(|| {
        format!(
            "Incomplete list of withheld tools of toolbox '{toolbox}': {left_out} are left out, because they are larger than \
             {MAX_WITHHELD_BYTES} bytes together"
        )
    })
}

/// Returns the share of each of several lists so that all together have at most `bytes`. Lists that need less leave
/// the rest to the others.
fn share(sizes: &[usize], bytes: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = bytes;
    // From the smallest: what it does not need goes to the larger ones.
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            return share;
        }
        left -= size;
    }
    bytes
}

/// Returns a result with one text content.
pub(crate) fn text_result(text: &str) -> RawJson {
    let mut result = TextResult::with_room(text.len());
    write_escaped(&mut result.0, text);
    result.finish()
}

/// A result with one text content, whose text is written in parts: it may have megabytes, which are written once.
struct TextResult(Vec<u8>);

impl TextResult {
    /// Creates a result with capacity for a text of so many bytes.
    fn with_room(bytes: usize) -> Self {
        // Room for escapes too: in a definition about each sixteenth byte has one.
        let mut text = Vec::with_capacity(bytes + bytes / 12 + 64);
        text.extend_from_slice(br#"{"content":[{"type":"text","text":""#);
        Self(text)
    }

    /// Appends a part of the text, and clears it.
    fn append(&mut self, part: &mut Vec<u8>) {
        write_escaped(
            &mut self.0,
            str::from_utf8(part).expect("made of valid JSON"),
        );
        part.clear();
    }

    fn finish(mut self) -> RawJson {
        self.0.extend_from_slice(br#""}]}"#);
        RawJson::trusted(self.0.into())
    }
}

/// The information beside the tools.
struct Shown<'a> {
    toolbox: &'a Toolbox,
    catalogue: &'a [(ServerName, Arc<ToolList>)],
    /// The number of connected servers.
    connected: usize,
    /// The number of tools that do not fit into the answer.
    left_out: usize,
    /// The total number of tools, if not all are shown.
    in_all: Option<usize>,
    /// A notice about the result itself.
    notice: Option<String>,
    failures: &'a [ServerFailure],
    detail: Detail,
}

/// The size of the parts in which the text is written.
const PART_BYTES: usize = 4096;

fn render_shown<'a>(
    shown: &Shown<'_>,
    tools: impl Iterator<Item = (&'a ServerName, &'a ToolDefinition)> + Clone,
) -> RawJson {
    let Shown {
        toolbox,
        catalogue: _,
        connected,
        left_out: _,
        in_all,
        notice: _,
        failures: _,
        detail,
    } = *shown;
    // Written piece by piece: definitions are copied as bytes, which a JSON value would not preserve.
    let mut text = Vec::with_capacity(2 * PART_BYTES);
    let origin = r#","server":"","toolbox":"""#.len() + toolbox.name.as_str().len();
    let sizes = tools
        .clone()
        .map(|(server, tool)| definition_bytes(tool) + server.as_str().len() + origin);
    let mut result = TextResult::with_room(PART_BYTES + sizes.sum::<usize>());
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
        write_tool(&mut text, &toolbox.name, server, tool, detail);
        if text.len() > PART_BYTES {
            result.append(&mut text);
        }
    }
    text.push(b']');
    if let Some(in_all) = in_all {
        text.extend_from_slice(b",\"tools_in_all\":");
        write(&mut text, &in_all);
    }
    write_extras(&mut text, shown);
    text.push(b'}');
    result.append(&mut text);
    result.finish()
}

/// Appends a definition with its server and toolbox, in the detail `compact` or `full`. A server's own members of these
/// names are removed, so that no server can pose as another.
pub(super) fn write_tool(
    text: &mut Vec<u8>,
    toolbox: &ToolboxName,
    server: &ServerName,
    tool: &ToolDefinition,
    detail: Detail,
) {
    text.push(b'{');
    if detail == Detail::Compact {
        write_compact_members(text, tool);
    } else {
        let is_own = |key: &[u8]| !matches!(key, b"server" | b"toolbox");
        tool.definition.minify_members_into(text, is_own);
    }
    text.extend_from_slice(b"\"server\":");
    write(text, server.as_str());
    text.extend_from_slice(b",\"toolbox\":");
    write(text, toolbox.as_str());
    text.push(b'}');
}

fn write_compact_members(text: &mut Vec<u8>, tool: &ToolDefinition) {
    for member in tool.definition.members().unwrap_or_default() {
        let key = &*member.key;
        if !COMPACT_MEMBERS.contains(&key) {
            continue;
        }
        text.extend_from_slice(member.key_as_sent);
        text.push(b':');
        if key == "inputSchema" {
            write_input_schema(text, &member.value, tool.name.as_str());
        } else {
            member.value.minify_into(text);
        }
        text.push(b',');
    }
}

/// Writes the members that are present only if they are not empty.
fn write_extras(text: &mut Vec<u8>, shown: &Shown<'_>) {
    let catalogue = shown.catalogue;
    let mut errors: Vec<String> = shown.failures.iter().map(ToString::to_string).collect();
    errors.extend(incomplete_lists(&shown.toolbox.name, catalogue));
    errors.extend(left_out_error(&shown.toolbox.name, shown.left_out));
    let (withheld, withheld_left_out) = shown_withheld(catalogue);
    errors.extend(withheld_error(&shown.toolbox.name, withheld_left_out));
    let withheld: Vec<WithheldTool<'_>> = catalogue
        .iter()
        .zip(withheld)
        .flat_map(|((server, _), withheld)| {
            withheld.iter().map(move |it| WithheldTool {
                server: server.as_str(),
                tool: &it.tool,
                reason: &it.reason,
            })
        })
        .collect();
    let of_servers = catalogue.iter().flat_map(|(server, list)| {
        list.notices
            .iter()
            .map(move |notice| format!("server '{}': {notice}", visible(server.as_str())))
    });
    let notices: Vec<String> = shown.notice.iter().cloned().chain(of_servers).collect();
    let instructions: IndexMap<&str, &str> = catalogue
        .iter()
        .filter_map(|(server, list)| {
            Some((server.as_str(), list.introduction.instructions.as_deref()?))
        })
        .collect();
    // Most answers have none of these, and every member costs the model words.
    write_extra(text, "_errors", errors.is_empty(), &errors);
    write_extra(text, "withheld", withheld.is_empty(), &withheld);
    write_extra(text, "notices", notices.is_empty(), &notices);
    let skills = shown_skills(&shown.toolbox.name, catalogue);
    let skills: Vec<NamedSkill<'_>> = skills
        .iter()
        .map(|shown| NamedSkill {
            server: shown.server.as_str(),
            name: &shown.skill.name,
            description: &shown.skill.description,
            uri: &shown.uri,
        })
        .collect();
    write_extra(text, "skills", skills.is_empty(), &skills);
    write_extra(text, "instructions", instructions.is_empty(), &instructions);
}

/// Returns the notices about lists that were not read to their end.
pub(super) fn incomplete_lists(
    toolbox: &ToolboxName,
    catalogue: &[(ServerName, Arc<ToolList>)],
) -> impl Iterator<Item = String> {
    catalogue.iter().filter_map(move |(server, list)| {
        let incomplete = list.incomplete.as_deref()?;
        let (server, toolbox) = (visible(server.as_str()), visible(toolbox.as_str()));
        Some(format!(
            "Incomplete tool list of server '{server}' in toolbox '{toolbox}': {incomplete}"
        ))
    })
}

fn left_out_error(toolbox: &ToolboxName, left_out: usize) -> Option<String> {
    let toolbox = visible(toolbox.as_str());
    (left_out > 0).then(|| {
        format!(
            "Incomplete tool list of toolbox '{toolbox}': {left_out} tools are left out, because the definitions are \
             larger than {MAX_LISTED_BYTES} bytes together. They can be used; list them with detail \"signature\" or a query"
        )
    })
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
