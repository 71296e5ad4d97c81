//! The known MCP clients as data, and their files.
//!
//! [`CLIENTS`] describes the files and spelling of each client, [`limits()`] its limits. [`find()`] reads the
//! files that exist: `document` parses them to JSON, `read` finds the entries, and `translate` and `interpolate`
//! convert them to our syntax with [`Remark`]s. [`identity()`] recognizes duplicates. [`OwnEntry`] is the
//! workbench as a server of a client, and [`ClientText`] edits a client's file.

mod client;
mod code_mode;
mod document;
mod fields;
mod files;
mod find;
mod identity;
mod interpolate;
mod limits;
mod own_entry;
mod own_servers;
mod read;
mod remark;
mod restrictions;
mod summary;
mod table;
mod translate;
mod write;
mod yaml;

pub(crate) use client::Interpolation;
pub use client::{Client, ClientName, Format, Scope, System};
pub(crate) use code_mode::has_own_code_mode;
pub use files::client_paths;
pub use find::servers_in;
pub(crate) use find::{DiscoveredFile, DiscoveredServer, ReadError, find, read_text};
pub(crate) use identity::{Identity, identity};
pub(crate) use limits::NameFault;
pub use limits::limits;
pub(crate) use own_entry::{OwnEntry, needed_variables};
pub(crate) use own_servers::{OwnServer, own_servers};
pub(crate) use remark::Remark;
pub(crate) use restrictions::restrict_to_both;
pub use table::{CLIENTS, client};
pub(crate) use translate::ParsedEntry;
pub(crate) use write::{ClientEditError, ClientText};
