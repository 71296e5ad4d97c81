//! The search result for a terminal.

use search::{Exact, Explanation, MatchedWord};

use super::SearchResult;
use crate::{
    cli::terminal::{Column, Ink, OutputStyle, Table, count},
    config::Detail,
    toolbox::{definition_line, parameters, sentence, shown_identifier},
    visible::visible,
    workbench::FoundTool,
};

/// Formats the hits, one per line, each with its description below.
pub(super) fn render(result: &SearchResult, style: OutputStyle) -> String {
    let search = &result.search;
    let looked_at = format!(
        "{} of {} in {}",
        count(search.tools, "tool"),
        count(search.servers, "server"),
        match search.toolboxes.len() {
            1 => "1 toolbox".to_owned(),
            number => format!("{number} toolboxes"),
        }
    );
    if search.hits.is_empty() {
        return format!(
            "nothing found for '{}' among {looked_at}\n",
            visible(&result.query)
        );
    }
    let shown = search.shown().len();
    let mut text = if search.is_good {
        let matches = match search.matches {
            1 => "1 match".to_owned(),
            number => format!("{number} matches"),
        };
        format!("{shown} of {matches}, among {looked_at}\n")
    } else {
        let query = visible(&result.query);
        format!("no good match for '{query}'; the nearest {shown} among {looked_at}\n")
    };
    for (hit, explanation) in result.hits() {
        text.push_str(&rendered(hit, result.detail, style));
        if let Some(explanation) = explanation {
            text.push_str(&explained(explanation, style));
        }
    }
    text
}

fn rendered(hit: &FoundTool, detail: Detail, style: OutputStyle) -> String {
    let definition = &hit.definition.definition;
    let name = style.paint(Ink::Strong, &shown_identifier(&hit.tool));
    let mut text = match detail {
        Detail::Compact | Detail::Full => {
            let (toolbox, server) = (&hit.tool.toolbox, &hit.tool.server);
            let line = definition_line(toolbox, server, &hit.definition, detail);
            format!("\n{}\n", visible(&line))
        }
        Detail::Signature => format!("\n{name}{}\n", parameters(definition)),
        Detail::Names | Detail::Brief => format!("\n{name}\n"),
    };
    if matches!(detail, Detail::Brief | Detail::Signature)
        && let Some(sentence) = sentence(definition)
    {
        text.push_str(&format!("  {sentence}\n"));
    }
    for other in &hit.alike {
        let other = format!("  also: {}\n", shown_identifier(other));
        text.push_str(&style.paint(Ink::Faint, &other));
    }
    text
}

/// Formats the explanation of a hit: each word of the query, the fields that contain it, and its score.
fn explained(explanation: &Explanation, style: OutputStyle) -> String {
    let mut text = format!("  score {:.3}", explanation.score);
    if let Some(why) = done(explanation.factor) {
        text.push_str(&format!(", {:.2} of the sum: {why}", explanation.factor));
    }
    if let Some(exact) = explanation.exact {
        text.push_str(&format!(", first because the query is {}", named(exact)));
    }
    text.push('\n');
    let columns = [
        Column::Text("word"),
        Column::Text("found"),
        Column::Number("counts"),
        Column::Text("in"),
    ];
    let mut table = Table::new(columns);
    for word in &explanation.words {
        table.row([
            visible(&word.word).into_owned(),
            format!("{} ({})", visible(&word.found), word.how.name()),
            format!("{:.3}", word.score),
            fields(word).join(", "),
        ]);
    }
    if !explanation.words.is_empty() {
        text.push_str(&table.render(style, "    "));
    }
    if !explanation.missing.is_empty() {
        let missing = visible(&explanation.missing.join(", ")).into_owned();
        text.push_str(&format!("    not found: {missing}\n"));
    }
    text
}

/// Returns the reason why the score differs from the sum of the words.
fn done(factor: f32) -> Option<&'static str> {
    if factor > 1.0 {
        Some("it does what the query asks for")
    } else {
        (factor < 1.0).then_some("it does something else")
    }
}

/// Describes how the query names the tool.
fn named(exact: Exact) -> &'static str {
    match exact {
        Exact::Identifier => "its toolbox, server and name",
        Exact::Full => "its server and name",
        Exact::Name => "its name",
        Exact::FullFolded => "nearly its server and name",
        Exact::NameFolded => "nearly its name",
    }
}

/// Returns the names of the fields that contain a word.
pub(super) fn fields(word: &MatchedWord) -> Vec<&'static str> {
    word.fields.iter().map(|field| field.name()).collect()
}
