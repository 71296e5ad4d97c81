//! `trust approve`: pins servers and tools as they are now.

use std::{path::Path, process::ExitCode};

use clap::Args;
use ident::ServerIdentifier;

use super::{
    diff::{difference, name_of, remark_on},
    examine::{ConfiguredServer, ExaminedServer, StartOutcome, TrustReview, choose_tool},
    readable,
    selection::{TrustSelection, confirmed},
};
use crate::{
    cli::{CommandResult, configuration::StartLimit, editing::unified, output, terminal::count},
    config::Environment,
    lock::{Digest, Pins, RecordError, launch_parts},
    visible::{revealed, visible},
};

#[derive(Args)]
pub(super) struct ApproveArguments {
    #[command(flatten)]
    chosen: TrustSelection,

    /// Approve without asking
    #[arg(long)]
    yes: bool,
}

/// Approves the selected servers and tools. The exit code says if all of them are approved.
pub(super) fn run(
    config: Option<&Path>,
    arguments: &ApproveArguments,
    environment: &Environment,
) -> CommandResult {
    let ApproveArguments { chosen, yes } = arguments;
    let subject = TrustReview::load(config, chosen, StartLimit::default(), environment)?;
    let mut refused: Vec<ServerIdentifier> = Vec::new();
    // Starting a server runs its program, so a changed launch needs its own consent first.
    for server in subject.servers.iter().filter(|it| subject.is_barred(it)) {
        if !may_start(&subject, server, *yes)? {
            refused.push(server.place.clone());
        }
    }
    let (pins, mut servers) =
        subject.examine(|_, server| !refused.contains(&server.place), environment)?;
    let mut is_complete = true;
    for server in &servers {
        let why = match &server.found {
            StartOutcome::Up { .. } => continue,
            StartOutcome::Failed(error) => error,
            StartOutcome::NotStarted => "not started",
        };
        is_complete = false;
        output::remark(&format!("{}: not approved: {why}", name_of(server)));
    }
    let chosen = choose_tool(&mut servers, chosen)?;
    if let Some(reason) = servers.iter().find_map(|it| it.unapprovable(&chosen)) {
        output::remark(&format!("not approved: {reason}"));
        return Ok(ExitCode::FAILURE);
    }
    is_complete &= approve(&pins, &servers, &chosen, *yes)?;
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Asks for permission to start a server whose launch is not approved, to list its tools.
fn may_start(
    subject: &TrustReview,
    server: &ConfiguredServer,
    yes: bool,
) -> Result<bool, super::selection::NotConfirmed> {
    let place = &server.place;
    let name = visible(&format!("{}/{}", place.toolbox, place.server)).into_owned();
    if !yes {
        let before = subject
            .lock
            .server(place)
            .map(|it| readable::launch(&it.launch));
        let now = readable::launch(&server.launch);
        let before = before.unwrap_or_default();
        output::data(&unified(Path::new(&name), &before, &now));
    }
    confirmed(&format!("Start {name} like this, to see its tools?"), yes)
}

/// Shows the differences, asks for confirmation and writes the lock file; returns true if approved.
fn approve(
    pins: &Pins,
    servers: &[ExaminedServer],
    chosen: &TrustSelection,
    yes: bool,
) -> Result<bool, Box<dyn std::error::Error>> {
    let mut open: Vec<&ExaminedServer> = Vec::new();
    for server in servers {
        let Some(words) = summary(server, chosen) else {
            continue;
        };
        if !yes {
            output::data(&difference(server, pins, chosen));
        }
        remark_on(server, chosen);
        output::remark(&format!("{}: {words}", name_of(server)));
        open.push(server);
    }
    if open.is_empty() {
        output::remark("nothing to approve");
        return Ok(true);
    }
    if !confirmed("Approve this?", yes)? {
        output::remark("nothing was approved");
        return Ok(false);
    }
    write(pins, &open, chosen)?;
    let file = pins
        .file()
        .map_or_else(String::new, |it| it.display().to_string());
    output::remark(&format!("approved in {}", visible(&file)));
    Ok(true)
}

/// Describes the changes of a server that are approved; `None` if there are none.
fn summary(server: &ExaminedServer, chosen: &TrustSelection) -> Option<String> {
    let StartOutcome::Up { .. } = &server.found else {
        return None;
    };
    let differences = server.differences();
    let mut parts = Vec::new();
    match &server.pinned {
        None => parts.push("new server".to_owned()),
        Some(_) if differences.launch.is_empty() => {}
        Some(_) => parts.push(format!(
            "launch changed ({})",
            launch_parts(&differences.launch)
        )),
    }
    parts.extend(server.older().map(str::to_owned));
    let lists = [
        ("changed", &differences.changed),
        ("new", &differences.new),
        ("gone", &differences.gone),
    ];
    for (word, tools) in lists {
        let tools: Vec<String> = tools
            .iter()
            .filter(|tool| chosen.has_tool(tool))
            .map(|tool| revealed(tool).into_owned())
            .collect();
        if !tools.is_empty() {
            parts.push(format!(
                "{} {word}: {}",
                count(tools.len(), "tool"),
                tools.join(", ")
            ));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn write(
    pins: &Pins,
    servers: &[&ExaminedServer],
    chosen: &TrustSelection,
) -> Result<(), RecordError> {
    let (lock, ()) = pins.change(|lock| {
        for server in servers {
            if let StartOutcome::Up { observation, .. } = &server.found {
                let pinned = lock.server_mut(&server.place);
                pinned.approve(observation, chosen.selection());
            }
        }
    })?;
    for server in servers {
        if let StartOutcome::Up { texts, .. } = &server.found {
            let texts = texts.values();
            // A definition that repeats a secret is pinned by its digest only.
            let texts = texts
                .filter(|text| !server.secrets.occur_in_json(text))
                .map(|text| (Digest::of(text.as_bytes()), text.clone()));
            pins.keep_texts(&lock, &server.place, texts);
        }
    }
    Ok(())
}
