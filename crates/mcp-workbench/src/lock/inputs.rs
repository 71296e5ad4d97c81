//! The inputs of a program besides its own file: the files among its arguments, its `envFile`, and the variables that
//! point to code. Only their digests are stored. Variables inherited from the environment of the workbench are not
//! inputs, because they differ between machines and terminals.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    canonical::Digest,
    program_files::has_variable,
    programs::{Programs, ReusableDigests},
};
use crate::{
    config::{Server, StdioLaunch, Transport},
    server_cache::is_program,
};

/// Variables by which dynamic linkers, interpreters, shells and installers of packages find code. The home directory is
/// one: it has packages of Python, and the configuration of npm, pip and git.
const LOADERS: &[&str] = &[
    "APPDATA",
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "CLASSPATH",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_ROOT",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GLIBC_TUNABLES",
    "HOME",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_DEPOT_PATH",
    "JULIA_LOAD_PATH",
    "LOCALAPPDATA",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PATH",
    "PATHEXT",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "RUBYLIB",
    "RUBYOPT",
    "R_LIBS",
    "R_PROFILE",
    "SHELL",
    "USERPROFILE",
    "VIRTUAL_ENV",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Prefixes of the names of such variables.
const LOADER_BEGINNINGS: &[&str] = &[
    "BASH_FUNC_",
    "BUN_",
    "CORECLR_",
    "COREPACK_",
    "COR_",
    "DENO_",
    "DYLD_",
    "GIT_CONFIG",
    "LD_",
    "NPM_CONFIG_",
    "PIP_",
    "PYTHON",
    "UV_",
    "XDG_",
    "YARN_",
];

/// An input that is read for its digest.
enum Source<'a> {
    File(PathBuf),
    Value(&'a str),
}

/// Returns the digests of the inputs of a program by name, or `None` for a remote server.
pub(super) fn digests(
    server: &Server,
    programs: &Programs,
    reusable: ReusableDigests,
) -> Option<BTreeMap<String, Digest>> {
    let digests = sources(server)?.filter_map(|(name, source)| {
        let digest = match source {
            Source::File(file) => programs.digest(&file, reusable)?,
            Source::Value(value) => Digest::of(value.as_bytes()),
        };
        Some((name, digest))
    });
    Some(digests.collect())
}

/// Returns the files among the inputs.
pub(super) fn files(server: &Server) -> impl Iterator<Item = PathBuf> {
    let sources = sources(server).into_iter().flatten();
    sources.filter_map(|(_, source)| match source {
        Source::File(file) => Some(file),
        Source::Value(_) => None,
    })
}

fn sources(server: &Server) -> Option<impl Iterator<Item = (String, Source<'_>)>> {
    let Transport::Stdio(launch) = &server.transport else {
        return None;
    };
    let variables = launch
        .env_as_written
        .iter()
        // Other variables are settings, which users change; these decide which code runs.
        .filter(|(name, _)| is_loader(name))
        .map(|(name, value)| (format!("env {name}"), Source::Value(value)));
    let env_file = server
        .written
        .env_file
        .as_deref()
        .filter(|written| !has_variable(written))
        .zip(launch.environment.file.as_ref())
        .map(|(name, file)| {
            // The content counts, because a variable in the file can decide which code runs.
            let file = Source::File(launch.cwd.join(file));
            (format!("envFile {name}"), file)
        });
    Some(arguments(server, launch).chain(env_file).chain(variables))
}

/// Returns the arguments that may be files, with their paths. Arguments with a variable name a different file on the
/// next machine, and program files are compared as `files`; both are left out.
fn arguments<'a>(
    server: &'a Server,
    launch: &'a StdioLaunch,
) -> impl Iterator<Item = (String, Source<'a>)> {
    let arguments = server
        .written
        .args
        .iter()
        .zip(&launch.args_as_written)
        .zip(&launch.args);
    let files = arguments.filter(|((_, written), argument)| {
        !has_variable(written) && !is_program(Path::new(argument))
    });
    files.map(|((kept, _), argument)| {
        let file = launch.cwd.join(file_name(argument, &launch.cwd));
        (format!("arg {kept}"), Source::File(file))
    })
}

/// Returns the part of an argument that names a file: all of it, or the value of an option such as `--config=FILE`, also
/// as a `file://` address.
fn file_name<'a>(argument: &'a str, folder: &Path) -> &'a str {
    let name = match argument.split_once('=') {
        // The name of a file may contain a `=`.
        Some((_, value)) if !folder.join(argument).is_file() => value,
        _ => argument,
    };
    name.strip_prefix("file://").unwrap_or(name)
}

fn is_loader(name: &str) -> bool {
    let begins = |beginning: &&str| {
        // npm reads its variables in lower case too.
        let start = name.get(..beginning.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    };
    LOADERS.iter().any(|it| it.eq_ignore_ascii_case(name)) || LOADER_BEGINNINGS.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_variables_are_recognized() {
        for name in [
            "PATH",
            "Path",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "RUBYOPT",
            "PERL5OPT",
            "BASH_ENV",
            "npm_config_registry",
            "UV_INDEX_URL",
            "HOME",
            "XDG_CONFIG_HOME",
        ] {
            assert!(is_loader(name), "{name}");
        }
        for name in ["API_TOKEN", "LOG_LEVEL", "LANG", "P", "LD", "ÄÖ"] {
            assert!(!is_loader(name), "{name}");
        }
    }
}
