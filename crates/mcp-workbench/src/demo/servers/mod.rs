//! Three small MCP servers that this program runs itself over stdio.
//!
//! `mcp-workbench demo-server clock|calculator|notes` is one such server: a plain, synchronous
//! loop that reads a line, answers it and reads the next. `protocol` knows JSON-RPC and MCP and
//! no tools; `clock`, `calculator` and `notes` know their tools and no protocol; `tools` joins
//! them. `civil` (dates) and `expression` (arithmetic) are used by the tools.

mod arguments;
mod calculator;
mod civil;
mod clock;
mod expression;
mod notes;
mod protocol;
mod server;
mod tools;

pub(crate) use protocol::run;
pub(crate) use server::DemoServer;
