//! `allow`: lets a tool run without asking, by a rule under `allow` in the configuration.

use std::{path::Path, process::ExitCode};

use clap::Args;
use thiserror::Error;

use super::{
    CommandResult,
    configuration::{choose_server, load_configuration},
    editing::{EditArguments, EditOutcome, Editing},
    output,
};
use crate::{
    config::{Environment, PermissionRule},
    policy::permissions::{Verdict, verdict_by_name},
    visible::visible,
};

#[derive(Args)]
pub(super) struct AllowArguments {
    /// The toolbox
    toolbox: String,

    /// The server
    server: String,

    /// The tool
    tool: String,

    #[command(flatten)]
    edit: EditArguments,
}

/// A rule under `allow` would change nothing.
#[derive(Debug, Error)]
#[error(
    "a rule under \"ask\" or \"deny\" applies to the tool `{}`, and wins over \"allow\"\n  \
     hint: change the \"permissions\" of the server in the configuration",
    visible(.0)
)]
struct Overruled(String);

pub(super) fn run(
    config: Option<&Path>,
    arguments: &AllowArguments,
    environment: &Environment,
) -> CommandResult {
    let AllowArguments {
        toolbox,
        server,
        tool,
        ..
    } = arguments;
    let mut loaded = load_configuration(config, environment)?.config;
    choose_server(&mut loaded, toolbox, server)?;
    let chosen = loaded
        .toolboxes
        .values()
        .find_map(|it| it.servers.values().next());
    let mut permissions = chosen.map(|it| it.permissions.clone()).unwrap_or_default();
    let rule = escaped(tool);
    let rule = PermissionRule::new(&rule).map_err(|_| Overruled(tool.clone()))?;
    // Tried before it is written: if another rule wins, the new one would change nothing.
    let allowed = permissions.allow.get_or_insert_default();
    let is_new = !allowed.iter().any(|it| it.written() == rule.written());
    if is_new {
        allowed.push(rule);
    }
    if !matches!(verdict_by_name(&permissions, tool), Some(Verdict::Allow)) {
        return Err(Overruled(tool.clone()).into());
    }
    let mut editing = Editing::open(config, environment)?;
    // The same rules written again could still change the layout of the file.
    if is_new {
        let allowed = permissions.allow.iter().flatten();
        let rules: Vec<String> = allowed.map(|it| it.written().to_owned()).collect();
        let set = editing.text.set_allowed(toolbox, server, &rules);
        set.map_err(|error| editing.refused(error))?;
    }
    let what = format!(
        "the tool `{}` of the server `{}`",
        visible(tool),
        visible(server)
    );
    let done = format!("allowed {what}");
    if editing.finish(&arguments.edit, environment, &done)? == EditOutcome::Same {
        output::remark(&format!("nothing to change: {what} is allowed already"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rule for exactly this tool.
fn escaped(tool: &str) -> String {
    // The name must not be read as a pattern.
    let escaped = tool.replace('\\', r"\\").replace('*', r"\*");
    // At the beginning these stand for hints and negation.
    if escaped.starts_with(['@', '!']) {
        format!("\\{escaped}")
    } else {
        escaped
    }
}
