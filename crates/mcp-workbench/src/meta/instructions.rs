//! The instructions that a client gets when it starts: the list of toolboxes, short enough that no client cuts it.

use super::fitting::{MAX_CHARACTERS, size};
use crate::config::{Config, MetaTool, Toolbox};

/// The length below which descriptions are not shortened; toolboxes are left out instead.
const MIN_DESCRIPTION_LENGTH: usize = 20;

const HEADING: &str = "## Available Toolboxes\n\n";
const HOW_TO_OPEN: &str = "  - Use `open_toolbox` with toolbox name to access\n";
const FOOTER: &str = "To open a toolbox and see available tools:\n\
                      1. Call `open_toolbox` with the desired toolbox name\n\
                      2. Inspect the returned tools array for available operations";
const HOW_TO_SEARCH: &str =
    "To find a tool in all toolboxes: call `search_tools` with what it should do";

/// The amount of detail for each toolbox.
#[derive(Clone, Copy)]
struct Detail<'a> {
    how_to_open: bool,
    footer: &'a str,
    description: usize,
    toolboxes: usize,
}

/// Returns the instructions for a configuration.
pub fn instructions(config: &Config) -> String {
    let toolboxes: Vec<&Toolbox> = config.toolboxes.values().map(AsRef::as_ref).collect();
    if toolboxes.is_empty() {
        return format!(
            "No toolboxes are configured. Add one under \"toolboxes\" in {}.",
            config.file.display()
        );
    }
    let footer = footer(&config.meta_tools);
    // Written and measured: the text has too many optional parts to compute its length.
    let fits = |detail: Detail<'_>| size(&write(&toolboxes, detail)) <= MAX_CHARACTERS;
    let longest = toolboxes
        .iter()
        .map(|it| it.description.chars().count())
        .max();
    let mut detail = Detail {
        how_to_open: config.meta_tools.contains(&MetaTool::OpenToolbox),
        footer: &footer,
        description: longest.unwrap_or(0),
        toolboxes: toolboxes.len(),
    };
    // The contract fixes this order: the lines about opening go first, then descriptions are shortened evenly, then
    // toolboxes are left out.
    if !fits(detail) {
        detail.how_to_open = false;
    }
    if !fits(detail) {
        let shorter = |description| Detail {
            description,
            ..detail
        };
        let lengths = MIN_DESCRIPTION_LENGTH..=detail.description.max(MIN_DESCRIPTION_LENGTH);
        detail.description = largest(lengths, |length| fits(shorter(length)));
    }
    if !fits(detail) {
        let fewer = |toolboxes| Detail {
            toolboxes,
            ..detail
        };
        detail.toolboxes = largest(0..=toolboxes.len(), |count| fits(fewer(count)));
    }
    write(&toolboxes, detail)
}

fn write(toolboxes: &[&Toolbox], detail: Detail<'_>) -> String {
    let mut text = HEADING.to_owned();
    for toolbox in &toolboxes[..detail.toolboxes] {
        let servers = match toolbox.servers.len() {
            1 => "1 server".to_owned(),
            count => format!("{count} servers"),
        };
        text.push_str(&format!("- **{}** ({servers})", toolbox.name));
        if !toolbox.description.is_empty() {
            let description = shortened(&toolbox.description, detail.description);
            text.push_str(&format!(": {description}"));
        }
        text.push('\n');
        if detail.how_to_open {
            text.push_str(HOW_TO_OPEN);
        }
        text.push('\n');
    }
    let left_out = toolboxes.len() - detail.toolboxes;
    if left_out > 0 {
        text.push_str(&format!("… and {left_out} more\n\n"));
    }
    text.push_str(detail.footer);
    text
}

/// Returns the next steps for the model, with the enabled meta-tools.
fn footer(meta_tools: &[MetaTool]) -> String {
    let ways: Vec<&str> = [
        (MetaTool::OpenToolbox, FOOTER),
        (MetaTool::SearchTools, HOW_TO_SEARCH),
    ]
    .iter()
    .filter(|(tool, _)| meta_tools.contains(tool))
    .map(|(_, words)| *words)
    .collect();
    ways.join("\n\n")
}

/// Returns the description on one line, shortened to `limit` characters.
fn shortened(description: &str, limit: usize) -> String {
    let line = description.replace(['\n', '\r'], " ");
    if line.chars().count() <= limit {
        return line;
    }
    let kept: String = line.chars().take(limit - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Returns the largest number of a range for which `holds` is true, if it is true for all smaller ones; the smallest
/// of the range if it is true for none.
fn largest(range: std::ops::RangeInclusive<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = range.into_inner();
    while low < high {
        let middle = (low + high).div_ceil(2);
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests;
