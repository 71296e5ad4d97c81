//! Reads results that were over their budget. Their pages are resources of the workbench.

use rawjson::RawJson;
use serde_json::{Value, json};

use super::{
    RESOURCE_NOT_FOUND,
    methods::{Reply, Requester},
};
use crate::{
    budget::{Address, View},
    meta,
    workbench::{PageError, Workbench, find_result},
};

/// The key of the position of a page among the others.
const PAGE_KEY: &str = "mcp-workbench/page";

/// Returns the page at one of our addresses.
pub(super) async fn read(workbench: &Workbench, requester: Requester, uri: &str) -> Reply {
    let Some(address) = Address::parse(uri) else {
        return refusal(uri, uri, 1, PageError::Gone);
    };
    let owner = requester.into_client().recipient().owner;
    let stored = match find_result(workbench, &address, owner).await {
        Ok(stored) => stored,
        Err(error) => return refusal(uri, &address.id, address.page, error),
    };
    match stored.page(address.view, address.page) {
        Ok(page) => Reply::Own(contents(uri, &address, page, stored.pages(address.view))),
        Err(error) => refusal(uri, &address.id, address.page, error),
    }
}

fn contents(uri: &str, address: &Address, page: &str, pages: usize) -> RawJson {
    let mut place = json!({ "page": address.page, "pages": pages });
    if address.page < pages {
        place["next"] = Value::from(address.next().to_string());
    }
    // A part of a JSON text is not JSON.
    let mime = match address.view {
        View::Json if pages == 1 => "application/json",
        View::Json | View::Text => "text/plain",
    };
    RawJson::of(&json!({
        "contents": [{
            "uri": uri,
            "mimeType": mime,
            "text": page,
            "_meta": { PAGE_KEY: place },
        }],
    }))
}

fn refusal(uri: &str, result: &str, page: usize, error: PageError) -> Reply {
    let words = meta::page_error_text(result, page, error);
    Reply::ErrorAsSent(RawJson::of(&json!({
        "code": RESOURCE_NOT_FOUND,
        "message": format!("Resource not found: {words}"),
        "data": { "uri": uri, "code": meta::page_error_code(error) },
    })))
}
