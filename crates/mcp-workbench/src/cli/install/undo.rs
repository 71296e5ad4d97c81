//! Taking an install back: the bytes of the copy, or our entry alone where the file has changed since.

use std::{fs, process::ExitCode};

use super::{
    InstallArguments, InstallError,
    backup::Backup,
    change::{is_ours, servers},
    target::{Target, stable_program},
};
use crate::{
    cli::{Done, output},
    clients::ClientText,
    config::{Environment, WriteError, replace_unchanged},
    visible::visible,
};

/// Puts the file back.
pub(super) fn run(
    target: &Target,
    arguments: &InstallArguments,
    environment: &Environment,
) -> Done {
    let nothing = || InstallError::NothingToUndo {
        file: target.path.clone(),
    };
    let now = target.text.as_deref().ok_or_else(nothing)?;
    let mut backups = Backup::all(&target.path).into_iter();
    let said = match backups.find(|it| it.fits(now)) {
        Some(backup) => restore(target, now, &backup, arguments.dry_run)?,
        None => {
            let program = stable_program(environment)?;
            take_out(target, now, arguments, &program)?.ok_or_else(nothing)?
        }
    };
    output::remark(&said);
    Ok(ExitCode::SUCCESS)
}

/// Gives the file the bytes that it had, and says so.
fn restore(
    target: &Target,
    now: &str,
    backup: &Backup,
    dry_run: bool,
) -> Result<String, InstallError> {
    let path = target.path.display();
    let before = backup.text()?;
    if dry_run {
        return Ok(match before {
            Some(_) => format!("{path} would be as it was, from {}", backup.path.display()),
            None => format!("{path} would be removed, as it was not there before"),
        });
    }
    let said = match before {
        Some(before) => {
            replace_unchanged(&target.path, now, &before)?;
            format!("{path} is as it was")
        }
        None => {
            fs::remove_file(&target.path).map_err(|source| WriteError::Failed {
                file: target.path.clone(),
                source,
            })?;
            format!("removed {path}, which was not there before")
        }
    };
    backup.discard();
    Ok(said)
}

/// Takes our entry out of a file that has changed since, and says so; `None` if it is not there.
fn take_out(
    target: &Target,
    now: &str,
    arguments: &InstallArguments,
    program: &str,
) -> Result<Option<String>, InstallError> {
    let servers = servers(target, now)?;
    let mut ours = servers.iter().filter(|it| it.name == arguments.name);
    if !ours.any(|it| is_ours(it, program)) {
        return Ok(None);
    }
    let path = target.path.display();
    let name = visible(&arguments.name);
    let edited = ClientText::parse(target.client, now).and_then(|mut text| {
        text.remove(&arguments.name, None)?;
        Ok(text.finish())
    });
    let after = edited.map_err(|error| InstallError::Edit {
        file: target.path.clone(),
        error: error.into(),
    })?;
    if arguments.dry_run {
        return Ok(Some(format!(
            "`{name}` would be taken out of {path}, which has changed since"
        )));
    }
    replace_unchanged(&target.path, now, &after)?;
    let mut said = format!("took `{name}` out of {path}, which has changed since it was put in");
    if let Some(backup) = Backup::all(&target.path).first() {
        said.push_str(&format!("\nas it was before: {}", backup.path.display()));
    }
    Ok(Some(said))
}
