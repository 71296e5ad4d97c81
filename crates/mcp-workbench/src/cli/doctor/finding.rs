//! What a doctor finds: data, how bad it is, and the words for it with what to do.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    config::{LiteralPlace, Problem, Severity, UnsetVariable},
    downstream::ConnectError,
    visible::visible,
};

use super::{remedy::remedy, whereabouts::what_to_install};

/// How many names a sentence lists.
const LISTED: usize = 5;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// Something does not work, or is open to others.
    Wrong,
    /// Everything works, but somebody may want to know.
    Remark,
}

/// Something that was found.
#[derive(Debug)]
pub(super) enum Finding {
    /// The configuration file has something to say.
    Configuration(Problem),
    /// Everybody can read credentials in the configuration file.
    ExposedFile { file: PathBuf, places: Vec<String> },
    /// A variable is not set.
    Unset(UnsetVariable),
    /// The program of a server is not on its PATH.
    CommandNotFound {
        command: String,
        elsewhere: Vec<PathBuf>,
    },
    /// A server is not up for another reason.
    NotUp {
        error: Arc<ConnectError>,
        /// How it is started by hand, or its address.
        by_hand: String,
    },
    /// A server took long to start.
    SlowStart { took: Duration },
    /// A server has no tools.
    NoTools { left_after_filters: bool },
    /// A tool is not offered.
    Withheld { tool: String, reason: String },
    /// Something about the list of tools.
    Notice(String),
    /// Names that are too long for clients.
    LongNames {
        tools: Vec<String>,
        clients: Vec<&'static str>,
        shown_as_they_are: bool,
    },
    /// Names with characters that clients refuse.
    RefusedNames {
        tools: Vec<String>,
        clients: Vec<&'static str>,
    },
    /// More tools than clients show.
    TooManyTools {
        count: usize,
        clients: Vec<(&'static str, usize)>,
    },
    /// Servers of one toolbox have tools of the same name.
    DoubledTool { tool: String, servers: Vec<String> },
    /// A credential is part of a command line or an address.
    LiteralSecret { place: LiteralPlace },
}

impl Finding {
    /// How bad it is.
    pub(super) fn level(&self) -> Level {
        match self {
            Self::Configuration(problem) if problem.severity() == Severity::Error => Level::Wrong,
            Self::ExposedFile { .. }
            | Self::Unset(_)
            | Self::CommandNotFound { .. }
            | Self::NotUp { .. } => Level::Wrong,
            _ => Level::Remark,
        }
    }

    /// The stable word for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Configuration(_) => "configuration",
            Self::ExposedFile { .. } => "file_exposed",
            Self::Unset(_) => "variable_not_set",
            Self::CommandNotFound { .. } => "command_not_found",
            Self::NotUp { error, .. } => error.code(),
            Self::SlowStart { .. } => "slow_start",
            Self::NoTools { .. } => "no_tools",
            Self::Withheld { .. } => "tool_withheld",
            Self::Notice(_) => "notice",
            Self::LongNames { .. } => "name_too_long",
            Self::RefusedNames { .. } => "name_refused",
            Self::TooManyTools { .. } => "too_many_tools",
            Self::DoubledTool { .. } => "duplicate_tool",
            Self::LiteralSecret { .. } => "literal_secret",
        }
    }

    /// The last lines of a server's stderr.
    pub(super) fn stderr(&self) -> &[String] {
        match self {
            Self::NotUp { error, .. } => error.stderr(),
            _ => &[],
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Configuration(problem) => problem.remedy(),
            Self::ExposedFile { file, .. } => format!(
                "chmod 600 {}, or take the values from variables: \"${{NAME}}\"",
                file.display()
            ),
            Self::Unset(unset) => {
                let name = &unset.variable;
                format!(
                    "set {name} where the workbench is started, or give it a default: ${{{name}:-…}}"
                )
            }
            Self::CommandNotFound { command, elsewhere } => match elsewhere.first() {
                Some(place) => format!(
                    "write its whole path as \"command\": \"{}\", or start the workbench with its \
                     folder on PATH",
                    visible(&place.display().to_string())
                ),
                None => what_to_install(command)
                    .unwrap_or("install it, or write its whole path as \"command\"")
                    .to_owned(),
            },
            Self::NotUp { error, by_hand } => remedy(error, by_hand),
            Self::SlowStart { .. } => "nothing has to be done; a program that is installed starts \
                                       faster than one that npx or uvx fetches"
                .to_owned(),
            Self::NoTools {
                left_after_filters: false,
            } => "check what its \"toolFilters\" leave".to_owned(),
            Self::NoTools { .. } => {
                "it may have prompts or resources only; native mode shows them".to_owned()
            }
            Self::Withheld { .. } | Self::Notice(_) => "tell whoever makes the server".to_owned(),
            Self::LongNames {
                shown_as_they_are: true,
                ..
            }
            | Self::RefusedNames { .. } => {
                "use \"toolMode\": \"proxy\", in which names are no names of the client".to_owned()
            }
            Self::LongNames { .. } => {
                "nothing has to be done: use_tool takes any name; native mode would not".to_owned()
            }
            Self::TooManyTools { .. } => {
                "take tools out with \"toolFilters\", or use \"toolMode\": \"proxy\"".to_owned()
            }
            Self::DoubledTool { .. } => "nothing has to be done: they are told apart by their \
                                         server; \"toolFilters\" can take one out"
                .to_owned(),
            Self::LiteralSecret { place } => match place {
                LiteralPlace::Argument(_) => {
                    "everybody on this machine can see it while the server \
                                              runs; use \"env\", and a variable: \"${NAME}\""
                        .to_owned()
                }
                _ => "take it from a variable: \"${NAME}\"".to_owned(),
            },
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(problem) => {
                let place = &problem.place;
                write!(f, "line {}, column {}: ", place.line, place.column)?;
                if !place.path.is_empty() {
                    write!(f, "{}: ", visible(&place.path))?;
                }
                write!(f, "{}", problem.fault)
            }
            Self::ExposedFile { file, places } => write!(
                f,
                "everybody on this machine can read {}, which holds credentials ({})",
                file.display(),
                listed(places)
            ),
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
            Self::NotUp { error, .. } => write!(f, "{}", first_part(error)),
            Self::SlowStart { took } => {
                write!(f, "its start took {:.1} s", took.as_secs_f64())
            }
            Self::NoTools { .. } => f.write_str("it offers no tools"),
            Self::Withheld { tool, reason } => {
                write!(
                    f,
                    "tool '{}' is not offered: {}",
                    visible(tool),
                    visible(reason)
                )
            }
            Self::Notice(notice) => write!(f, "{}", visible(notice)),
            Self::LongNames { tools, clients, .. } => {
                write!(
                    f,
                    "too long a name for {}: {}",
                    clients.join(", "),
                    listed(tools)
                )
            }
            Self::RefusedNames { tools, clients } => write!(
                f,
                "a name with characters that are not taken by {}: {}",
                clients.join(", "),
                listed(tools)
            ),
            Self::TooManyTools { count, clients } => {
                let clients: Vec<String> = clients
                    .iter()
                    .map(|(client, most)| format!("{client} ({most})"))
                    .collect();
                write!(
                    f,
                    "{count} tools are more than are shown by {}",
                    clients.join(", ")
                )
            }
            Self::DoubledTool { tool, servers } => {
                write!(
                    f,
                    "tool '{}' is in several servers: {}",
                    visible(tool),
                    listed(servers)
                )
            }
            Self::LiteralSecret { place } => {
                write!(
                    f,
                    "{} holds what looks like a credential",
                    visible(&place.to_string())
                )
            }
        }
    }
}

/// The words for an error without the lines of stderr, which are shown below it.
fn first_part(error: &ConnectError) -> String {
    let words = error.to_string();
    match words.split_once("; stderr: ") {
        Some((before, _)) => before.to_owned(),
        None => words,
    }
}

/// Some of the names.
fn listed(names: &[String]) -> String {
    let shown: Vec<_> = names
        .iter()
        .take(LISTED)
        .map(|name| visible(name))
        .collect();
    let mut text = shown.join(", ");
    if names.len() > LISTED {
        text.push_str(&format!(" and {} more", names.len() - LISTED));
    }
    text
}
