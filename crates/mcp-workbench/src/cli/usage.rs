//! Reports a wrong command line: clap's text, with better suggestions for misspelt commands.

use clap::{
    Command, CommandFactory,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Arguments, PROGRAM};
use crate::near::nearest;

/// Words that people try although they are not commands, and the commands or options to use instead.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["version"], &["--version"]),
    (&["validate", "verify", "lint"], &["check"]),
    (
        &["status", "ps", "health", "servers"],
        &["list", "doctor", "auth status"],
    ),
    (&["start"], &["serve"]),
    (&["test"], &["doctor"]),
    (&["tools"], &["list --tools"]),
    (&["setup"], &["init"]),
    (&["uninstall"], &["install --client CLIENT --undo"]),
];

/// Replaces clap's suggestion for a misspelt command, which is often far off, by our own.
pub(super) fn with_suggestion(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let word = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.clone(),
        _ => return error,
    };
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    if let Some(tip) = suggestion(&word) {
        let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

fn suggestion(word: &str) -> Option<String> {
    let other = SYNONYMS.iter().find(|(words, _)| words.contains(&word));
    if let Some((_, commands)) = other {
        let commands: Vec<String> = commands
            .iter()
            .map(|it| format!("`{PROGRAM} {it}`"))
            .collect();
        return Some(format!("try {}", commands.join(", ")));
    }
    let program = Arguments::command();
    let known = program.get_subcommands().filter(|it| !it.is_hide_set());
    let near = nearest(word, known.map(Command::get_name))?;
    Some(format!("did you mean `{PROGRAM} {near}`?"))
}
