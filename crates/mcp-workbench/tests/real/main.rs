//! The workbench between published parts: real MCP servers from the registries behind it, the
//! official SDKs' clients in front of it. `./scripts/test` installs both.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what is wanted"
)]

mod apps;
mod clients;
mod deployment;
mod eras;
mod everything;
mod examples;
mod figures;
mod inspector;
mod large_results;
mod listening;
mod oauth;
#[cfg(feature = "otel")]
mod otel;
mod packages;
mod page;
mod process;
mod python_server;
mod remote;
mod rmcp_client;
mod scanner;
mod scripts;
mod sdk_server;
mod select;
mod servers;
mod services;
mod session;
#[cfg(unix)]
mod sharing;
mod steps;
mod team;
mod tokens;
mod users;
mod workbench;
