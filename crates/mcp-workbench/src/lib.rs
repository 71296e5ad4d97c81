//! MCP Workbench: one MCP server in front of many. A model sees a short list of toolboxes and two
//! stable tools; servers start when they are needed, and what they say arrives as they said it.
//!
//! # Words
//!
//! *client*: the MCP client that talks to us. *server*: an MCP server that we talk to. *downstream*: the
//! servers' side. *serve*: the client's side. *toolbox*: a named set of servers. *catalogue*: an
//! immutable snapshot of the tools of an open toolbox. *meta-tool*: a tool of ours. *era*: legacy (`initialize`,
//! the revisions up to 2025-11-25) or modern (every request by itself, 2026-07-28).
//!
//! # The way of a call
//!
//! ```text
//! stdin ─► serve ─► workbench::call ─► downstream: the server's task ─► process,
//! or HTTP    │        resolve,            admit, our id, deadlines,       or remote
//!            │        consent, audit      pending calls                   server
//!            │                                                            │
//! stdout ◄─ serve ◄── finish: budget, era ◄── the result, as bytes ◄──────┘
//! or a stream
//! ```
//!
//! In native mode `native` maps names and URIs to servers, and there are no meta-tools.
//!
//! A module uses only what stands below it: `cli`, `demo`, `serve`, `meta`, `workbench`, `native`, `toolbox`,
//! `downstream`, `signin`, `audit`, `lock`, `policy`, `search`, `clients`, `config`, `call`, `budget`, `era`, `dial`, `pipe`, `wire`,
//! `alarm`, `offload`, `rare`, `contain`, `blocking`, `seal`, `private_files`, `plain_file`, `telemetry`, `near`, `visible`, `ident`.

mod alarm;
pub mod audit;
mod blocking;
pub mod budget;
pub mod call;
pub mod cli;
pub mod clients;
pub mod config;
mod contain;
pub mod demo;
mod dial;
pub mod downstream;
pub mod era;
pub mod ident;
pub mod lock;
pub mod meta;
pub mod native;
pub mod near;
mod offload;
mod pipe;
mod plain_file;
pub mod policy;
mod private_files;
mod rare;
pub mod seal;
pub mod search;
pub mod serve;
pub mod signin;
pub mod telemetry;
pub mod toolbox;
pub mod visible;
pub mod wire;
pub mod workbench;
