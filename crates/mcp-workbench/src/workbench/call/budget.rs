//! The result budget: a client gets head and tail of a result that is over the budget of its server, with a notice and a link.
//! The whole result is stored, and read in pages.

use std::sync::Arc;

use ident::{ServerIdentifier, ToolName};
use rawjson::RawJson;
use serde_json::{Map, Value, json};

use crate::{
    budget::{Address, Cut, MetaMember, Structured, View},
    call::{Owner, Recipient},
    config::MetaTool,
    visible::visible,
    workbench::{
        StoredResult, Workbench,
        results::{WholeResult, store_result},
    },
};

/// The key under which programs find what was done to a result.
pub(super) const RESULT_KEY: &str = "mcp-workbench/result";

/// The origin of a result, and the treatment of its parts.
pub(crate) struct Origin<'a> {
    pub server: &'a ServerIdentifier,
    /// The tool that was called, if it is known.
    pub tool: Option<&'a ToolName>,
    pub(crate) structured: Structured,
}

/// Returns a result as its client gets it: unchanged if it is within the budget, or if it cannot be stored.
pub(crate) fn fit(
    workbench: &Workbench,
    origin: &Origin<'_>,
    recipient: impl FnOnce() -> Recipient,
    result: RawJson,
) -> RawJson {
    if !workbench.results().could_be_over(&result) {
        return result;
    }
    let cut = cut(workbench, origin, recipient, &result);
    cut.unwrap_or(result)
}

/// Returns a result of our own, cut to a page of this length if it is longer.
pub(crate) fn fit_page(
    workbench: &Workbench,
    page_size: usize,
    owner: Owner,
    result: RawJson,
) -> RawJson {
    let report = Cut::of(&result, page_size, Structured::MayGo)
        .and_then(|cut| CutReport::store(workbench, cut, &result, page_size, owner));
    match report {
        Some(report) => report.compose(workbench, None),
        None => result,
    }
}

fn cut(
    workbench: &Workbench,
    origin: &Origin<'_>,
    recipient: impl FnOnce() -> Recipient,
    result: &RawJson,
) -> Option<RawJson> {
    // The check before this one used the smallest budget of all servers.
    let budget = workbench.budget(origin.server)?;
    let cut = Cut::of(result, budget, origin.structured)?;
    let recipient = recipient();
    let report = CutReport::store(workbench, cut, result, budget, recipient.owner)?;
    let link = recipient.knows_links.then(|| report.link(origin));
    Some(report.compose(workbench, link.as_ref()))
}

/// A cut result, with the texts that describe the cut.
struct CutReport<'a> {
    cut: Cut<'a>,
    stored: Arc<StoredResult>,
}

impl<'a> CutReport<'a> {
    fn store(
        workbench: &Workbench,
        cut: Cut<'a>,
        result: &RawJson,
        page_size: usize,
        owner: Owner,
    ) -> Option<Self> {
        let whole = WholeResult {
            owner,
            json: result,
            text: cut.text(),
            text_pages: cut.pages(page_size),
            page_size,
        };
        let stored = store_result(workbench, whole)?;
        Some(Self { cut, stored })
    }

    /// Returns the cut result with the notice in it.
    fn compose(&self, workbench: &Workbench, link: Option<&RawJson>) -> RawJson {
        let about = self.about();
        let notice = self.notice(workbench.has(MetaTool::ReadResult));
        self.cut.compose(
            &notice,
            link,
            MetaMember {
                key: RESULT_KEY,
                value: &about,
            },
        )
    }

    /// Returns the address of the first page, with which any client can read the rest.
    fn first(&self) -> Address {
        // If only `structuredContent` was left out, the text is whole and there is nothing more to read in it.
        let view = if self.cut.cuts_text() {
            View::Text
        } else {
            View::Json
        };
        Address::first(&self.stored.id, view)
    }

    /// Returns the notice for the model at the place where the text is cut.
    fn notice(&self, by_tool: bool) -> String {
        let Cut {
            characters,
            head,
            tail,
            structured,
            ..
        } = &self.cut;
        let json = Address::first(&self.stored.id, View::Json);
        let json_pages = count(self.stored.pages(View::Json), "page");
        let mut notice = format!("[Cut by mcp-workbench: the result has {characters} characters. ");
        if self.cut.cuts_text() {
            let next = self.first().next();
            let pages = count(self.stored.pages(View::Text), "page");
            notice += &format!(
                "Here {head} from its beginning and {tail} from its end are shown. The whole text is stored \
                 for a while, in {pages}; what is above is the first. Read on with page 2: {next}"
            );
            if by_tool {
                let call = json!({ "result": self.stored.id, "page": next.page });
                notice += &format!(", or {} with {call}", MetaTool::ReadResult.name());
            }
            notice += ".";
        } else {
            notice += "Its text is shown whole.";
        }
        if *structured > 0 {
            notice += &format!(
                " structuredContent ({structured} characters) is left out; \
                 the whole result as JSON, in {json_pages}: {json}."
            );
        }
        notice + "]"
    }

    /// Returns the link to the stored result.
    fn link(&self, origin: &Origin<'_>) -> RawJson {
        let address = self.first();
        let pages = self.stored.pages(address.view);
        let server = origin.server;
        let mut name = format!("{}/{}", server.toolbox, server.server);
        if let Some(tool) = origin.tool {
            name += &format!("/{tool}");
        }
        let (description, mime) = match address.view {
            View::Text => ("The whole text", "text/plain"),
            View::Json => ("The whole result as JSON", "application/json"),
        };
        RawJson::of(&json!({
            "type": "resource_link",
            "uri": address.to_string(),
            "name": format!("Result of {}", visible(&name)),
            "description": format!(
                "{description}, in {}: {address}/2 is the second. Available for a while.",
                count(pages, "page")
            ),
            "mimeType": mime,
        }))
    }

    fn about(&self) -> RawJson {
        let mut about = Map::new();
        let mut put = |name: &str, value: Value| about.insert(name.to_owned(), value);
        put("characters", self.cut.characters.into());
        put("head", self.cut.head.into());
        put("tail", self.cut.tail.into());
        about.extend(addresses(&self.stored));
        about.insert("left_out".to_owned(), self.left_out());
        RawJson::of(&about)
    }

    fn left_out(&self) -> Value {
        let text = self.cut.cuts_text().then_some("text");
        let structured = (self.cut.structured > 0).then_some("structuredContent");
        text.into_iter().chain(structured).collect()
    }
}

/// Returns the members that say where a stored result is read.
pub(super) fn addresses(stored: &StoredResult) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("page_characters".to_owned(), stored.page_size.into());
    for (view, uri, pages) in [
        (View::Text, "uri", "pages"),
        (View::Json, "json_uri", "json_pages"),
    ] {
        let address = Address::first(&stored.id, view).to_string();
        members.insert(uri.to_owned(), address.into());
        members.insert(pages.to_owned(), stored.pages(view).into());
    }
    members
}

pub(crate) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ if thing.ends_with("ch") => format!("{number} {thing}es"),
        _ => format!("{number} {thing}s"),
    }
}
