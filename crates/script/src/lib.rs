//! Scripts that a model writes: a JavaScript engine in a worker process, and the messages between the worker and the
//! program that started it (the host). It knows nothing of MCP: a script calls named functions of the host with JSON, and
//! gets JSON or an error back.
//!
//! A worker runs one script and ends. It has no environment, no files and no network; the host is all that it can reach.
//! [`run_worker`] is the whole program of the worker. The host's part (starting workers, time limits, calls) is in the host.

mod confine;
mod cpu_time;
mod engine;
mod message;
mod position;
mod text;
#[cfg(feature = "typescript")]
mod typescript;
mod worker;

/// True if this system can confine a worker. On others there are no scripts.
pub const IS_SUPPORTED: bool = cfg!(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )
));
/// True if scripts may have types.
pub const ACCEPTS_TYPES: bool = cfg!(feature = "typescript");

pub use engine::tool_name;
pub use message::{
    Called, End, Failure, FromWorker, Limits, MAX_ARGUMENT_BYTES, Request, Thrown, ToWorker,
};
pub use position::{Position, excerpt};
pub use worker::run_worker;
