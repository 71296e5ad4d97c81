//! `ui`: opens the page of the host, or of the workbench that serves over HTTP. The page itself is here too: whoever serves HTTP
//! gets it as a [`Page`](crate::serve::http::Page).

mod access;
mod api;
mod assets;
mod commands;
#[cfg(unix)]
mod host;
mod page;
mod record;
mod servers;
mod sign_in;

use std::{
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use clap::Args;

pub(super) use api::Api;
#[cfg(unix)]
pub(super) use host::serve_host;
pub(super) use page::WorkbenchPage;
use record::NoPage;
pub(super) use record::PageRecord;

use super::{CommandResult, live, oauth::open_in_browser, output};
use crate::config::Environment;

#[derive(Args)]
pub(super) struct UiArguments {
    /// Print the link instead of opening a browser
    #[arg(long)]
    print: bool,
}

/// Opens the page in the user's browser.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &UiArguments,
    environment: &Environment,
) -> CommandResult {
    let record = page_record(config, environment)?;
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

/// Finds the page of the host of a configuration, or else that of the workbench that serves over HTTP.
pub(super) fn page_record(
    config: Option<&Path>,
    environment: &Environment,
) -> Result<PageRecord, NoPage> {
    #[cfg(unix)]
    if let Some(page) = super::host::page(config, environment) {
        return Ok(PageRecord::of_host(page));
    }
    #[cfg(not(unix))]
    let _ = config;
    PageRecord::read(environment)
}
