//! The configuration file that an import extends or creates.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use super::{Addition, ImportError, plan::Grouping};
use crate::{
    cli::{
        configuration::{ConfigurationError, load_configuration},
        init::without_toolboxes,
    },
    config::{
        CONFIG_VARIABLE, ConfigText, EditError, Environment, LocateError, WriteError,
        escape_references, locate, parse, read_text, replace_unchanged, user_config_file,
    },
};

/// The number of server names in a description.
const NAMED_SERVERS: usize = 8;

/// The number of client names in a description.
const NAMED_CLIENTS: usize = 3;

/// The file that gets the servers.
pub(super) struct Destination {
    pub(super) file: PathBuf,
    /// Its text, if it exists.
    before: Option<String>,
}

impl Destination {
    /// Finds the configuration file, or chooses a new one: the named one, or one in the user's configuration
    /// directory. An invalid configuration is refused.
    pub(super) fn find(
        flag: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, ImportError> {
        let file = match locate(flag, environment) {
            Ok(located) => located.file,
            Err(LocateError::FlagMissing { file } | LocateError::VariableMissing { file }) => {
                return Ok(Self { file, before: None });
            }
            Err(LocateError::NothingFound { .. }) => {
                let file = user_config_file(environment).ok_or(ImportError::NoDirectory)?;
                return Ok(Self { file, before: None });
            }
        };
        load_configuration(Some(&file), environment)?;
        let text = read_text(&file, environment)
            .map_err(|error| ConfigurationError::NotUsable { error })?;
        Ok(Self {
            file,
            before: Some(text),
        })
    }

    /// Returns the text; empty for a new file.
    pub(super) fn text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    /// Returns the text with new servers.
    pub(super) fn with(
        &self,
        additions: &[Addition<'_>],
        grouping: &Grouping,
        environment: &Environment,
    ) -> Result<String, ImportError> {
        let before = self.before.clone().unwrap_or_else(without_toolboxes);
        let after = edited(&before, additions, grouping).map_err(|error| ImportError::Edit {
            file: self.file.clone(),
            error: error.into(),
        })?;
        match parse(&after, &self.file, environment) {
            Ok(_) => Ok(after),
            Err(problems) => Err(ImportError::Invalid { problems }),
        }
    }

    /// Writes the text. A file with secrets becomes readable for the user only.
    pub(super) fn write(&self, text: &str, secret: bool) -> Result<(), WriteError> {
        let failed = |source: io::Error| WriteError::Failed {
            file: self.file.clone(),
            source,
        };
        match &self.before {
            Some(before) => {
                // The permissions change before the secrets are written.
                if secret {
                    make_private(&self.file).map_err(failed)?;
                }
                replace_unchanged(&self.file, before, text)
            }
            None => {
                if let Some(folder) = self.file.parent() {
                    fs::create_dir_all(folder).map_err(failed)?;
                }
                // Created empty with the right permissions first, so that no secret is readable even for a
                // moment.
                create(&self.file, secret).map_err(failed)?;
                replace_unchanged(&self.file, "", text).inspect_err(|_| {
                    // The file was just created by us and is empty.
                    let _ = fs::remove_file(&self.file);
                })
            }
        }
    }

    /// Returns the value of `--config` that other commands need to find the file; `None` if they find it anyway.
    pub(super) fn option(file: &Path, environment: &Environment) -> Option<PathBuf> {
        let named = environment.variable(CONFIG_VARIABLE);
        let found = locate(None, environment).is_ok_and(|it| it.file == file);
        // A file in the user's configuration directory is found once it exists.
        let would_be = user_config_file(environment).is_some_and(|it| it == file)
            && named.is_none_or(std::ffi::OsStr::is_empty);
        (!found && !would_be).then(|| file.to_owned())
    }
}

fn edited(
    before: &str,
    additions: &[Addition<'_>],
    grouping: &Grouping,
) -> Result<String, EditError> {
    let mut text = ConfigText::parse(before)?;
    for addition in additions {
        if !text.toolboxes()?.contains(&addition.toolbox) {
            let description = description(&addition.toolbox, additions, grouping);
            text.add_toolbox(&addition.toolbox, &description)?;
        }
        text.add_server(&addition.toolbox, &addition.name, &addition.new.entry)?;
    }
    Ok(text.finish())
}

/// Returns the description of a new toolbox. Models choose by it, so it says what the servers do and names them.
fn description(toolbox: &str, additions: &[Addition<'_>], grouping: &Grouping) -> String {
    let inside: Vec<&Addition<'_>> = additions
        .iter()
        .filter(|it| it.toolbox == toolbox)
        .collect();
    let names: Vec<&str> = inside
        .iter()
        .take(NAMED_SERVERS)
        .map(|it| it.name.as_str())
        .collect();
    let more = if inside.len() > names.len() {
        ", …"
    } else {
        ""
    };
    let lead = match grouping {
        Grouping::ByTopic { .. } => topics(&inside),
        Grouping::ByClient | Grouping::One(_) => format!("Servers from {}", clients(&inside)),
    };
    let text = format!("{lead}: {}{more}", names.join(", "));
    escape_references(&text)
}

/// Returns what the servers of a toolbox do.
fn topics(inside: &[&Addition<'_>]) -> String {
    let mut topics: Vec<&str> = Vec::new();
    for addition in inside {
        let topic = addition.new.topic.description;
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics.join("; ")
}

/// Returns the clients that the servers of a toolbox came from.
fn clients(inside: &[&Addition<'_>]) -> String {
    let mut clients: Vec<&str> = Vec::new();
    for place in inside.iter().filter_map(|it| it.candidate.places.first()) {
        if !clients.contains(&place.client.title) {
            clients.push(place.client.title);
        }
    }
    match clients.as_slice() {
        few if few.len() <= NAMED_CLIENTS => few.join(", "),
        many => format!("{} clients", many.len()),
    }
}

fn create(file: &Path, private: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(file).map(drop)
}

/// Removes the permissions of other users.
fn make_private(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(file)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o700))?;
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}
