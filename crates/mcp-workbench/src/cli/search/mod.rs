//! `search`: finds tools in all toolboxes by what they do, like `search_tools`, and explains the ranking.

mod document;
mod report;

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use ident::ToolboxName;
use search::{Explanation, Query};
use serde_json::Value;

use self::{document::document, report::render};
use super::{
    CommandResult,
    configuration::{UnknownName, load_configuration},
    host::Sharing,
    output,
    probe::{ShellClient, with_workbench},
    terminal::{OutputStyle, Progress, count},
};
use crate::{
    call::ClientHandle,
    config::{Detail, Environment, ToolMode},
    meta::{DEFAULT_HITS, MAX_HITS},
    visible::visible,
    workbench::{FoundTool, Search, Workbench},
};

/// Time limit for servers without cached tools: as long as a start may take.
const START_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Args)]
pub(super) struct SearchArguments {
    /// What the tool should do, or its name
    #[arg(value_parser = NonEmptyStringValueParser::new(), required = true)]
    query: Vec<String>,

    /// Only in this toolbox
    #[arg(long)]
    toolbox: Option<String>,

    /// The level of detail of each tool
    #[arg(long, default_value = "signature")]
    detail: ShownDetail,

    /// The maximum number of tools
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_HITS as u64,
          value_parser = clap::value_parser!(u64).range(1..=MAX_HITS as u64))]
    limit: u64,

    /// Show which words made each tool a hit
    #[arg(long)]
    explain: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ShownDetail {
    /// Its name
    Names,
    /// Its name and a sentence about it
    Brief,
    /// Its name, parameters and a sentence about it
    Signature,
    /// Its name, description and input schema, as JSON
    Compact,
    /// Its whole definition
    Full,
}

impl From<ShownDetail> for Detail {
    fn from(detail: ShownDetail) -> Self {
        match detail {
            ShownDetail::Names => Self::Names,
            ShownDetail::Brief => Self::Brief,
            ShownDetail::Signature => Self::Signature,
            ShownDetail::Compact => Self::Compact,
            ShownDetail::Full => Self::Full,
        }
    }
}

/// A search result with the explanations that were requested.
struct SearchResult {
    query: String,
    detail: Detail,
    search: Search,
    /// One per hit, or empty.
    explanations: Vec<Option<Explanation>>,
}

impl SearchResult {
    /// Returns the hits with their explanations.
    fn hits(&self) -> impl Iterator<Item = (&FoundTool, Option<&Explanation>)> {
        let hits = self.search.shown().iter().enumerate();
        hits.map(|(number, hit)| {
            let explanation = self.explanations.get(number);
            (hit, explanation.and_then(Option::as_ref))
        })
    }
}

/// Searches and prints the result.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &SearchArguments,
    environment: &Environment,
) -> CommandResult {
    let mut config = load_configuration(config, environment)?.config;
    let chosen = arguments.toolbox.as_deref();
    if let Some(name) = chosen.filter(|name| !config.toolboxes.contains_key(*name)) {
        return Err(UnknownName::toolbox(name, &config).into());
    }
    config.tool_mode = ToolMode::Proxy;
    // The host writes the tools of its servers to the cache when it is asked, so that none of them is started again.
    let _ = Sharing::of(&config, environment);
    let progress = Progress::on_stderr(environment, "searching");
    let result = with_workbench(config, async |workbench| {
        progress
            .during(search(&workbench, arguments, &progress, START_TIMEOUT))
            .await
    })?;
    if arguments.json {
        output::json(&document(&result));
    } else {
        output::data(&render(&result, OutputStyle::of_stdout(environment)));
    }
    let failures = &result.search.failures;
    for failure in failures {
        output::remark(&visible(&failure.to_string()));
    }
    if !failures.is_empty() {
        output::remark(&format!(
            "{} not searched\n  hint: `mcp-workbench doctor` says how to fix this",
            count(failures.len(), "server")
        ));
    }
    Ok(if result.search.is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the document that `search --json --explain --detail full` prints, from a running workbench. Servers without
/// cached tools may take `wait` to start.
pub(super) async fn search_document(
    workbench: &Workbench,
    words: &str,
    progress: &Progress,
    wait: Duration,
) -> Value {
    let arguments = SearchArguments {
        query: vec![words.to_owned()],
        toolbox: None,
        detail: ShownDetail::Full,
        limit: DEFAULT_HITS as u64,
        explain: true,
        json: true,
    };
    let found = search(workbench, &arguments, progress, wait).await;
    // By its text: converted to a value, a score would have more digits than the command prints.
    let text = serde_json::to_string(&document(&found)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

async fn search(
    workbench: &Workbench,
    arguments: &SearchArguments,
    progress: &Progress,
    wait: Duration,
) -> SearchResult {
    let text = arguments.query.join(" ");
    let toolbox = arguments.toolbox.as_deref().map(ToolboxName::from);
    let query = Query {
        text: &text,
        toolbox: toolbox.as_ref(),
        limit: usize::try_from(arguments.limit).unwrap_or(DEFAULT_HITS),
    };
    let client: Arc<dyn ClientHandle> = Arc::new(ShellClient::observer(progress.clone()));
    let search = workbench.search_within(&query, &client, wait).await;
    let explained = search
        .shown()
        .iter()
        .filter(|_| arguments.explain)
        .map(|hit| hit.tool.clone())
        .collect();
    let explained = workbench.explain(&query, explained).await.into_iter();
    let explanations = explained.map(|(_, explanation)| explanation).collect();
    SearchResult {
        detail: arguments.detail.into(),
        explanations,
        search,
        query: text,
    }
}
