//! The bearer tokens of HTTP clients: where they are read from, and the file of the token that the workbench
//! generates.

use std::{
    fs, io,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::output;
use crate::{
    config::Environment,
    plain_file,
    private_files::{make_folder, open_new},
    serve::http::{InvalidTokens, Tokens, random_id},
};

/// The environment variable with the token.
const TOKEN_VARIABLE: &str = "WORKBENCH_TOKEN";
/// The largest token file that is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Reasons why no token is available.
#[derive(Debug, Error)]
pub(super) enum TokenError {
    /// The variable contains no valid token.
    #[error("{TOKEN_VARIABLE}: {0}\n  hint: correct it or unset it")]
    Variable(InvalidTokens),
    /// A file contains no valid token.
    #[error("{}: {error}\n  hint: write one token per line", file.display())]
    File { file: PathBuf, error: InvalidTokens },
    /// A file cannot be read or written.
    #[error("{}: {error}\n  hint: name a file with --token-file, or set {TOKEN_VARIABLE}", file.display())]
    Unusable { file: PathBuf, error: io::Error },
    /// Other users can read the generated token.
    #[error("{0}: other users can read this file\n  hint: delete it to generate a new token")]
    Exposed(String),
    #[error(
        "there is no state directory for a generated token\n  \
         hint: set HOME, XDG_STATE_HOME or {TOKEN_VARIABLE}, or name a file with --token-file"
    )]
    NoStateDirectory,
}

/// Returns the valid tokens: from the file of `--token-file`, from the variable, or the generated one.
pub(super) fn tokens(file: Option<&Path>, environment: &Environment) -> Result<Tokens, TokenError> {
    match given(file, environment)? {
        Some(tokens) => Ok(tokens),
        None => own(&state_file(environment).ok_or(TokenError::NoStateDirectory)?),
    }
}

/// Returns the tokens from the file of `--token-file`, or from the variable.
pub(super) fn given(
    file: Option<&Path>,
    environment: &Environment,
) -> Result<Option<Tokens>, TokenError> {
    if let Some(file) = file {
        let file = environment.absolute(file);
        if is_exposed(&file) {
            tracing::warn!("{}: other users can read this file", file.display());
        }
        return read(&file).map(Some);
    }
    if let Some(value) = environment.variable(TOKEN_VARIABLE) {
        let value = value
            .to_str()
            .ok_or(TokenError::Variable(InvalidTokens::NotVisible))?;
        let tokens = Tokens::parse(value).map_err(TokenError::Variable)?;
        return Ok(Some(tokens));
    }
    Ok(None)
}

/// Returns the generated token, and generates it at the first start.
fn own(file: &Path) -> Result<Tokens, TokenError> {
    let unusable = |error| TokenError::Unusable {
        file: file.to_owned(),
        error,
    };
    if !file.try_exists().map_err(unusable)? {
        make(file).map_err(unusable)?;
    }
    // Another user may have read the token already, so making the file private now would not help.
    if is_exposed(file) {
        return Err(TokenError::Exposed(file.display().to_string()));
    }
    let tokens = read(file)?;
    output::remark(&format!("the token is in {}", file.display()));
    // The token itself goes only to a terminal; a log file must not contain it.
    if io::stderr().is_terminal() {
        let text = read_text(file).map_err(unusable)?;
        output::remark(&format!("the token is {}", text.trim()));
    }
    Ok(tokens)
}

fn read(file: &Path) -> Result<Tokens, TokenError> {
    let text = read_text(file).map_err(|error| TokenError::Unusable {
        file: file.to_owned(),
        error,
    })?;
    Tokens::parse(&text).map_err(|error| TokenError::File {
        file: file.to_owned(),
        error,
    })
}

fn read_text(file: &Path) -> io::Result<String> {
    let bytes = plain_file::read_once(file, MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Generates a token in a file that only the user can read. If another process creates the file first, its token
/// is used.
fn make(file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    // The file gets its name only when it is complete, so that nobody reads a part of it.
    let draft = folder.join(format!("token.{}", random_id()));
    let written = open_new(&draft)
        .and_then(|mut draft| writeln!(draft, "{}", random_id()))
        // A rename would replace the token of a process that was faster.
        .and_then(|()| fs::hard_link(&draft, file));
    let _ = fs::remove_file(&draft);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Returns `mcp-workbench/token` in the user's state directory.
fn state_file(environment: &Environment) -> Option<PathBuf> {
    // A relative directory would depend on where the workbench is started.
    let given = |variable: &str| {
        let directory = PathBuf::from(environment.variable(variable)?);
        directory.is_absolute().then_some(directory)
    };
    let directory = if cfg!(windows) {
        given("LOCALAPPDATA")
    } else {
        let usual = || Some(environment.home()?.join(".local/state"));
        given("XDG_STATE_HOME").or_else(usual)
    };
    Some(directory?.join("mcp-workbench").join("token"))
}

#[cfg(unix)]
fn is_exposed(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

/// On other systems the user's own directory is private already.
#[cfg(not(unix))]
fn is_exposed(_: &Path) -> bool {
    false
}
