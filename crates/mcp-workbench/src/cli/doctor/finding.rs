//! Findings of `doctor`: data, severity, message and hint.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rawjson::RawJson;

use crate::{
    config::{LiteralPlace, MissingValue, Problem, Severity, Unset as UnsetValue},
    downstream::ConnectError,
    visible::visible,
};

use super::{
    cache_finding::CacheFinding,
    examine::has_tilde,
    program_search::what_to_install,
    remedy::{TILDE_REMEDY, remedy},
    tool_finding::ToolFinding,
};

/// The number of names in a sentence.
const MAX_LISTED_NAMES: usize = 5;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// Something does not work or is exposed.
    Wrong,
    /// Everything works, but this is worth knowing.
    Remark,
}

#[derive(Debug)]
pub(super) enum Finding {
    File(FileFinding),
    /// About the start of a server.
    Start(StartFinding),
    /// About the tools of servers that are up.
    Tools(ToolFinding),
    /// About the tool cache of servers that are started on use.
    Cache(CacheFinding),
}

/// A finding about the configuration file.
#[derive(Debug)]
pub(super) enum FileFinding {
    /// A problem that the loader reports.
    Problem(Problem),
    /// Everybody can read credentials in the file.
    Exposed { file: PathBuf, places: Vec<String> },
    /// A credential is part of a command line or a URL.
    LiteralSecret { place: LiteralPlace },
    /// Values of an entry begin with `~`.
    Tilde { places: Vec<String> },
    /// The `pin` of a server is lowered, and the lock file overrides it.
    PinLowered { server: String, words: String },
}

/// A finding about the start of a server.
#[derive(Debug)]
pub(super) enum StartFinding {
    /// A variable is not set, or a file does not exist.
    Unset(UnsetValue),
    /// The program is not on the server's PATH.
    CommandNotFound {
        command: String,
        elsewhere: Vec<PathBuf>,
    },
    /// The server failed for another reason.
    NotUp {
        error: Arc<ConnectError>,
        /// Its command line or URL, to try it by hand.
        by_hand: String,
    },
    /// It wrote a line to stdout that is not a message.
    StrayText {
        text: String,
    },
    Slow {
        took: Duration,
    },
}

impl Finding {
    pub(super) fn level(&self) -> Level {
        let is_wrong = match self {
            Self::File(FileFinding::Problem(problem)) => problem.severity() == Severity::Error,
            Self::File(FileFinding::Exposed { .. }) => true,
            Self::File(
                FileFinding::LiteralSecret { .. }
                | FileFinding::Tilde { .. }
                | FileFinding::PinLowered { .. },
            )
            | Self::Tools(_)
            | Self::Cache(_) => false,
            Self::Start(finding) => !matches!(
                finding,
                StartFinding::Slow { .. } | StartFinding::StrayText { .. }
            ),
        };
        if is_wrong {
            Level::Wrong
        } else {
            Level::Remark
        }
    }

    /// Returns the stable code for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::File(FileFinding::Problem(_)) => "configuration",
            Self::File(FileFinding::Exposed { .. }) => "file_exposed",
            Self::File(FileFinding::LiteralSecret { .. }) => "literal_secret",
            Self::File(FileFinding::Tilde { .. }) => "tilde_not_expanded",
            Self::File(FileFinding::PinLowered { .. }) => "pin_lowered",
            Self::Start(StartFinding::Unset(_)) => "variable_not_set",
            Self::Start(StartFinding::CommandNotFound { .. }) => "command_not_found",
            Self::Start(StartFinding::NotUp { error, .. }) => error.code(),
            Self::Start(StartFinding::StrayText { .. }) => "stdout_not_mcp",
            Self::Start(StartFinding::Slow { .. }) => "slow_start",
            Self::Tools(finding) => finding.code(),
            Self::Cache(finding) => finding.code(),
        }
    }

    pub(super) fn stderr(&self) -> &[String] {
        match self {
            Self::Start(StartFinding::NotUp { error, .. }) => error.stderr(),
            _ => &[],
        }
    }

    pub(super) fn remedy(&self) -> String {
        match self {
            Self::File(finding) => finding.remedy(),
            Self::Start(finding) => finding.remedy(),
            Self::Tools(finding) => finding.remedy().to_owned(),
            Self::Cache(finding) => finding.remedy(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(finding) => finding.fmt(f),
            Self::Start(finding) => finding.fmt(f),
            Self::Tools(finding) => finding.fmt(f),
            Self::Cache(finding) => finding.fmt(f),
        }
    }
}

impl FileFinding {
    fn remedy(&self) -> String {
        match self {
            Self::Problem(problem) => problem.remedy(),
            Self::Exposed { file, .. } => format!(
                "chmod 600 {}, or use variables: \"${{NAME}}\"",
                file.display()
            ),
            Self::LiteralSecret {
                place: LiteralPlace::Argument(_),
            } => "everybody on this machine can see it while the server runs; use \"env\", and a \
                  variable: \"${NAME}\""
                .to_owned(),
            Self::LiteralSecret { .. } => "use a variable: \"${NAME}\"".to_owned(),
            Self::Tilde { .. } => TILDE_REMEDY.to_owned(),
            Self::PinLowered { .. } => {
                "if this was not intended, check who edited the configuration and restore \
                                        \"pin\": \"enforce\""
                    .to_owned()
            }
        }
    }
}

impl fmt::Display for FileFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(problem) => {
                let place = &problem.place;
                write!(f, "line {}, column {}: ", place.line, place.column)?;
                if !place.path.is_empty() {
                    write!(f, "{}: ", visible(&place.path))?;
                }
                write!(f, "{}", problem.fault)
            }
            Self::Exposed { file, places } => write!(
                f,
                "everybody on this machine can read {}, which contains credentials ({})",
                file.display(),
                listed(places)
            ),
            Self::LiteralSecret { place } => {
                let place = place.to_string();
                write!(
                    f,
                    "{} contains what looks like a credential",
                    visible(&place)
                )
            }
            Self::Tilde { places } => write!(
                f,
                "`~` is not expanded in {}: only shells do that",
                listed(places)
            ),
            Self::PinLowered { server, words } => write!(f, "{}: {words}", visible(server)),
        }
    }
}

impl StartFinding {
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Unset(unset) => match &unset.value {
                MissingValue::Variable(name) => format!(
                    "set {name} where the workbench is started, or give it a default: ${{{name}:-…}}"
                ),
                value @ (MissingValue::File { .. } | MissingValue::Keyring { .. }) => {
                    value.remedy()
                }
            },
            Self::CommandNotFound { command, .. } if has_tilde(Path::new(command)) => {
                TILDE_REMEDY.to_owned()
            }
            Self::CommandNotFound { command, .. } if command.contains(char::is_whitespace) => {
                split_remedy(command)
            }
            Self::CommandNotFound { command, elsewhere } => match elsewhere.first() {
                Some(place) => format!(
                    "write its full path as \"command\": \"{}\", or add its folder to the PATH that \
                     the server gets",
                    visible(&place.display().to_string())
                ),
                None => what_to_install(command)
                    .unwrap_or("install it, or write its full path as \"command\"")
                    .to_owned(),
            },
            Self::NotUp { error, by_hand } => remedy(error, by_hand),
            Self::StrayText { .. } => "stdout must contain only messages, and some clients fail otherwise: check that \
                                       \"args\" start it as an MCP server over stdio and that it logs to stderr"
                .to_owned(),
            Self::Slow { .. } => {
                "nothing needs to be done; an installed program starts faster \
                                  than one that npx or uvx fetches"
                    .to_owned()
            }
        }
    }
}

impl fmt::Display for StartFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(unset) => write!(f, "{unset}"),
            Self::CommandNotFound { command, elsewhere } => {
                write!(f, "command '{}' not found", visible(command))?;
                let places: Vec<String> = elsewhere
                    .iter()
                    .map(|it| it.display().to_string())
                    .collect();
                if places.is_empty() {
                    f.write_str(", neither on the PATH of the server nor in the usual places")
                } else {
                    write!(
                        f,
                        " on the PATH of the server; it is at {}",
                        listed(&places)
                    )
                }
            }
            Self::NotUp { error, .. } => f.write_str(&first_part(error)),
            Self::StrayText { text } => {
                write!(
                    f,
                    "it wrote text to stdout that is not MCP: {}",
                    visible(text)
                )
            }
            Self::Slow { took } => write!(f, "its start took {:.1} s", took.as_secs_f64()),
        }
    }
}

/// Returns the hint for a `command` that has a whole command line.
fn split_remedy(command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = RawJson::of(&words.next().unwrap_or_default());
    let words: Vec<&str> = words.collect();
    // The meaning of quotes depends on the shell, so the user has to split the words.
    let args = if command.contains(['"', '\'']) {
        "[…]".to_owned()
    } else {
        RawJson::of(&words).as_str().replace("\",\"", "\", \"")
    };
    let program = program.as_str();
    format!("\"command\" is the program alone; write \"command\": {program}, \"args\": {args}")
}

/// Returns the message of an error without the lines of stderr, which are shown below it.
fn first_part(error: &ConnectError) -> String {
    let words = error.to_string();
    match words.split_once("; stderr: ") {
        Some((before, _)) => before.to_owned(),
        None => words,
    }
}

pub(super) fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names
        .iter()
        .take(MAX_LISTED_NAMES)
        .map(|name| visible(name))
        .collect();
    let mut text = shown.join(", ");
    if names.len() > MAX_LISTED_NAMES {
        text.push_str(&format!(" and {} more", names.len() - MAX_LISTED_NAMES));
    }
    text
}
