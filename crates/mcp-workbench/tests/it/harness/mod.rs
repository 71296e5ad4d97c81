//! The harness: a directory, a configuration and a running workbench for each test. Everything is
//! synchronous, every wait ends by itself, and a failed wait shows what was said on all sides.

pub(crate) mod authority;
mod http;
mod http_client;
mod journal;
mod message;
mod modern;
mod modern_client;
mod processes;
mod reading;
mod remote_fixture;
pub(crate) mod remote_server;
mod report;
mod script;
mod setup;
mod tests;
mod tool_result;
mod transcript;
mod workbench;

use std::{
    thread,
    time::{Duration, Instant},
};

pub(crate) use http::{HttpConnection, HttpRequest, HttpResponse};
pub(crate) use http_client::{HttpClient, Served, TOKEN, request_text, use_params};
pub(crate) use journal::Journal;
pub(crate) use message::Message;
pub(crate) use modern::{InputRequired, MODERN, ModernClient, ModernRequest, asks};
pub(crate) use processes::{
    alive, cpu_time, exhaust_descriptors, kill, limit_descriptors, memory_peak, survivors, zombies,
};
pub(crate) use remote_fixture::RemoteFixture;
pub(crate) use report::Fault;
pub(crate) use script::{Script, raw_string};
pub(crate) use setup::{Setup, fixture_server};
pub(crate) use tool_result::ToolResult;
pub(crate) use workbench::{Finished, Workbench, call_params, initialize_params, use_arguments};

/// How long anything may take before a test gives up. Generous: the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

const POLL: Duration = Duration::from_millis(5);

/// Looks until there is something to see, or gives up after `timeout`.
pub(crate) fn poll<T>(timeout: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + timeout;
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::park_timeout(POLL);
    }
}
