//! The text of a search result for a model: a summary, then one line per tool.

use ident::{ToolIdentifier, ToolboxName};

use crate::{
    config::Detail,
    toolbox::{counted, definition_line, line, shown_identifier, shown_name},
    visible::visible,
    workbench::{FoundTool, Search},
};

/// The number of near-duplicates that are named per tool.
const MOST_ALIKE: usize = 3;

/// The number of toolboxes that are named.
const MOST_TOOLBOXES: usize = 20;

/// The hint if there is no good match.
const OTHER_WORDS: &str = "Try other words: what the tool does and to what, one step at a time, in the language of the tools.";

/// Returns the text of a search result.
pub(crate) fn text(search: &Search, query: &str, detail: Detail) -> String {
    if search.hits.is_empty() {
        return nothing(search, query);
    }
    let mut text = heading(search, query, detail);
    for hit in search.shown() {
        text.push('\n');
        text.push_str(&hit_line(hit, detail));
    }
    // The model must not conclude that there is no such tool.
    if !search.failures.is_empty() {
        let servers: Vec<String> = search
            .failures
            .iter()
            .map(|it| {
                let (toolbox, server) = (it.toolbox.as_str(), it.server.as_str());
                format!("{} {}", shown_name(toolbox), shown_name(server))
            })
            .collect();
        text.push_str(&format!("\nNot searched (not up): {}", servers.join(", ")));
    }
    if !search.is_good {
        text.push('\n');
        text.push_str(OTHER_WORDS);
    }
    text
}

fn heading(search: &Search, query: &str, detail: Detail) -> String {
    let shown = search.shown().len();
    let form = match detail {
        Detail::Names | Detail::Brief => {
            "as toolbox server tool; detail \"signature\" shows parameters"
        }
        Detail::Signature => "as toolbox server tool(parameters, ? = optional)",
        Detail::Compact | Detail::Full => "with toolbox and server",
    };
    if !search.is_good {
        let query = visible(query.trim());
        let searched = counted(search.tools, "tool");
        return format!(
            "No good match for '{query}'. Nearest {shown} of {searched}, probably for something else, {form}."
        );
    }
    format!(
        "{shown} of {}, {form}. Run with use_tool.",
        counted_matches(search.matches.max(shown))
    )
}

fn counted_matches(matches: usize) -> String {
    match matches {
        1 => "1 match".to_owned(),
        matches => format!("{matches} matches"),
    }
}

fn hit_line(hit: &FoundTool, detail: Detail) -> String {
    let ToolIdentifier {
        toolbox, server, ..
    } = &hit.tool;
    let mut text = match detail {
        Detail::Compact | Detail::Full => definition_line(toolbox, server, &hit.definition, detail),
        Detail::Names | Detail::Brief | Detail::Signature => {
            let (toolbox, server) = (shown_name(toolbox.as_str()), shown_name(server.as_str()));
            format!("{toolbox} {server} {}", line(&hit.definition, detail))
        }
    };
    // Copies of one server would otherwise fill the list with the same tool.
    let shown: Vec<String> = hit
        .alike
        .iter()
        .take(MOST_ALIKE)
        .map(|it| difference(&hit.tool, it))
        .collect();
    if !shown.is_empty() {
        text.push_str(&format!(" [also: {}", shown.join(", ")));
        match hit.alike.len() - shown.len() {
            0 => text.push(']'),
            more => text.push_str(&format!(", …{more} more]")),
        }
    }
    text
}

/// Returns the parts of a tool's identifier that differ from another's.
fn difference(tool: &ToolIdentifier, other: &ToolIdentifier) -> String {
    // Only what differs is named, because every word costs the model.
    if other.tool != tool.tool {
        return shown_identifier(other);
    }
    let server = shown_name(other.server.as_str());
    if other.toolbox == tool.toolbox {
        return format!("server {server}");
    }
    format!(
        "toolbox {} server {server}",
        shown_name(other.toolbox.as_str())
    )
}

/// Returns the text if nothing was found: what was searched, what was not, and what to try.
fn nothing(search: &Search, query: &str) -> String {
    if search.toolboxes.is_empty() && search.failures.is_empty() {
        return "No tool found: no servers are configured to search.".to_owned();
    }
    let mut text = format!(
        "No tool matches '{}'. Searched {} of {} in {}.",
        visible(query.trim()),
        counted(search.tools, "tool"),
        counted(search.servers, "server"),
        named(&search.toolboxes)
    );
    for failure in &search.failures {
        text.push('\n');
        text.push_str(&visible(&failure.to_string()));
    }
    text.push('\n');
    text.push_str(OTHER_WORDS);
    text
}

fn named(toolboxes: &[ToolboxName]) -> String {
    let shown: Vec<_> = toolboxes
        .iter()
        .take(MOST_TOOLBOXES)
        .map(|it| shown_name(it.as_str()))
        .collect();
    let mut text = match toolboxes {
        [_] => "toolbox ".to_owned(),
        _ => "toolboxes ".to_owned(),
    };
    text.push_str(&shown.join(", "));
    if toolboxes.len() > shown.len() {
        text.push_str(&format!(" and {} more", toolboxes.len() - shown.len()));
    }
    text
}

#[cfg(test)]
mod tests;
