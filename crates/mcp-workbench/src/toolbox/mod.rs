//! Toolboxes: opens them, and renders the tools of open ones for a model. Open toolboxes belong to the workbench, not
//! to a connection.

mod catalogue;
mod compact;
mod connecting;
mod contents;
mod dynamic;
mod lean;
mod links;
mod open;
mod opened;
mod render;
mod shared_uris;
mod signature;
mod typescript;

pub(crate) use catalogue::Catalogue;
pub(crate) use contents::{ChangedFiles, ToolboxChanges};
pub(crate) use dynamic::{
    Registry, possible_names, possible_registered_names, registered_definition, unique_name,
};
pub(crate) use lean::{counted, definition_line, line, shown_identifier};
pub(crate) use links::Links;
pub(crate) use open::{OpenError, Toolbox};
pub(crate) use opened::{Opened, ServerFailure};
pub(crate) use render::{Matching, render_matching, render_opened, text_result};
pub(crate) use shared_uris::{original_uri, server_prefix, shared_uri};
pub(crate) use signature::{parameters, sentence, shown_name};
pub(crate) use typescript::{arguments_type, key as property_key, result_type};
