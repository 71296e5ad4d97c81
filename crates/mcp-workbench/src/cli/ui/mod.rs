//! `ui`: opens the page of the workbench that serves over HTTP. The page itself is here too: whoever serves HTTP gets it
//! as a [`Page`](crate::serve::http::Page).

mod access;
mod api;
mod assets;
mod commands;
mod page;
mod record;
mod servers;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::Args;

pub(super) use api::Api;
pub(super) use page::WorkbenchPage;
pub(super) use record::PageRecord;

use super::{CommandResult, live, oauth::open_in_browser, output};
use crate::config::Environment;

/// Arguments of `ui`.
#[derive(Args)]
pub(super) struct UiArguments {
    /// Print the link instead of opening a browser
    #[arg(long)]
    print: bool,
}

/// Opens the page in the user's browser.
pub(super) fn run(arguments: &UiArguments, environment: &Environment) -> CommandResult {
    let record = PageRecord::read(environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let link = live::ask(&record, "POST", "/ui/link", None).await?;
        let path = link["path"].as_str().unwrap_or_default();
        let link = format!("http://{}{path}", record.address);
        let has_terminal = io::stderr().is_terminal();
        if arguments.print || !open_in_browser(&link, environment, has_terminal).await {
            output::data(&format!("{link}\n"));
            output::remark("the link is good once, for a minute");
        }
        Ok(ExitCode::SUCCESS)
    })
}
