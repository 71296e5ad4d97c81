//! The MCP clients that people have: what they are, as data, and their files.
//!
//! [`CLIENTS`] says where each keeps its servers and how it spells them, [`limits()`] what it can take.
//! [`find()`] reads the files that exist: the content becomes one JSON value (`document`), in which the
//! entries are found (`read`) and put into our words (`translate`, `interpolate`), each with its [`Remark`]s.
//! [`identity()`] says which of them are the same. [`OwnEntry`] is the workbench as a server of a client, and
//! [`ClientText`] a client's file into which it is put.

mod client;
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
mod summary;
mod table;
mod translate;
mod write;

pub(crate) use client::Interpolation;
pub use client::{Client, ClientName, Format, Scope, System};
pub use files::client_paths;
pub use find::servers_in;
pub(crate) use find::{FoundFile, FoundServer, ReadError, find, read_text};
pub(crate) use identity::{Identity, identity};
pub(crate) use limits::NameFault;
pub use limits::limits;
pub(crate) use own_entry::{OwnEntry, needed_variables};
pub(crate) use own_servers::{OwnServer, own_servers};
pub(crate) use remark::Remark;
pub use table::{CLIENTS, client};
pub(crate) use translate::Reading;
pub(crate) use write::{ClientEditError, ClientText};
