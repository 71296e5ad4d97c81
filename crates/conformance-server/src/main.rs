//! The server that the official MCP conformance suite expects; never shipped.
//!
//! `conformance-server stdio` or `conformance-server http --port N`, and `--era` for one that speaks only
//! the revisions with `initialize` (legacy), or only the one without (modern). The suite names the tools, prompts
//! and resources that it calls and says what each must do; [`fixture`] has them all, and scores full
//! marks when the suite talks to it directly. What the suite finds when the workbench stands between is
//! therefore the doing of the workbench.
//!
//! On purpose it behaves as follows:
//!
//! - It asks the client back (sampling, elicitation, roots) only if the client has declared that it can be asked.
//!   Otherwise a client of 2026-07-28 gets -32021, and for an older one the tool fails and says so.
//! - Every tool that asks does so in both eras: it returns its questions to a client of 2026-07-28 and sends them to an
//!   older one, so the tools of either revision work for clients of the other.
//! - The state that a client brings back with its answers is sealed with a key of the process.
//! - `--era legacy` answers what is newer than 2025-11-25 with -32601 (over HTTP with status 400) and has no tasks.
//!   `--era modern` answers `initialize` with -32022 and the revision that it speaks.
//! - Over HTTP in a session, log messages and resource updates go out on the stream of the client's GET, also during a
//!   call, because rmcp sends all notifications there except progress and cancellation.
//! - `test_reconnection` drops the response stream over HTTP and answers 2 s later, on the stream of a client that has
//!   returned with `Last-Event-ID` by then; rmcp stores no answer for one that comes later. Such a client gets the event
//!   that it names once more. Over stdio and without sessions the tool just answers.
//! - `test_update_watched_resource` is an addition: it announces a change of `test://watched-resource` to subscribers.
//! - `test_trigger_tool_change` and `test_trigger_prompt_change` make `test_extra_tool` and `test_extra_prompt` come and
//!   go for all clients of the process, and notify the streams that listen and the caller in a session.
//! - Tasks send no `notifications/tasks`: rmcp's filter of `subscriptions/listen` has no `taskIds`.

mod changes;
mod completions;
mod era;
mod fixture;
mod http;
mod interview;
mod prompts;
mod questions;
mod resources;
mod samples;
mod schemas;
mod talk;
mod tasks;
mod tools;

use std::{error::Error, io::Write as _, process::ExitCode, sync::Arc};

use clap::{Parser, Subcommand};
use rmcp::{
    ServiceExt as _,
    transport::{IntoTransport as _, stdio_pipes},
};

use crate::{
    era::{Era, Pinned},
    fixture::{Fixture, Process},
};

/// The server that the official MCP conformance suite expects.
#[derive(Parser)]
struct Arguments {
    /// The era that the fixture speaks.
    #[arg(long, value_enum, default_value_t = Era::Both, global = true)]
    era: Era,
    #[command(subcommand)]
    transport: Transport,
}

/// How the client is reached.
#[derive(Subcommand)]
enum Transport {
    /// Talk over stdin and stdout.
    Stdio,
    /// Listen on 127.0.0.1 and print the address on stderr.
    Http {
        /// The port; 0 takes a free one.
        #[arg(long)]
        port: u16,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.transport {
        Transport::Stdio => serve_stdio(arguments.era).await,
        Transport::Http { port } => http::serve(port, arguments.era).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stderr_line(&format!("conformance-server: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn serve_stdio(era: Era) -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::over_stdio(Arc::new(Process::new(era)));
    let transport = Pinned::new(era, stdio_pipes().into_transport());
    let service = fixture.serve(transport).await?;
    service.waiting().await?;
    Ok(())
}

/// Writes a line to stderr. A failure is ignored.
fn stderr_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
