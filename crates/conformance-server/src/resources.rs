//! The resources of the suite: two that never change, one to watch, and one made from a template.

use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
        ResourceContents, ResourceTemplate,
    },
};
use serde_json::json;

use crate::samples::{PNG, PNG_TYPE};

/// The resource that clients subscribe to.
pub(crate) const WATCHED: &str = "test://watched-resource";

/// The template with its one argument, `id`.
pub(crate) const TEMPLATE: &str = "test://template/{id}/data";

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";

pub(crate) fn list() -> ListResourcesResult {
    ListResourcesResult::with_all_items(vec![
        Resource::new(STATIC_TEXT, "static-text")
            .with_description("A text that never changes")
            .with_mime_type("text/plain"),
        Resource::new(STATIC_BINARY, "static-binary")
            .with_description("A picture that never changes")
            .with_mime_type(PNG_TYPE),
        Resource::new(WATCHED, "watched-resource")
            .with_description("A text that clients can subscribe to")
            .with_mime_type("text/plain"),
    ])
}

pub(crate) fn list_templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new(TEMPLATE, "template")
            .with_description("A record for any id")
            .with_mime_type("application/json"),
    ])
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        STATIC_TEXT => {
            ResourceContents::text("This is the content of the static text resource.", uri)
                .with_mime_type("text/plain")
        }
        STATIC_BINARY => ResourceContents::blob(PNG, uri).with_mime_type(PNG_TYPE),
        WATCHED => {
            ResourceContents::text("Watched resource content.", uri).with_mime_type("text/plain")
        }
        _ => record(uri).ok_or_else(|| not_found(uri))?,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))
}

fn record(uri: &str) -> Option<ResourceContents> {
    let (before, after) = TEMPLATE.split_once("{id}")?;
    let id = uri.strip_prefix(before)?.strip_suffix(after)?;
    let record = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    Some(ResourceContents::text(record.to_string(), uri).with_mime_type("application/json"))
}
