//! The lock file: the servers and tools at their first contact or approval, so that changes are detected.
//!
//! A definition is compared by the SHA-256 of its [`canonical`] form, a server by its [`Launch`]. [`Lock`] is the
//! content of the file, [`Observation`] an observed server; comparing the two gives [`Differences`]. All of that is
//! plain data. Three parts access disks: [`Pins`], the owner of the file in a process; `texts`, which stores
//! definitions in the server cache so that a difference can be shown; and `programs`, which has the digests of files.
//! The task of a server holds its [`ServerPins`], which decide if it may start and which of its tools may be offered.
//!
//! Only `mcp-workbench trust` approves anything. A running workbench writes first contacts, and changes as `seen`.

mod canonical;
mod compare;
mod disk;
mod document;
mod inputs;
mod launch;
mod observed;
mod pins;
mod policy;
mod program_files;
mod programs;
mod reading;
mod record;
mod server_pins;
mod state;
mod texts;
mod words;

pub(crate) use canonical::{Digest, canonical};
pub(crate) use compare::{Base, Differences, Observation, Selection};
pub use document::Lock;
pub(crate) use document::{PinnedServer, PinnedTool};
pub(crate) use launch::Launch;
pub(crate) use pins::{Lowered, Pins, RecordError};
pub(crate) use policy::PinPolicy;
pub(crate) use programs::ReusableDigests;
pub(crate) use reading::LockFault;
pub(crate) use server_pins::{Ruling, ServerPins};
pub(crate) use state::NoticeScope;
pub(crate) use words::{Denial, launch_parts};
