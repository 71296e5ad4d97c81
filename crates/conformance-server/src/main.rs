//! The server that the official MCP conformance suite expects; never shipped.
//!
//! `conformance-server stdio` or `conformance-server http --port N`, and `--era` for one that speaks only
//! the revisions with `initialize` (legacy), or only the one without (modern). The suite names the tools, prompts
//! and resources that it calls and says what each must do; [`fixture`] has them all, and scores full
//! marks when the suite talks to it directly. What the suite finds when the workbench stands between is
//! therefore the doing of the workbench.

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

/// Writes a line to stderr. A stderr that nobody reads is no reason to stop.
fn stderr_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
