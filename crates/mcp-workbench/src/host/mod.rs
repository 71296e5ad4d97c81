//! One process for all clients of a configuration: the *host*.
//!
//! The process that a client starts finds the host, passes its stdin and stdout to it, and then only waits. Everything
//! that belongs to a client is in its own workbench; the workbenches share the servers that are defined alike.
//!
//! ```text
//! client ──► waiting process ──descriptors──► host ─┬─ workbench of this client ─┬─► pool of servers
//!    └──────────── stdin, stdout ───────────────────┘  workbench of another ─────┘
//! ```
//!
//! - [`place`] is the folder of a host: private, with a lock whose holder owns the socket;
//! - [`link`] has the messages between the two processes, and passes descriptors;
//! - [`build`] orders builds of the program, so that a newer one can replace the host of an older one;
//! - [`waiting`] is the side of the process that a client starts, [`launch`] starts a host;
//! - [`listener`] is the host, [`clients`] serves each of its clients, [`status`] describes it, and [`page`] shows it in the browser.

mod build;
mod clients;
mod launch;
mod link;
mod listener;
mod page;
mod place;
mod status;
mod waiting;

pub(crate) use clients::ClientProcess;
pub(crate) use launch::{HOST_COMMAND, InheritedHost, relaunch};
pub(crate) use link::{
    Attach, BlockingLink, Demand, HostAnswer, LinkError, PageAddress, Selection,
};
pub(crate) use listener::{Followed, HostOptions, run};
pub(crate) use page::HostView;
pub(crate) use place::{HostFolder, has_host, hosts};
pub(crate) use status::{ClientStatus, HostStatus, ServerStatus};
pub(crate) use waiting::{AttachError, Connected, NotAttached, Waiting, connect};
