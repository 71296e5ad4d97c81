//! The MCP clients that people have: what they are, as data, and their files.
//!
//! [`CLIENTS`] says where each keeps its servers and how it spells them, [`limits()`] what it can take.

mod client;
mod limits;
mod table;

pub use self::{
    client::{
        Base, Client, ClientFile, ClientName, CommandSpelling, Constant, Format, Interpolation,
        Link, Listing, Scope, Spelling, System,
    },
    limits::{Beyond, Counted, Limits, NameFault, NameLimit, ToolLimit, limits},
    table::{CLIENTS, client},
};
