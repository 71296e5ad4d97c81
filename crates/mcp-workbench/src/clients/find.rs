//! Finds and reads the clients' files on this machine.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    client::{Client, Format, Scope, System},
    document::{self, SyntaxError},
    files::{ClientPath, client_paths},
    read,
    translate::{ParsedEntry, translate},
};
use crate::{
    config::Environment,
    plain_file::{self, PlainFileError},
};

/// The largest file that is read. Some clients store much else in theirs.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// An existing file of a client.
#[derive(Debug)]
pub(crate) struct DiscoveredFile {
    pub client: &'static Client,
    pub path: PathBuf,
    pub scope: Scope,
    /// Its servers, or the error of reading them.
    pub servers: Result<Vec<DiscoveredServer>, ReadError>,
}

/// A server in a client's file.
#[derive(Debug)]
pub struct DiscoveredServer {
    pub name: String,
    /// The directory that the server is for, if any.
    pub project: Option<PathBuf>,
    pub entry: Map<String, Value>,
    pub parsed: ParsedEntry,
}

/// Reasons why a client's file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("cannot read `{}`: {source}\n  hint: make it readable for this user", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    /// The file is too large for a configuration.
    #[error("`{}` is larger than {MAX_FILE_BYTES} bytes\n  hint: check its content", file.display())]
    TooLarge { file: PathBuf },
    #[error("`{}` is not UTF-8 text\n  hint: save it as UTF-8", file.display())]
    NotText { file: PathBuf },
    #[error("{}:{error}\n  hint: fix it there; the client probably cannot read it either", file.display())]
    Syntax { file: PathBuf, error: SyntaxError },
}

/// Returns the existing files of some clients with their servers.
pub(crate) fn find(clients: &[&'static Client], environment: &Environment) -> Vec<DiscoveredFile> {
    let mut found = Vec::new();
    for &client in clients {
        let mut paths: Vec<ClientPath> = Vec::new();
        for it in client_paths(client, System::CURRENT, environment) {
            // In the home directory, the user's file is at the path of a project file too.
            let known = paths.iter().any(|known| known.path == it.path);
            // Reading the file twice would list its servers twice.
            if !known && it.path.is_file() {
                paths.push(it);
            }
        }
        found.extend(paths.into_iter().map(|it| DiscoveredFile {
            servers: servers(client, &it.path, it.scope, environment),
            path: it.path,
            scope: it.scope,
            client,
        }));
    }
    found
}

fn servers(
    client: &Client,
    file: &Path,
    scope: Scope,
    environment: &Environment,
) -> Result<Vec<DiscoveredServer>, ReadError> {
    let text = read_text(file)?;
    let directory = environment.start_directory();
    servers_in(client, &text, scope, directory).map_err(|error| ReadError::Syntax {
        file: file.into(),
        error,
    })
}

/// Parses the servers in the text of a file; `directory` is the project of a project file.
pub fn servers_in(
    client: &Client,
    text: &str,
    scope: Scope,
    directory: &Path,
) -> Result<Vec<DiscoveredServer>, SyntaxError> {
    let document = document::parse(text, client.format)?;
    let entries = read::entries(client, &document, scope, directory).into_iter();
    let servers = entries.map(|entry| DiscoveredServer {
        parsed: translate(client, &entry),
        name: entry.name,
        project: entry.project,
        entry: entry.entry,
    });
    Ok(servers.collect())
}

pub(crate) fn read_text(file: &Path) -> Result<String, ReadError> {
    let bytes = plain_file::read(file, MAX_FILE_BYTES).map_err(|error| match error {
        PlainFileError::TooLarge(_) => ReadError::TooLarge { file: file.into() },
        other => ReadError::Unreadable {
            file: file.into(),
            source: other.into(),
        },
    })?;
    String::from_utf8(bytes).map_err(|_| ReadError::NotText { file: file.into() })
}

impl Format {
    pub fn title(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::clients::{ClientName, client};

    #[test]
    fn in_the_home_directory_a_file_is_read_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".cursor/mcp.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        let found = |start: &Path| {
            let environment = Environment::new([], start.into(), Some(home.path().into()));
            let found = find(&[client(ClientName::Cursor)], &environment);
            found
                .into_iter()
                .map(|it| (it.path, it.scope))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(home.path()), [(file.clone(), Scope::User)]);
        assert_eq!(found(Path::new("/nowhere")), [(file.clone(), Scope::User)]);
    }
}
