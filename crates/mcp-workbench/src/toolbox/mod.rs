//! Toolboxes: opening one, what an open one offers, and how that is written down for a model. What is
//! open belongs to the workbench and not to a connection.

mod catalogue;
mod connecting;
mod contents;
mod detail;
mod dynamic;
mod lean;
mod links;
mod open;
mod opened;
mod render;
mod signature;

pub use catalogue::Catalogue;
pub use contents::{ChangedFiles, Contents, Difference, Servers};
pub use detail::Detail;
pub use dynamic::{
    Registry, possible_names, possible_registered_names, registered_definition, unique_name,
};
pub use lean::{counted, full_line, line, matching_text, opened_text, shown_identifier};
pub use links::Links;
pub use open::{OpenError, Toolbox};
pub use opened::{Opened, ServerFailure};
pub use render::{render_matching, text_result};
pub use signature::{parameters, sentence, sentence_of, shown_name};
