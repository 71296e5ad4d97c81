//! The demonstration: a workbench that needs no configuration, no network and nothing installed.
//!
//! - [`servers`] holds three small MCP servers that this program plays itself, over stdio;
//! - [`config`] writes the configuration that puts them into one toolbox;
//! - [`session`] starts the real workbench on that configuration, talks to it as an MCP client
//!   would, and shows the conversation to a person.
//!
//! ```text
//! mcp-workbench demo ── session ──stdio──► mcp-workbench serve --demo
//!                                             └─stdio──► mcp-workbench demo-server NAME (× 3)
//! ```
//!
//! Nothing here reads the environment or prints by itself: callers hand in the program's path and
//! the writers. The rest of the product does not depend on this module, only the commands do.

pub(crate) mod config;
mod connection;
mod lines;
mod process;
mod reading;
mod render;
pub(crate) mod servers;
pub(crate) mod session;
mod text;

pub(crate) use config::configuration;
pub(crate) use connection::DemoError;
pub(crate) use render::Style;
pub(crate) use servers::DemoServer;
