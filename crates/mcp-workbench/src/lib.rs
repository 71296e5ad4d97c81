//! MCP Workbench: one MCP server in front of many.

pub mod config;
pub mod demo;
pub mod ident;
pub mod near;
