//! The process environment that the configuration depends on: variables, the start directory and the home directory,
//! as one snapshot. Everything else in this module is a function of this snapshot and the file.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

/// A snapshot of the process environment.
#[derive(Clone)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    start_directory: PathBuf,
    home: Option<PathBuf>,
}

impl Environment {
    /// Takes a snapshot of this process. If the start directory has been deleted, it is `.`.
    pub fn of_process() -> Self {
        Self::new(
            std::env::vars_os(),
            std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
        )
    }

    /// Creates an environment from plain values. A variable whose value is a reference to itself is left out: MCP
    /// clients pass on `${TOKEN}` as the value of `TOKEN` if it is not set.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        start_directory: PathBuf,
        home: Option<PathBuf>,
    ) -> Self {
        Self {
            variables: variables
                .into_iter()
                .filter(|(name, value)| !is_own_reference(name, value))
                .collect(),
            start_directory,
            home,
        }
    }

    /// Returns the value of a variable. A set but empty variable has a value.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .iter()
            .find(|(known, _)| same_variable(known, name))
            .map(|(_, value)| value.as_os_str())
    }

    /// Returns all variables, in the order of the process.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the directory in which the workbench was started.
    pub fn start_directory(&self) -> &Path {
        &self.start_directory
    }

    /// Returns the home directory of the user.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the system's directory for files that can be recreated.
    pub fn cache_directory(&self) -> Option<PathBuf> {
        let set = |name: &str| self.variable(name).map(PathBuf::from);
        let base = if cfg!(windows) {
            set("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            self.home.as_ref().map(|home| home.join("Library/Caches"))
        } else {
            set("XDG_CACHE_HOME")
                // Relative paths in these variables are to be ignored (XDG Base Directory Specification).
                .filter(|folder| folder.is_absolute())
                .or_else(|| self.home.as_ref().map(|home| home.join(".cache")))
        };
        let base = base.filter(|folder| folder.is_absolute());
        base.map(|folder| folder.join("mcp-workbench"))
    }

    /// Returns the system's directory for files that cannot be recreated and are useful on this machine only.
    pub fn state_directory(&self) -> Option<PathBuf> {
        let set = |name: &str| self.variable(name).map(PathBuf::from);
        let base = if cfg!(windows) {
            set("LOCALAPPDATA")
        } else {
            set("XDG_STATE_HOME")
                .filter(|folder| folder.is_absolute())
                .or_else(|| self.home.as_ref().map(|home| home.join(".local/state")))
        };
        let base = base.filter(|folder| folder.is_absolute());
        base.map(|folder| folder.join("mcp-workbench"))
    }

    /// Returns the path, resolved against the start directory.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        clean(&self.start_directory.join(path))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.len())
            .field("start_directory", &self.start_directory)
            .field("home", &self.home)
            .finish()
    }
}

/// Returns a path without `.` segments and duplicate separators.
pub(super) fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Returns whether the value of a variable is only a reference to the variable, in the syntax of any client.
fn is_own_reference(name: &OsStr, value: &OsStr) -> bool {
    const SYNTAXES: [(&str, &str); 5] = [
        ("${", "}"),
        ("${env:", "}"),
        ("$", ""),
        ("{env:", "}"),
        ("${{ secrets.", " }}"),
    ];
    let (name, value) = (name.as_encoded_bytes(), value.as_encoded_bytes());
    let is_inside = |(before, after): &(&str, &str)| {
        let rest = value.strip_prefix(before.as_bytes());
        rest.and_then(|rest| rest.strip_suffix(after.as_bytes())) == Some(name)
    };
    SYNTAXES.iter().any(is_inside)
}

/// Returns whether two names mean one variable. Windows ignores case.
pub(super) fn same_variable(known: &OsStr, name: &str) -> bool {
    if cfg!(windows) {
        known.eq_ignore_ascii_case(name)
    } else {
        known == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_but_empty_is_a_value() {
        let variables = [("EMPTY".into(), "".into())];
        let environment = Environment::new(variables, "/start".into(), None);
        assert_eq!(environment.variable("EMPTY"), Some(OsStr::new("")));
        assert_eq!(environment.variable("OTHER"), None);
    }

    #[test]
    fn a_variable_that_refers_to_itself_is_unset() {
        let cases = [
            ("${T}", None),
            ("${env:T}", None),
            ("$T", None),
            ("{env:T}", None),
            ("${{ secrets.T }}", None),
            ("${U}", Some("${U}")),
            ("${T}x", Some("${T}x")),
            ("x${T}", Some("x${T}")),
            ("${T:-x}", Some("${T:-x}")),
            ("T", Some("T")),
            ("$", Some("$")),
        ];
        for (value, expected) in cases {
            let variables = [("T".into(), value.into())];
            let environment = Environment::new(variables, "/start".into(), None);
            assert_eq!(
                environment.variable("T"),
                expected.map(OsStr::new),
                "{value}"
            );
            let passed_on = environment.variables().count();
            assert_eq!(passed_on, usize::from(expected.is_some()), "{value}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_start_directory() {
        let environment = Environment::new([], "/start".into(), None);
        let cases = [
            ("a.json", "/start/a.json"),
            ("./x/./a.json", "/start/x/a.json"),
            ("../a.json", "/start/../a.json"),
            ("/abs/a.json", "/abs/a.json"),
        ];
        for (path, expected) in cases {
            assert_eq!(environment.absolute(Path::new(path)), Path::new(expected));
        }
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn the_cache_is_in_the_cache_directory_of_the_system() {
        let cache = |value: Option<&str>, home: Option<&str>| {
            let variables = value.map(|value| ("XDG_CACHE_HOME".into(), value.into()));
            let environment = Environment::new(variables, "/start".into(), home.map(PathBuf::from));
            environment.cache_directory()
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(cache(Some("/c"), Some("/h")), at("/c/mcp-workbench"));
        assert_eq!(cache(Some("c"), Some("/h")), at("/h/.cache/mcp-workbench"));
        assert_eq!(cache(None, Some("/h")), at("/h/.cache/mcp-workbench"));
        assert_eq!(cache(Some(""), None), None);
    }

    #[test]
    fn values_are_not_shown() {
        let variables = [("TOKEN".into(), "hunter2-hunter2".into())];
        let environment = Environment::new(variables, "/start".into(), None);
        assert!(!format!("{environment:?}").contains("hunter2"));
    }

    #[test]
    fn the_environment_of_the_process_is_read() {
        let environment = Environment::of_process();
        assert!(environment.variables().count() > 0);
        assert!(environment.start_directory().is_absolute());
    }
}
