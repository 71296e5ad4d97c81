//! Locates programs that are not on the PATH. A workbench that is started from a desktop has a shorter PATH than
//! a shell, and version managers install programs into folders that only shells know.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::{config::Environment, program_lookup::find_program};

/// Folders in the home directory; `*` matches one folder.
const IN_HOME: &[&str] = &[
    ".local/bin",
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".fnm/node-versions/*/installation/bin",
    ".nodenv/shims",
    ".pyenv/shims",
    ".rbenv/shims",
    ".local/share/pnpm",
    "Library/pnpm",
    ".npm-global/bin",
    ".yarn/bin",
    "go/bin",
    ".dotnet/tools",
    ".nix-profile/bin",
    ".orbstack/bin",
    ".docker/bin",
    ".rd/bin",
    "bin",
    "AppData/Roaming/npm",
    "scoop/shims",
];

const IN_SYSTEM: &[&str] = &[
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/opt/local/bin",
    "/usr/bin",
    "/bin",
    "/snap/bin",
    "/run/current-system/sw/bin",
    "/Applications/Docker.app/Contents/Resources/bin",
    "C:/Program Files/nodejs",
    "C:/Program Files/Docker/Docker/resources/bin",
];

/// Returns the paths of a program outside of its server's PATH; the newest version of each manager first.
pub(super) fn elsewhere(command: &str, environment: &Environment) -> Vec<PathBuf> {
    // A path is not looked up in PATH, so there is nowhere else to search.
    if Path::new(command).components().count() != 1 {
        return Vec::new();
    }
    // Our own PATH counts too: the entry of the server may set a shorter one.
    let own = environment.variable("PATH").map(OsString::from);
    let own = own.iter().flat_map(std::env::split_paths);
    let home = environment.home().into_iter();
    let in_home = home.flat_map(|home| IN_HOME.iter().flat_map(|place| expanded(home, place)));
    let in_system = IN_SYSTEM.iter().map(PathBuf::from);
    let mut found = Vec::new();
    for folder in own.chain(in_home).chain(in_system) {
        let program = find_program(command, Some(folder.as_os_str()));
        if let Some(program) = program.filter(|program| !found.contains(program)) {
            found.push(program);
        }
    }
    found
}

/// Expands a path with at most one `*`.
fn expanded(home: &Path, place: &str) -> Vec<PathBuf> {
    let Some((before, after)) = place.split_once("/*/") else {
        return vec![home.join(place)];
    };
    let Ok(entries) = fs::read_dir(home.join(before)) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    // The newest version is the one that a user most likely wants.
    folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    folders.iter().map(|folder| folder.join(after)).collect()
}

/// Returns the numbers in a folder name, so that `v22` sorts after `v9`.
fn version(folder: &Path) -> Vec<u64> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let numbers = name.split(|it: char| !it.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Returns what to install for a well-known program.
pub(super) fn what_to_install(command: &str) -> Option<&'static str> {
    let name = command.strip_suffix(".cmd").unwrap_or(command);
    Some(match name {
        "npx" | "npm" | "node" => "install Node.js, which includes it",
        "uvx" | "uv" => "install uv: https://docs.astral.sh/uv",
        "bunx" | "bun" => "install Bun: https://bun.sh",
        "deno" => "install Deno: https://deno.com",
        "docker" => "install Docker, or start it",
        "python" | "python3" | "pipx" => "install Python",
        "dnx" | "dotnet" => "install the .NET SDK",
        "go" => "install Go",
        "java" => "install a Java runtime",
        _ => return None,
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_of_version_managers_are_found_the_newest_first() {
        let home = tempfile::tempdir().unwrap();
        let place = |path: &str| home.path().join(path);
        let files = [
            (".nvm/versions/node/v9.1.0/bin/npx", 0o755),
            (".nvm/versions/node/v22.3.0/bin/npx", 0o755),
            (".local/bin/npx", 0o644),
            ("mine/npx", 0o755),
        ];
        for (path, mode) in files {
            fs::create_dir_all(place(path).parent().unwrap()).unwrap();
            fs::write(place(path), "").unwrap();
            fs::set_permissions(place(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = ("PATH".into(), place("mine").into());
        let environment = Environment::new([path], "/".into(), Some(home.path().to_owned()));
        let found = elsewhere("npx", &environment);
        let found: Vec<_> = found
            .iter()
            .filter(|it| it.starts_with(home.path()))
            .collect();
        assert_eq!(
            found,
            [
                &place("mine/npx"),
                &place(".nvm/versions/node/v22.3.0/bin/npx"),
                &place(".nvm/versions/node/v9.1.0/bin/npx"),
            ]
        );
        assert_eq!(elsewhere("./npx", &environment), Vec::<PathBuf>::new());
    }
}
