//! Token costs as a chart and as a JSON document.

use serde::Serialize;

use super::cost::{Costs, LargeTool, ServerCost};
use crate::{
    cli::terminal::{Column, Ink, OutputStyle, Table, bar, count, cut, grouped},
    config::Detail,
    visible::{visible, visible_name},
};

/// The number of the largest definitions that are shown.
const MAX_LARGEST: usize = 10;

/// The preferred and the minimum width of a bar.
const BAR_WIDTH: usize = 40;
const MIN_BAR_WIDTH: usize = 8;

/// The maximum width of a name in a chart.
const NAME_WIDTH: usize = 40;

/// The tokenizer that the counts refer to.
const TOKENIZER: &str = "o200k_base";

/// One line of a chart.
struct CostLine {
    name: String,
    value: usize,
    note: String,
}

/// Formats the costs as a chart.
pub(super) fn render(costs: &Costs, style: OutputStyle) -> String {
    let servers: usize = costs.toolboxes.iter().map(|it| it.servers.len()).sum();
    let mut text = format!(
        "{}\n{} with {}\n",
        visible(&costs.file),
        count(servers, "server"),
        count(costs.tools(), "tool")
    );
    for toolbox in &costs.toolboxes {
        let lines = toolbox.servers.iter().map(server_line).collect::<Vec<_>>();
        let name = visible(toolbox.name.as_str());
        text.push_str(&heading(
            style,
            &format!("{name}, {}", about(toolbox.flat())),
        ));
        text.push_str(&chart(&lines, style));
    }
    let largest = costs
        .largest(MAX_LARGEST)
        .iter()
        .map(tool_line)
        .collect::<Vec<_>>();
    if !largest.is_empty() {
        text.push_str(&heading(style, "the largest definitions"));
        text.push_str(&chart(&largest, style));
    }
    text.push_str(&heading(style, "what a model reads"));
    text.push_str(&chart(&compared(costs), style));
    text.push_str(&conclusion(costs));
    text
}

fn heading(style: OutputStyle, text: &str) -> String {
    format!("\n{}\n", style.paint(Ink::Strong, text))
}

fn about(tokens: usize) -> String {
    format!("about {}", count(tokens, "token"))
}

fn server_line(server: &ServerCost) -> CostLine {
    CostLine {
        name: server.name.clone(),
        value: server.total(),
        note: match &server.tools {
            Ok(tools) => count(tools.len(), "tool"),
            Err(_) => "failed".to_owned(),
        },
    }
}

fn tool_line(tool: &LargeTool<'_>) -> CostLine {
    CostLine {
        name: format!("{}/{}", tool.server, tool.tool),
        value: tool.tokens,
        note: tool.toolbox.to_owned(),
    }
}

/// Returns the lines that compare all servers without the workbench with the workbench.
fn compared(costs: &Costs) -> Vec<CostLine> {
    let line = |name: &str, value: usize| CostLine {
        name: name.to_owned(),
        value,
        note: String::new(),
    };
    let mut lines = vec![
        line("all servers, each by itself", costs.flat()),
        line("the workbench, at the start", costs.at_start()),
    ];
    if !costs.is_native() {
        for toolbox in &costs.toolboxes {
            if let Some(opened) = toolbox.opened {
                let usual = opened.in_detail(costs.open_detail);
                lines.push(line(&format!("opening {}", toolbox.name), usual));
                let signatures = format!("opening {}, signatures", toolbox.name);
                lines.push(line(&signatures, opened.in_detail(Detail::Signature)));
            }
        }
        if let Some(searched) = costs.searched() {
            lines.push(line("a search, 5 signatures", searched));
        }
    }
    lines
}

fn chart(lines: &[CostLine], style: OutputStyle) -> String {
    let largest = lines.iter().map(|line| line.value).max().unwrap_or(0);
    let columns = [
        Column::Text(""),
        Column::Text(""),
        Column::Number(""),
        Column::Text(""),
    ];
    let mut table = Table::new(columns);
    let room = bar_width(lines, style);
    for line in lines {
        table.row([
            cut(&visible_name(&line.name), NAME_WIDTH),
            visible(&line.note).into_owned(),
            grouped(line.value),
            bar(line.value, largest, room),
        ]);
    }
    table.render(style, "  ")
}

/// Returns the width that is left for the bars.
fn bar_width(lines: &[CostLine], style: OutputStyle) -> usize {
    let Some(width) = style.width() else {
        return BAR_WIDTH;
    };
    let widest = |text: fn(&CostLine) -> usize| lines.iter().map(text).max().unwrap_or(0);
    let name = widest(|line| visible_name(&line.name).chars().count()).min(NAME_WIDTH);
    let note = widest(|line| visible(&line.note).chars().count());
    let number = widest(|line| grouped(line.value).chars().count());
    // Two spaces in front of each of the four columns.
    let used = name + note + number + 2 * 4;
    width
        .saturating_sub(used + 1)
        .clamp(MIN_BAR_WIDTH, BAR_WIDTH)
}

fn conclusion(costs: &Costs) -> String {
    let mut text = String::from("\n");
    match saved_percent(costs) {
        Some(percent) if percent >= 0 => text.push_str(&format!(
            "through the workbench a model starts with {percent} % fewer tokens, and reads a toolbox when it \
             opens it\n"
        )),
        Some(_) => text.push_str(
            "so few tools cost fewer tokens without the workbench\n",
        ),
        None => {}
    }
    text.push_str(&format!(
        "(estimated for {TOKENIZER}, within 5 % for definitions of tools; other models count differently)\n"
    ));
    text
}

/// Returns how many percent fewer tokens are read at the start; negative if more.
fn saved_percent(costs: &Costs) -> Option<i64> {
    let flat = i64::try_from(costs.flat()).ok().filter(|flat| *flat > 0)?;
    let start = i64::try_from(costs.at_start()).ok()?;
    Some(((flat - start) * 100).div_euclid(flat))
}

/// The costs as JSON.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    file: &'a str,
    tokenizer: &'static str,
    estimated: bool,
    tools: usize,
    flat_tokens: usize,
    workbench: WorkbenchDocument,
    saved_percent: Option<i64>,
    search_tokens: Option<usize>,
    toolboxes: Vec<ToolboxDocument<'a>>,
    largest: Vec<LargeTool<'a>>,
}

/// Costs in tokens.
#[derive(Serialize)]
struct WorkbenchDocument {
    #[serde(rename = "start_tokens")]
    start: usize,
    #[serde(rename = "definitions_tokens")]
    definitions: usize,
    #[serde(rename = "instructions_tokens")]
    instructions: usize,
}

#[derive(Serialize)]
struct ToolboxDocument<'a> {
    name: &'a str,
    flat_tokens: usize,
    open_tokens: Option<usize>,
    open_full_tokens: Option<usize>,
    open_compact_tokens: Option<usize>,
    open_signature_tokens: Option<usize>,
    open_brief_tokens: Option<usize>,
    open_names_tokens: Option<usize>,
    servers: Vec<ServerDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    name: &'a str,
    tools: usize,
    tokens: usize,
    instructions_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

pub(super) fn document(costs: &Costs) -> Document<'_> {
    let toolboxes = costs.toolboxes.iter().map(|toolbox| {
        let opened = |detail| toolbox.opened.map(|it| it.in_detail(detail));
        ToolboxDocument {
            name: toolbox.name.as_str(),
            flat_tokens: toolbox.flat(),
            open_tokens: opened(costs.open_detail),
            open_full_tokens: opened(Detail::Full),
            open_compact_tokens: opened(Detail::Compact),
            open_signature_tokens: opened(Detail::Signature),
            open_brief_tokens: opened(Detail::Brief),
            open_names_tokens: opened(Detail::Names),
            servers: toolbox.servers.iter().map(server_document).collect(),
        }
    });
    Document {
        file: &costs.file,
        tokenizer: TOKENIZER,
        estimated: true,
        tools: costs.tools(),
        flat_tokens: costs.flat(),
        workbench: WorkbenchDocument {
            start: costs.at_start(),
            definitions: costs.start.definitions,
            instructions: costs.start.instructions,
        },
        saved_percent: saved_percent(costs),
        search_tokens: costs.searched(),
        toolboxes: toolboxes.collect(),
        largest: costs.largest(MAX_LARGEST),
    }
}

fn server_document(server: &ServerCost) -> ServerDocument<'_> {
    ServerDocument {
        name: &server.name,
        tools: server.count(),
        tokens: server.total(),
        instructions_tokens: server.instructions,
        error: server.tools.as_ref().err().map(String::as_str),
    }
}
