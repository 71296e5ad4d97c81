//! Opens an address in the user's browser: runs a program with the address as one argument, and never a shell.

use std::{
    ffi::{OsStr, OsString},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};
use url::Url;

use crate::config::Environment;

/// How long a program may take to fail. A program that still runs after that is taken for a browser.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(3);

/// A program and its arguments.
type CommandLine = Vec<OsString>;

/// Characters with a meaning for a shell that can be percent-encoded in an address. We run no shell, but the program
/// that opens a browser may be a careless script.
const SHELL_CHARACTERS: &[char] = &[
    '$', '`', '(', ')', '|', ';', '\'', '"', '\\', '!', '<', '>', '*',
];

/// Returns the address with such characters encoded, except `&` and `?`.
pub(super) fn shell_safe(address: &Url) -> String {
    let mut text = String::with_capacity(address.as_str().len());
    for character in address.as_str().chars() {
        if SHELL_CHARACTERS.contains(&character) {
            text.push_str(&format!("%{:02X}", u32::from(character)));
        } else {
            text.push(character);
        }
    }
    text
}

/// Opens an address. Returns false if no program can, or no user would see it.
pub(in crate::cli) async fn open(
    address: &str,
    environment: &Environment,
    has_terminal: bool,
) -> bool {
    for command in candidates(address, environment, has_terminal) {
        if starts(&command).await {
            return true;
        }
    }
    false
}

/// Returns true if a program starts and does not fail at once.
async fn starts(command: &[OsString]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Ctrl-C is meant for us, not for a browser with all its other pages.
    #[cfg(unix)]
    command.process_group(0);
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    // A launcher hands the address on and ends. A browser itself keeps running.
    match timeout(LAUNCH_TIMEOUT, child.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_) => true,
    }
}

/// Returns the command lines to try, in order.
fn candidates(address: &str, environment: &Environment, has_terminal: bool) -> Vec<CommandLine> {
    let set = |name: &str| environment.variable(name).filter(|it| !it.is_empty());
    if !cfg!(windows)
        && let Some(named) = set("BROWSER")
    {
        return of_variable(named, address);
    }
    // Without a terminal, a browser could open on the screen of a different user.
    if !has_terminal {
        return Vec::new();
    }
    let words: &[&str] = if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler"]
    } else if cfg!(target_os = "macos") {
        match set("SSH_CONNECTION") {
            Some(_) => return Vec::new(),
            None => &["open"],
        }
    } else {
        match set("DISPLAY").or(set("WAYLAND_DISPLAY")) {
            Some(_) => &["xdg-open"],
            None => return Vec::new(),
        }
    };
    let words = words.iter().chain(std::iter::once(&address));
    vec![words.map(OsString::from).collect()]
}

/// Returns the command lines of `$BROWSER`: several are separated by colons, and each has the address in place of `%s`
/// or at its end.
fn of_variable(named: &OsStr, address: &str) -> Vec<CommandLine> {
    // One path, whatever characters it has.
    if std::path::Path::new(named).is_file() {
        return vec![vec![named.to_owned(), address.into()]];
    }
    let Some(named) = named.to_str() else {
        return Vec::new();
    };
    let commands = named
        .split(':')
        .filter(|command| !command.trim().is_empty());
    let lines = commands.map(|command| {
        let has_place = command.contains("%s");
        let words = command
            .split_whitespace()
            .map(|word| word.replace("%s", address).into());
        let end = (!has_place).then(|| address.into());
        words.chain(end).collect()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Returns the command lines that are tried with these variables.
    fn tried(variables: &[(&str, &str)], has_terminal: bool) -> Vec<Vec<String>> {
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = Environment::new(variables, PathBuf::from("/"), None);
        let address = "https://x/?a=$(b)&c='d'";
        let lines = candidates(address, &environment, has_terminal);
        let text = |word: OsString| word.into_string().unwrap();
        let lines = lines.into_iter();
        lines
            .map(|line| line.into_iter().map(text).collect())
            .collect()
    }

    #[cfg(unix)]
    #[test]
    fn the_address_is_one_argument_of_what_the_variable_names() {
        const ADDRESS: &str = "https://x/?a=$(b)&c='d'";
        let cases: [(&str, &[&[&str]]); 5] = [
            ("firefox", &[&["firefox", ADDRESS]]),
            ("w3m -4", &[&["w3m", "-4", ADDRESS]]),
            (
                "a --new %s --end:b",
                &[&["a", "--new", ADDRESS, "--end"], &["b", ADDRESS]],
            ),
            ("a --url=%s", &[&["a", "--url=https://x/?a=$(b)&c='d'"]]),
            (" : ", &[]),
        ];
        for (value, lines) in cases {
            assert_eq!(tried(&[("BROWSER", value)], false), lines, "{value}");
        }
    }

    #[test]
    fn shell_characters_in_an_address_are_percent_encoded() {
        let address = Url::parse("https://x/a;b?c=$(d)`e`|'f'&g=h+i%20[1]#!*").unwrap();
        let expected = "https://x/a%3Bb?c=%24%28d%29%60e%60%7C%27f%27&g=h+i%20[1]#%21%2A";
        assert_eq!(shell_safe(&address), expected);
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn without_a_display_or_terminal_no_browser_is_started() {
        let none: Vec<Vec<String>> = Vec::new();
        assert_eq!(tried(&[], true), none);
        assert_eq!(tried(&[("DISPLAY", "")], true), none);
        assert_eq!(tried(&[("DISPLAY", ":0")], false), none);
        let opened = tried(&[("WAYLAND_DISPLAY", "w"), ("BROWSER", "")], true);
        assert_eq!(opened, [["xdg-open", "https://x/?a=$(b)&c='d'"]]);
    }
}
