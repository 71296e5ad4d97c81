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

pub use self::{
    client::{
        Base, Client, ClientFile, ClientName, CommandSpelling, Constant, Format, Interpolation,
        Link, Listing, Scope, Spelling, System,
    },
    document::SyntaxError,
    files::{ClientPath, client_paths},
    find::{FoundFile, FoundServer, ReadError, find, read_text, servers_in},
    identity::{Identity, identity},
    limits::{Beyond, Counted, Limits, NameFault, NameLimit, ToolLimit, limits},
    own_entry::{OwnEntry, needed_variables},
    own_servers::{OwnServer, own_servers},
    read::ClientEntry,
    remark::{Remark, ValueSource},
    table::{CLIENTS, client},
    translate::{Imported, Reading},
    write::{ClientEditError, ClientText},
};
