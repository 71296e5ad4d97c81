//! Locates the files of a client on this machine.

use std::path::{Path, PathBuf};

use super::client::{Base, Client, ClientFile, Scope, System};
use crate::config::Environment;

/// A file path that a client reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPath {
    pub path: PathBuf,
    pub scope: Scope,
}

/// Returns the files that a client would read on a system, existing or not.
pub fn client_paths(client: &Client, system: System, environment: &Environment) -> Vec<ClientPath> {
    let files = client
        .files
        .iter()
        .filter(|file| file.systems.contains(&system));
    let paths = files.filter_map(|file| {
        Some(ClientPath {
            path: base(file, system, environment)?.join(file.path),
            scope: file.scope,
        })
    });
    paths.collect()
}

/// Returns the folder that the path of a file is relative to, if this user has one.
fn base(file: &ClientFile, system: System, environment: &Environment) -> Option<PathBuf> {
    let home = || environment.home().map(Path::to_owned);
    match file.base {
        Base::Home => home(),
        Base::Variable { name, otherwise } => {
            folder_of(name, environment).or_else(|| Some(home()?.join(otherwise)))
        }
        Base::Config => config_folder(environment),
        Base::AppData => match system {
            System::Linux => config_folder(environment),
            System::MacOs => Some(home()?.join("Library/Application Support")),
            System::Windows => {
                folder_of("APPDATA", environment).or_else(|| Some(home()?.join("AppData/Roaming")))
            }
        },
        Base::Project => Some(environment.start_directory().to_owned()),
    }
}

fn config_folder(environment: &Environment) -> Option<PathBuf> {
    folder_of("XDG_CONFIG_HOME", environment).or_else(|| Some(environment.home()?.join(".config")))
}

/// Returns the folder that a variable names. A relative path is ignored.
fn folder_of(variable: &str, environment: &Environment) -> Option<PathBuf> {
    let folder = PathBuf::from(environment.variable(variable)?);
    folder.is_absolute().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientName, client};

    fn first(name: ClientName, system: System, variables: &[(&str, &str)]) -> String {
        let variables = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::new(variables, "/project".into(), Some("/home/me".into()));
        let paths = client_paths(client(name), system, &environment);
        paths[0].path.to_str().unwrap().to_owned()
    }

    /// A client, a system, variables, and its first file.
    type Case = (
        ClientName,
        System,
        &'static [(&'static str, &'static str)],
        &'static str,
    );

    #[test]
    fn files_are_found_on_each_system() {
        use ClientName::{ClaudeCode, ClaudeDesktop, Codex, Cursor, Goose, VsCode, Zed};
        use System::{Linux, MacOs, Windows};
        let cases: &[Case] = &[
            (
                ClaudeDesktop,
                Linux,
                &[],
                "/home/me/.config/Claude/claude_desktop_config.json",
            ),
            (
                ClaudeDesktop,
                MacOs,
                &[],
                "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (
                ClaudeDesktop,
                Windows,
                &[("APPDATA", "/roaming")],
                "/roaming/Claude/claude_desktop_config.json",
            ),
            (ClaudeCode, Linux, &[], "/home/me/.claude.json"),
            (
                ClaudeCode,
                Linux,
                &[("CLAUDE_CONFIG_DIR", "/c")],
                "/c/.claude.json",
            ),
            (
                Cursor,
                Windows,
                &[("APPDATA", "/roaming")],
                "/home/me/.cursor/mcp.json",
            ),
            (
                VsCode,
                Linux,
                &[("XDG_CONFIG_HOME", "/x")],
                "/x/Code/User/mcp.json",
            ),
            (
                VsCode,
                Linux,
                &[("XDG_CONFIG_HOME", "x")],
                "/home/me/.config/Code/User/mcp.json",
            ),
            (Zed, MacOs, &[], "/home/me/.config/zed/settings.json"),
            (
                Zed,
                Windows,
                &[("APPDATA", "/roaming")],
                "/roaming/Zed/settings.json",
            ),
            (
                Goose,
                Windows,
                &[],
                "/home/me/AppData/Roaming/Block/goose/config/config.yaml",
            ),
            (
                Codex,
                Linux,
                &[("CODEX_HOME", "/codex")],
                "/codex/config.toml",
            ),
        ];
        for (name, system, variables, expected) in cases {
            assert_eq!(
                first(*name, *system, variables),
                *expected,
                "{name:?} {system:?}"
            );
        }
    }

    #[test]
    fn without_a_home_directory_only_project_files_are_found() {
        let environment = Environment::new([], "/project".into(), None);
        let paths = client_paths(client(ClientName::Cursor), System::Linux, &environment);
        let project = ClientPath {
            path: "/project/.cursor/mcp.json".into(),
            scope: Scope::Project,
        };
        assert_eq!(paths, [project]);
    }
}
