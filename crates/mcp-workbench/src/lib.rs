//! MCP Workbench: one MCP server in front of many. A model sees a short list of toolboxes and two
//! stable tools. Servers start on demand, and results are passed through byte for byte.
//!
//! # Words
//!
//! *client*: the MCP client that talks to us. *server*: an MCP server that we talk to. *downstream*: the
//! servers' side. *serve*: the client's side. *toolbox*: a named set of servers. *catalogue*: an
//! immutable snapshot of the tools of an open toolbox. *meta-tool*: one of our own tools. *era*: legacy (`initialize`,
//! the revisions up to 2025-11-25) or modern (self-contained requests, 2026-07-28).
//!
//! # The path of a call
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
//! A module uses only modules below it; `tests/it/architecture.rs` has the list and enforces it. ARCHITECTURE.md explains
//! the layers.
// A request of the page opens toolboxes, which start servers. The compiler follows these futures to their end to prove
// that they are `Send`, and its default depth of 128 is only just enough.
#![recursion_limit = "256"]
#![cfg_attr(
    not(unix),
    expect(dead_code, reason = "only a host uses it, and this system has none")
)]

mod alarm;
mod audit;
mod budget;
mod call;
mod cli;
mod clients;
mod config;
mod contain;
mod dial;
mod downstream;
mod era;
#[cfg_attr(
    not(feature = "otel"),
    expect(dead_code, reason = "only the export of traces reads some parts")
)]
mod events;
mod history;
#[cfg(unix)]
mod host;
mod jq;
mod list_page;
mod lock;
mod meta;
mod metrics;
mod moment;
mod native;
mod near;
mod oauth;
mod offload;
mod otel;
mod pipe;
mod plain_file;
mod policy;
mod private_files;
mod program_lookup;
mod rare;
mod scripts;
mod seal;
mod serve;
mod server_cache;
mod sha256;
mod shapes;
mod store;
mod sync;
mod telemetry;
mod toolbox;
mod trace;
mod visible;
mod wire;
mod workbench;

pub use cli::main;

/// The items that the benchmarks, the retrieval evaluation and the integration tests use. This is not a stable interface.
#[doc(hidden)]
pub mod internal {
    pub mod clients {
        pub use crate::clients::{
            CLIENTS, Client, ClientName, Format, Scope, System, client, client_paths, limits,
            servers_in,
        };
    }
    pub mod config {
        pub use crate::config::{Environment, Loaded, Problems, Transport, parse};
    }
    pub mod era {
        pub use crate::era::are_modern;
    }
    pub mod lock {
        pub use crate::lock::Lock;
    }
    pub mod meta {
        pub use crate::meta::{MAX_CHARACTERS, instructions};
    }
    pub mod policy {
        pub mod scan {
            pub use crate::policy::scan::{
                ServerTools, Severity, across, hard, instructions, scan,
            };
        }
    }
    pub mod wire {
        pub use crate::wire::{
            Answer, Frame, Line, LineFramer, MAX_FRAME_BYTES, Message, ParseError, Request,
            RequestId, Response, error, notification, parse_repaired, request, result,
        };
    }
}
