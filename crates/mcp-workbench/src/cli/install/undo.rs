//! Undoes an install: restores the backup, or, if the file was changed since, removes our entry and adds back the
//! servers that it replaced.

use std::{fs, process::ExitCode};

use serde_json::Value;

use super::{
    InstallArguments, InstallError,
    backup::Backup,
    change::{is_ours, section, servers, shown, what},
    target::{TargetFile, stable_program},
};
use crate::{
    cli::{CommandResult, output},
    clients::{ClientEditError, ClientText, DiscoveredServer},
    config::{Environment, WriteError, replace_unchanged},
    visible::visible,
};

pub(super) fn run(
    target: &TargetFile,
    arguments: &InstallArguments,
    environment: &Environment,
) -> CommandResult {
    let nothing = || InstallError::NothingToUndo {
        file: target.path.clone(),
    };
    let now = target.text.as_deref().ok_or_else(nothing)?;
    let mut backups = Backup::all(&target.path).into_iter();
    let report = match backups.find(|it| it.fits(now)) {
        // The file is exactly what the install wrote, so the original bytes are safe to restore.
        Some(backup) => restore(target, now, &backup, arguments.dry_run)?,
        None => {
            let program = stable_program(environment)?;
            take_out(target, now, arguments, &program)?.ok_or_else(nothing)?
        }
    };
    output::remark(&report);
    Ok(ExitCode::SUCCESS)
}

/// Restores the original bytes of the file, and returns a report.
fn restore(
    target: &TargetFile,
    now: &str,
    backup: &Backup,
    dry_run: bool,
) -> Result<String, InstallError> {
    let path = target.path.display();
    let before = backup.text()?;
    if dry_run {
        return Ok(match before {
            Some(_) => format!("{path} would be restored from {}", backup.path.display()),
            None => format!("{path} would be removed, because it did not exist before"),
        });
    }
    let report = match before {
        Some(before) => {
            replace_unchanged(&target.path, now, &before)?;
            format!("restored {path}")
        }
        None => {
            fs::remove_file(&target.path).map_err(|source| WriteError::Failed {
                file: target.path.clone(),
                source,
            })?;
            format!("removed {path}, which did not exist before")
        }
    };
    backup.discard();
    Ok(report)
}

/// Removes our entry from a file that was changed since, adds back the servers that it replaced, and returns a
/// report; `None` if there is nothing to remove or to add back.
fn take_out(
    target: &TargetFile,
    now: &str,
    arguments: &InstallArguments,
    program: &str,
) -> Result<Option<String>, InstallError> {
    let present = servers(target, now)?;
    let is_own = |it: &DiscoveredServer| {
        it.name == arguments.name && section(target, it).is_none() && is_ours(it, program)
    };
    let own = present.iter().find(|it| is_own(it));
    let failed = |error: ClientEditError| InstallError::Edit {
        file: target.path.clone(),
        error: error.into(),
    };
    let mut text = ClientText::parse(target.client, now).map_err(failed)?;
    if let Some(own) = own {
        text.remove(&own.name, None).map_err(failed)?;
    }
    // Without our entry in the file, any entry of the workbench under our name is the one that was removed.
    let is_same_own = |it: &DiscoveredServer| match own {
        Some(own) => is_same_place(it, own) && what(it) == what(own),
        None => is_own(it),
    };
    let mut outcome = UndoReport::default();
    for earlier in earlier_servers(target, &arguments.name, is_same_own)? {
        let server = &earlier.server;
        let section = section(target, server);
        let name = shown(&server.name, section.as_deref());
        let mut others = present
            .iter()
            .filter(|it| !own.is_some_and(|own| std::ptr::eq(*it, own)));
        let entry = Value::Object(server.entry.clone());
        match others.find(|it| is_same_place(it, server)) {
            // The server is in the file again already.
            Some(same) if what(same) == what(server) => {}
            Some(_) => outcome.changed.push(name),
            None if earlier.was_replaced
                && text.set(&server.name, section.as_deref(), &entry).is_ok() =>
            {
                outcome.restored.push(name);
            }
            None => outcome.missing.push(name),
        }
    }
    if own.is_none() && outcome.restored.is_empty() {
        return Ok(None);
    }
    if !arguments.dry_run {
        replace_unchanged(&target.path, now, &text.finish())?;
        // As long as a server was not added back, a later undo may need the backups.
        if outcome.missing.is_empty() {
            Backup::all(&target.path).iter().for_each(Backup::settle);
        }
    }
    let removed = own.map(|own| own.name.as_str());
    Ok(Some(outcome.report(target, removed, arguments.dry_run)))
}

/// A server that the client had before the install.
struct EarlierServer {
    server: DiscoveredServer,
    /// True if the install removed it. A server that somebody else removed is not added back.
    was_replaced: bool,
}

/// Returns the servers that the client had before the installs of our entry, the newest backup first. `name` is the name
/// of our entry.
fn earlier_servers(
    target: &TargetFile,
    name: &str,
    is_own: impl Fn(&DiscoveredServer) -> bool,
) -> Result<Vec<EarlierServer>, InstallError> {
    let mut earlier: Vec<EarlierServer> = Vec::new();
    for backup in Backup::all(&target.path) {
        let text = backup.text()?.unwrap_or_default();
        // The backup of the first install ends the search: it does not have our entry yet. Older ones belong to
        // installs that were undone.
        let mut is_first = true;
        for server in servers(target, &text)? {
            let has_our_place = server.name == name && section(target, &server).is_none();
            if is_own(&server) {
                is_first = false;
            } else if !earlier.iter().any(|it| is_same_place(&it.server, &server)) {
                earlier.push(EarlierServer {
                    server,
                    was_replaced: backup.has_replaced || has_our_place,
                });
            }
        }
        if is_first {
            break;
        }
    }
    Ok(earlier)
}

/// Returns true if two servers have the same name in the same section.
fn is_same_place(one: &DiscoveredServer, other: &DiscoveredServer) -> bool {
    one.name == other.name && one.project == other.project
}

/// The servers of a backup, by result.
#[derive(Default)]
struct UndoReport {
    restored: Vec<String>,
    /// In the file, with a different entry.
    changed: Vec<String>,
    /// Not in the file, and not added back.
    missing: Vec<String>,
}

impl UndoReport {
    /// Formats the report; `own` is the name of the removed entry.
    fn report(&self, target: &TargetFile, own: Option<&str>, dry_run: bool) -> String {
        let path = target.path.display();
        let (removed, restored) = if dry_run {
            ("would remove", "would restore")
        } else {
            ("removed", "restored")
        };
        let mut lines = vec![match own {
            Some(name) => format!(
                "{removed} `{}` from {path}, which has changed since the install",
                visible(name)
            ),
            None => format!("the workbench was removed from {path} already"),
        }];
        for (names, what) in [
            (&self.restored, restored),
            (&self.changed, "different from the backup, not changed"),
            (&self.missing, "in the backup, not restored"),
        ] {
            if !names.is_empty() {
                lines.push(format!("{what}: {}", names.join(", ")));
            }
        }
        let backups = Backup::all(&target.path);
        if let Some(backup) = backups.iter().find(|it| !it.was_absent) {
            lines.push(format!("backup: {}", backup.path.display()));
        }
        lines.join("\n")
    }
}
