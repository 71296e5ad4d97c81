//! Tools in as few words as a model needs: one line per tool, without JSON.

use ident::{ServerName, ToolIdentifier, ToolboxName};

use super::{
    opened::Opened,
    render::{Matching, incomplete_lists, shown_withheld, withheld_error, write_tool},
    shared_uris::shown_skills,
    signature::{parameters, sentence, sentence_of, shown_name},
};
use crate::{config::Detail, downstream::ToolDefinition, visible::visible};

/// The number of characters shown of a server's instructions.
const MAX_INSTRUCTION_CHARACTERS: usize = 160;

/// Returns the line of a tool: its name, and the parts that the level of detail adds.
pub(crate) fn line(tool: &ToolDefinition, detail: Detail) -> String {
    let mut text = shown_name(tool.name.as_str()).into_owned();
    if detail == Detail::Signature {
        text.push_str(&parameters(&tool.definition));
        if let Some(shape) = tool.shape.signature() {
            text.push(' ');
            text.push_str(&shape);
        }
    }
    if detail != Detail::Names
        && let Some(sentence) = sentence(&tool.definition)
    {
        text.push_str(" — ");
        text.push_str(&sentence);
    }
    text
}

/// Returns a definition as `open_toolbox` has it in the detail `compact` or `full`, with its server and toolbox.
pub(crate) fn definition_line(
    toolbox: &ToolboxName,
    server: &ServerName,
    tool: &ToolDefinition,
    detail: Detail,
) -> String {
    let mut text = Vec::new();
    write_tool(&mut text, toolbox, server, tool, detail);
    String::from_utf8(text).expect("made of valid JSON")
}

/// Describes an open toolbox: its servers, each with its tools.
pub(super) fn opened_text(opened: &Opened, detail: Detail) -> String {
    let tools: usize = opened
        .catalogue
        .iter()
        .map(|(_, it)| it.tools().len())
        .sum();
    let mut text = format!(
        "{}: {} of {}. {}\n",
        title(opened),
        counted(tools, "tool"),
        counted(opened.catalogue.len(), "server"),
        next_step(detail)
    );
    for (server, list) in &opened.catalogue {
        let name = shown_name(server.as_str());
        let lines: Vec<String> = list.tools().iter().map(|tool| line(tool, detail)).collect();
        let instructions = list.introduction.instructions.as_deref();
        let instructions =
            sentence_of(instructions.unwrap_or_default(), MAX_INSTRUCTION_CHARACTERS);
        match detail {
            Detail::Names => text.push_str(&format!("{name}: {}\n", lines.join(", "))),
            _ if instructions.is_empty() => {
                text.push_str(&format!("server {name}:\n"));
            }
            _ => text.push_str(&format!("server {name}: {instructions}\n")),
        }
        if detail != Detail::Names {
            for line in lines {
                text.push_str(&format!("{line}\n"));
            }
        }
    }
    text.push_str(&remarks(opened));
    text
}

/// Describes the tools of an open toolbox that match a query, best first.
pub(super) fn matching_text(opened: &Opened, matching: &Matching<'_>, detail: Detail) -> String {
    let tools: usize = opened
        .catalogue
        .iter()
        .map(|(_, it)| it.tools().len())
        .sum();
    let (title, tools) = (title(opened), counted(tools, "tool"));
    let mut text = match matching.tools.len() {
        0 => format!(
            "{title}: none of {tools} matches '{}'. Use other words, or leave out the query.\n",
            visible(matching.query)
        ),
        count if matching.is_good => format!(
            "{title}: {count} of {tools} match, best first, each as server and tool. {}\n",
            next_step(detail)
        ),
        count => format!(
            "{title}: {}. Nearest {count} of {tools}, each as server and tool. Use other words, or leave out the query.\n",
            matching.no_good_match()
        ),
    };
    for (server, tool) in &matching.tools {
        let server = shown_name(server.as_str());
        text.push_str(&format!("{server} {}\n", line(tool, detail)));
    }
    text.push_str(&remarks(opened));
    text
}

/// Returns the toolbox's name with its description.
fn title(opened: &Opened) -> String {
    let name = shown_name(opened.config.name.as_str());
    let description = sentence_of(&opened.config.description, MAX_INSTRUCTION_CHARACTERS);
    match description.trim_end_matches('.') {
        "" => format!("toolbox {name}"),
        description => format!("toolbox {name} ({description})"),
    }
}

/// Returns the hint at the next step for the model.
fn next_step(detail: Detail) -> &'static str {
    match detail {
        Detail::Names | Detail::Brief => "For parameters use detail \"signature\".",
        Detail::Signature | Detail::Compact | Detail::Full => {
            "Run them with use_tool (? = optional)."
        }
    }
}

/// Returns the remarks: servers that are not up, incomplete lists, withheld tools, notices.
fn remarks(opened: &Opened) -> String {
    let mut text = String::new();
    for failure in &opened.failures {
        text.push_str(&format!("{}\n", visible(&failure.to_string())));
    }
    for incomplete in incomplete_lists(&opened.config.name, &opened.catalogue) {
        text.push_str(&format!("{}\n", visible(&incomplete)));
    }
    for shown in shown_skills(&opened.config.name, &opened.catalogue) {
        let server = shown_name(shown.server.as_str());
        let description = sentence_of(&shown.skill.description, MAX_INSTRUCTION_CHARACTERS);
        let (name, uri) = (visible(&shown.skill.name), visible(&shown.uri));
        text.push_str(&format!("skill: {server} {name} ({uri}): {description}\n"));
    }
    let (withheld, left_out) = shown_withheld(&opened.catalogue);
    if let Some(error) = withheld_error(&opened.config.name, left_out) {
        text.push_str(&format!("{error}\n"));
    }
    for ((server, list), withheld) in opened.catalogue.iter().zip(withheld) {
        let server = shown_name(server.as_str());
        for withheld in withheld {
            let (tool, reason) = (shown_name(&withheld.tool), visible(&withheld.reason));
            text.push_str(&format!("withheld: {server} {tool}: {reason}\n"));
        }
        for notice in &list.notices {
            text.push_str(&format!("notice: {server}: {}\n", visible(notice)));
        }
    }
    text
}

/// Returns the three names of a tool, to be copied one by one.
pub(crate) fn shown_identifier(tool: &ToolIdentifier) -> String {
    let names = [
        tool.toolbox.as_str(),
        tool.server.as_str(),
        tool.tool.as_str(),
    ];
    names.map(shown_name).join(" ")
}

/// Returns a number with the noun that it counts.
pub(crate) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
