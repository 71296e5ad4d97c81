//! The demo: a workbench that needs no configuration, no network and no installation.
//!
//! - [`servers`] contains three small MCP servers that this program runs itself, over stdio;
//! - [`config`] writes the configuration with one toolbox of these servers;
//! - [`session`] starts the real workbench with that configuration, talks to it as an MCP client does, and prints
//!   the conversation.
//!
//! ```text
//! mcp-workbench demo ── session ──stdio──► mcp-workbench serve --demo
//!                                             └─stdio──► mcp-workbench demo-server NAME (× 3)
//! ```
//!
//! Nothing here reads the environment or prints by itself: callers pass the program's path and the writers. Only
//! the commands depend on this module.

pub(crate) mod config;
mod connection;
mod lines;
mod process;
mod reading_cost;
mod render;
pub(crate) mod servers;
pub(crate) mod session;
mod text;

pub(crate) use config::configuration;
pub(crate) use connection::DemoError;
pub(crate) use render::Style;
pub(crate) use servers::DemoServer;
