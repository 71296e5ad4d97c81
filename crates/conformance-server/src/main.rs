//! The server that the official MCP conformance suite expects; never shipped.
//!
//! `conformance-server stdio` or `conformance-server http --port N`. The suite names the tools, prompts
//! and resources that it calls and says what each must do; [`fixture`] has them all, and scores full
//! marks when the suite talks to it directly. What the suite finds when the workbench stands between is
//! therefore the doing of the workbench.

mod completions;
mod fixture;
mod http;
mod prompts;
mod questions;
mod resources;
mod samples;
mod talk;
mod tools;

use std::{error::Error, io::Write as _, process::ExitCode};

use clap::{Parser, Subcommand};
use rmcp::{ServiceExt as _, transport::stdio_pipes};

use crate::fixture::Fixture;

/// The server that the official MCP conformance suite expects.
#[derive(Parser)]
struct Arguments {
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
    let outcome = match Arguments::parse().transport {
        Transport::Stdio => serve_stdio().await,
        Transport::Http { port } => http::serve(port).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stderr_line(&format!("conformance-server: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn serve_stdio() -> Result<(), Box<dyn Error>> {
    let service = Fixture::over_stdio().serve(stdio_pipes()).await?;
    service.waiting().await?;
    Ok(())
}

/// Writes a line to stderr. A stderr that nobody reads is no reason to stop.
fn stderr_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
