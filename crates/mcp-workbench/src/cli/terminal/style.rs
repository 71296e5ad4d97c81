//! Text style: colour on terminals that support it, and the width of the terminal.

use std::{
    ffi::OsStr,
    io::{self, IsTerminal},
};

use crate::config::Environment;

/// The width if the terminal does not report one.
const DEFAULT_WIDTH: usize = 80;

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Ink {
    /// Success.
    Good,
    Bad,
    /// A warning.
    Notable,
    /// The most important text of a line.
    Strong,
    /// The least important text of a line.
    Faint,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Bad => "31",
            Self::Notable => "33",
            Self::Strong => "1",
            Self::Faint => "2",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct OutputStyle {
    colour: bool,
    /// The maximum width of a line; `None` on a pipe.
    width: Option<usize>,
}

impl OutputStyle {
    /// Output for a program.
    #[cfg(test)]
    pub(in crate::cli) const PLAIN: Self = Self {
        colour: false,
        width: None,
    };

    pub(in crate::cli) fn of_stdout(environment: &Environment) -> Self {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return Self {
                colour: false,
                width: None,
            };
        }
        Self {
            colour: has_colour(environment),
            width: Some(width_of(&stdout)),
        }
    }

    /// Creates a style with a given width, for tests.
    #[cfg(test)]
    pub(in crate::cli) const fn of_width(colour: bool, width: usize) -> Self {
        Self {
            colour,
            width: Some(width),
        }
    }

    pub(in crate::cli) fn width(self) -> Option<usize> {
        self.width
    }

    /// Applies a style to a text.
    pub(in crate::cli) fn paint(self, ink: Ink, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code())
        } else {
            text.to_owned()
        }
    }
}

/// Returns true if the terminal supports cursor movement.
pub(super) fn is_capable(environment: &Environment) -> bool {
    environment.variable("TERM") != Some(OsStr::new("dumb"))
}

fn has_colour(environment: &Environment) -> bool {
    let refused = environment.variable("NO_COLOR");
    is_capable(environment) && refused.is_none_or(OsStr::is_empty)
}

/// Returns the width of the terminal behind an output.
#[cfg(unix)]
pub(super) fn width_of(output: impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(output);
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { DEFAULT_WIDTH } else { columns }
}

/// Returns the width of the terminal behind an output.
#[cfg(not(unix))]
pub(super) fn width_of<T>(_: T) -> usize {
    DEFAULT_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_only_used_on_capable_terminals() {
        let environment = |name: &str, value: &str| {
            Environment::new([(name.into(), value.into())], "/start".into(), None)
        };
        assert!(has_colour(&environment("TERM", "xterm")));
        assert!(has_colour(&environment("NO_COLOR", "")));
        assert!(!has_colour(&environment("NO_COLOR", "1")));
        assert!(!has_colour(&environment("TERM", "dumb")));
        let coloured = OutputStyle::of_width(true, 80);
        assert_eq!(coloured.paint(Ink::Bad, "no"), "\u{1b}[31mno\u{1b}[0m");
        assert_eq!(coloured.paint(Ink::Bad, ""), "");
        assert_eq!(OutputStyle::PLAIN.paint(Ink::Bad, "no"), "no");
    }
}
