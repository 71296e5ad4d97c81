//! Finds the configuration file: the one that was named, or the first that exists.

use std::path::{Path, PathBuf};

use super::environment::Environment;

/// The variable that names the configuration file.
pub(crate) const CONFIG_VARIABLE: &str = "WORKBENCH_CONFIG";

/// The default name of a configuration file.
pub(crate) const CONFIG_FILE: &str = "workbench-config.json";

/// The lock file of a configuration with the default name.
const LOCK_FILE: &str = "workbench.lock";

/// The folder of the configuration file in the user's configuration directory.
const USER_FOLDER: &str = "mcp-workbench";

/// A configuration file and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// The file, as an absolute path.
    pub file: PathBuf,
    pub source: ConfigSource,
}

/// The way in which a configuration file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// By `--config`.
    Flag,
    /// By `WORKBENCH_CONFIG`.
    Variable,
    /// In the directory in which the workbench was started.
    StartDirectory,
    /// In the user's configuration directory.
    UserDirectory,
}

/// The reason why there is no configuration file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LocateError {
    /// `--config` names a file that does not exist.
    #[error("the configuration file `{}` (from --config) does not exist", file.display())]
    FlagMissing {
        /// The file, as an absolute path.
        file: PathBuf,
    },
    /// `WORKBENCH_CONFIG` names a file that does not exist.
    #[error("the configuration file `{}` (from {CONFIG_VARIABLE}) does not exist", file.display())]
    VariableMissing {
        /// The file, as an absolute path.
        file: PathBuf,
    },
    /// No file was named, and none exists.
    #[error("no configuration file found; looked for {}", listed(looked_at))]
    NothingFound {
        /// The files that were tried.
        looked_at: Vec<PathBuf>,
    },
}

impl LocateError {
    /// Returns the next step for the user.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::FlagMissing { .. } => {
                "correct the path after --config, or write the file with `mcp-workbench init`"
            }
            Self::VariableMissing { .. } => "correct the path in WORKBENCH_CONFIG, or unset it",
            Self::NothingFound { .. } => {
                "import the servers of your MCP clients with `mcp-workbench import`, write a file with \
                 `mcp-workbench init`, name one with --config, or try `mcp-workbench demo`"
            }
        }
    }
}

/// Finds the configuration file; `flag` is the value of `--config`.
pub(crate) fn locate(
    flag: Option<&Path>,
    environment: &Environment,
) -> Result<Located, LocateError> {
    if let Some(flag) = flag {
        let file = environment.absolute(flag);
        return existing(file, ConfigSource::Flag)
            .map_err(|file| LocateError::FlagMissing { file });
    }
    let named = environment.variable(CONFIG_VARIABLE);
    // An empty variable counts as unset.
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let file = environment.absolute(Path::new(named));
        return existing(file, ConfigSource::Variable)
            .map_err(|file| LocateError::VariableMissing { file });
    }
    // The file of a project comes before that of the user.
    let candidates = [
        (
            Some(environment.absolute(Path::new(CONFIG_FILE))),
            ConfigSource::StartDirectory,
        ),
        (user_config_file(environment), ConfigSource::UserDirectory),
    ];
    let mut looked_at = Vec::new();
    for (file, source) in candidates {
        match file.map(|file| existing(file, source)) {
            Some(Ok(located)) => return Ok(located),
            Some(Err(file)) => looked_at.push(file),
            None => {}
        }
    }
    Err(LocateError::NothingFound { looked_at })
}

/// Returns the file if it exists, and otherwise its path. A file that cannot be checked counts as existing, so that
/// reading it reports the reason.
fn existing(file: PathBuf, source: ConfigSource) -> Result<Located, PathBuf> {
    if file.try_exists().unwrap_or(true) {
        Ok(Located { file, source })
    } else {
        Err(file)
    }
}

/// Returns the lock file of a configuration file, which is next to it and belongs to it alone. Earlier versions had
/// one lock file per folder. It still belongs to a configuration with the default name. If there is none in the folder,
/// it belongs to any other one without a lock file of its own.
pub(super) fn lock_file(config: &Path) -> Option<PathBuf> {
    let name = config.file_name()?.to_string_lossy();
    let shared = config.with_file_name(LOCK_FILE);
    if name == CONFIG_FILE {
        return Some(shared);
    }
    let stem = name.strip_suffix(".json").unwrap_or(&name);
    let own = config.with_file_name(format!("{stem}.{LOCK_FILE}"));
    let is_ours = shared.exists() && !own.exists() && !config.with_file_name(CONFIG_FILE).exists();
    Some(if is_ours { shared } else { own })
}

/// Returns the configuration file in the user's configuration directory.
pub(crate) fn user_config_file(environment: &Environment) -> Option<PathBuf> {
    let given = |variable: &str| {
        let directory = PathBuf::from(environment.variable(variable)?);
        directory.is_absolute().then_some(directory)
    };
    let directory = if cfg!(windows) {
        given("APPDATA")
    } else {
        given("XDG_CONFIG_HOME").or_else(|| Some(environment.home()?.join(".config")))
    };
    Some(directory?.join(USER_FOLDER).join(CONFIG_FILE))
}

fn listed(files: &[PathBuf]) -> String {
    let quoted: Vec<String> = files
        .iter()
        .map(|file| format!("`{}`", file.display()))
        .collect();
    quoted.join(" and ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A start directory, a home directory and the variables, in a folder of their own.
    struct Setting(tempfile::TempDir);

    impl Setting {
        fn new(files: &[&str]) -> Self {
            let setting = Self(tempfile::tempdir().expect("a temporary folder"));
            for file in files {
                let file = setting.path(file);
                fs::create_dir_all(file.parent().expect("a folder")).expect("making it");
                fs::write(file, "{}").expect("writing a file");
            }
            setting
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.0.path().join(relative)
        }

        fn locate(
            &self,
            flag: Option<&str>,
            variables: &[(&str, &str)],
        ) -> Result<Located, LocateError> {
            let variables = variables.iter().map(|(name, value)| {
                (
                    name.into(),
                    value.replace('@', &self.path("").to_string_lossy()).into(),
                )
            });
            let environment =
                Environment::new(variables, self.path("start"), Some(self.path("home")));
            locate(flag.map(Path::new), &environment)
        }
    }

    const HERE: &str = "start/workbench-config.json";
    const USER: &str = "home/.config/mcp-workbench/workbench-config.json";
    const XDG: &str = "xdg/mcp-workbench/workbench-config.json";

    /// A setting, `--config`, the variables, and what is found.
    type Case<'a> = (
        &'a Setting,
        Option<&'a str>,
        &'a [(&'a str, &'a str)],
        &'a str,
        ConfigSource,
    );

    #[cfg(unix)]
    #[test]
    fn the_first_source_that_names_a_file_counts() {
        let setting = Setting::new(&["start/a.json", "start/b.json", HERE, USER, XDG]);
        let other = Setting::new(&[USER, XDG]);
        let variable = ("WORKBENCH_CONFIG", "b.json");
        let xdg = ("XDG_CONFIG_HOME", "@xdg");
        let cases: [Case<'_>; 7] = [
            (
                &setting,
                Some("a.json"),
                &[variable],
                "start/a.json",
                ConfigSource::Flag,
            ),
            (
                &setting,
                None,
                &[variable],
                "start/b.json",
                ConfigSource::Variable,
            ),
            (
                &setting,
                None,
                &[("WORKBENCH_CONFIG", "")],
                HERE,
                ConfigSource::StartDirectory,
            ),
            (&setting, None, &[xdg], HERE, ConfigSource::StartDirectory),
            (&other, None, &[xdg], XDG, ConfigSource::UserDirectory),
            (
                &other,
                None,
                &[("XDG_CONFIG_HOME", "relative")],
                USER,
                ConfigSource::UserDirectory,
            ),
            (&other, None, &[], USER, ConfigSource::UserDirectory),
        ];
        for (setting, flag, variables, file, source) in cases {
            let file = setting.path(file);
            assert_eq!(
                setting.locate(flag, variables),
                Ok(Located { file, source })
            );
        }
    }

    #[test]
    fn a_missing_named_file_ends_the_search() {
        let setting = Setting::new(&[HERE, USER]);
        let file = setting.path("start/gone.json");
        assert_eq!(
            setting.locate(Some("gone.json"), &[]),
            Err(LocateError::FlagMissing { file: file.clone() })
        );
        assert_eq!(
            setting.locate(None, &[("WORKBENCH_CONFIG", "gone.json")]),
            Err(LocateError::VariableMissing { file })
        );
    }

    #[cfg(unix)]
    #[test]
    fn nothing_found_names_the_places_and_the_next_step() {
        let setting = Setting::new(&[]);
        let error = setting.locate(None, &[]).expect_err("there is no file");
        assert_eq!(
            error.to_string(),
            format!(
                "no configuration file found; looked for `{}` and `{}`",
                setting.path(HERE).display(),
                setting.path(USER).display()
            )
        );
        assert!(error.remedy().contains("--config"));
        assert!(error.remedy().contains("mcp-workbench init"));
        assert!(error.remedy().contains("mcp-workbench demo"));
    }

    #[test]
    fn every_configuration_has_a_lock_file_of_its_own() {
        let cases: [(&[&str], &str, &str); 6] = [
            (&[], "workbench-config.json", "workbench.lock"),
            (&[], "team.json", "team.workbench.lock"),
            (&[], "team.jsonc", "team.jsonc.workbench.lock"),
            // The lock file of an earlier version stays that of the configuration that it belongs to.
            (&["workbench.lock"], "team.json", "workbench.lock"),
            (
                &["workbench.lock", "team.workbench.lock"],
                "team.json",
                "team.workbench.lock",
            ),
            (
                &["workbench.lock", "workbench-config.json"],
                "team.json",
                "team.workbench.lock",
            ),
        ];
        for (files, config, expected) in cases {
            let setting = Setting::new(files);
            let found = lock_file(&setting.path(config));
            assert_eq!(found, Some(setting.path(expected)), "{files:?} {config}");
        }
    }
}
