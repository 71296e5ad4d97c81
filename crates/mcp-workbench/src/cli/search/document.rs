//! The search result as JSON.

use ident::{ToolIdentifier, ToolboxName};
use search::{Exact, Explanation, MatchedWord};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{SearchResult, report::fields};
use crate::{
    config::Detail,
    toolbox::{definition_line, parameters, sentence},
    workbench::FoundTool,
};

#[derive(Serialize)]
pub(super) struct Document<'a> {
    query: &'a str,
    matches: usize,
    /// True if a hit is about the subject of the query; otherwise the hits are only the nearest tools.
    good_match: bool,
    hits: Vec<HitDocument<'a>>,
    searched: SearchedScope<'a>,
    failed: Vec<FailedServer<'a>>,
}

#[derive(Serialize)]
struct SearchedScope<'a> {
    tools: usize,
    servers: usize,
    toolboxes: Vec<&'a str>,
}

/// A server that could not be searched.
#[derive(Serialize)]
struct FailedServer<'a> {
    toolbox: &'a str,
    server: &'a str,
    error: String,
}

/// The identifier of a tool.
#[derive(Serialize)]
struct ToolPath<'a> {
    toolbox: &'a str,
    server: &'a str,
    tool: &'a str,
}

#[derive(Serialize)]
struct HitDocument<'a> {
    #[serde(flatten)]
    names: ToolPath<'a>,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<ToolPath<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<ExplanationDocument<'a>>,
}

#[derive(Serialize)]
struct ExplanationDocument<'a> {
    /// The way in which the query names the tool, if it does.
    exact: Option<&'static str>,
    words: Vec<WordDocument<'a>>,
    missing: &'a [String],
}

#[derive(Serialize)]
struct WordDocument<'a> {
    word: &'a str,
    found: &'a str,
    how: &'static str,
    fields: Vec<&'static str>,
    score: f32,
}

pub(super) fn document(result: &SearchResult) -> Document<'_> {
    let search = &result.search;
    let hits = result
        .hits()
        .map(|(hit, explanation)| hit_document(hit, explanation, result.detail));
    Document {
        query: &result.query,
        matches: search.matches,
        good_match: search.is_good,
        hits: hits.collect(),
        searched: SearchedScope {
            tools: search.tools,
            servers: search.servers,
            toolboxes: search.toolboxes.iter().map(ToolboxName::as_str).collect(),
        },
        failed: search
            .failures
            .iter()
            .map(|failure| FailedServer {
                toolbox: failure.toolbox.as_str(),
                server: failure.server.as_str(),
                error: failure.error.to_string(),
            })
            .collect(),
    }
}

fn hit_document<'a>(
    hit: &'a FoundTool,
    explanation: Option<&'a Explanation>,
    detail: Detail,
) -> HitDocument<'a> {
    let definition = &hit.definition.definition;
    let is_summed_up = matches!(detail, Detail::Brief | Detail::Signature);
    HitDocument {
        names: names(&hit.tool),
        score: hit.score,
        parameters: (detail == Detail::Signature).then(|| parameters(definition)),
        summary: is_summed_up.then(|| sentence(definition)).flatten(),
        definition: shown_definition(hit, detail),
        also: hit.alike.iter().map(names).collect(),
        explanation: explanation.map(|it| ExplanationDocument {
            exact: it.exact.map(code),
            words: it.words.iter().map(word_document).collect(),
            missing: &it.missing,
        }),
    }
}

/// Returns the definition as its text, because parsing would round numbers.
fn shown_definition(hit: &FoundTool, detail: Detail) -> Option<Box<RawValue>> {
    let text = match detail {
        Detail::Full => hit.definition.definition.minified().as_str().to_owned(),
        Detail::Compact => {
            let (toolbox, server) = (&hit.tool.toolbox, &hit.tool.server);
            definition_line(toolbox, server, &hit.definition, detail)
        }
        Detail::Names | Detail::Brief | Detail::Signature => return None,
    };
    Some(RawValue::from_string(text).expect("a definition is valid JSON"))
}

fn names(tool: &ToolIdentifier) -> ToolPath<'_> {
    ToolPath {
        toolbox: tool.toolbox.as_str(),
        server: tool.server.as_str(),
        tool: tool.tool.as_str(),
    }
}

fn code(exact: Exact) -> &'static str {
    match exact {
        Exact::Identifier => "identifier",
        Exact::Full => "server_and_name",
        Exact::Name => "name",
        Exact::FullFolded => "server_and_name_folded",
        Exact::NameFolded => "name_folded",
    }
}

fn word_document(word: &MatchedWord) -> WordDocument<'_> {
    WordDocument {
        word: &word.word,
        found: &word.found,
        how: word.how.name(),
        fields: fields(word),
        score: word.score,
    }
}
