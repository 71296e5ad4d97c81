//! Commands that messages tell the user to run, quoted for a shell and with the right configuration.

use std::{path::Path, sync::Arc};

use ident::ServerIdentifier;

use super::Config;
use crate::visible::{is_unseen, visible_word};

/// The command line of the program for one configuration. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Invocation(Arc<str>);

impl Invocation {
    /// Returns the invocation for a configuration. It names the file if commands would not find it by themselves.
    pub(crate) fn of(config: &Config) -> Self {
        Self::with((!config.is_default_file).then_some(&config.file))
    }

    /// Returns the invocation for the configuration at its default path.
    #[cfg(test)]
    pub(crate) fn for_default_file() -> Self {
        Self::with(None::<&Path>)
    }

    fn with(config: Option<impl AsRef<Path>>) -> Self {
        let config = config.map_or_else(String::new, |file| {
            format!(" --config {}", quoted(&file.as_ref().display().to_string()))
        });
        Self(format!("mcp-workbench{config}").into())
    }

    /// Returns a command with these words.
    pub(crate) fn command(&self, words: &str) -> String {
        format!("{} {words}", self.0)
    }

    /// Returns a command about a server or one of its tools.
    pub(crate) fn about(
        &self,
        words: &str,
        place: &ServerIdentifier,
        tool: Option<&str>,
    ) -> String {
        let names = [place.toolbox.as_str(), place.server.as_str()];
        let names: Vec<String> = names.into_iter().chain(tool).map(quoted).collect();
        self.command(&format!("{words} {}", names.join(" ")))
    }
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_alphanumeric() || "-_./:@+=,%".contains(it);
    // Hangul fillers are letters without a visible form.
    if !word.is_empty() && word.chars().all(|it| plain(it) && !is_unseen(it)) {
        return word.to_owned();
    }
    // A quotation mark ends the quotes, is escaped by itself, and begins them again.
    format!("'{}'", visible_word(word).replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let about = |config: Option<&str>, (toolbox, server): (&str, &str), tool| {
            let place = ServerIdentifier {
                toolbox: toolbox.into(),
                server: server.into(),
            };
            Invocation::with(config).about("trust diff", &place, tool)
        };
        assert_eq!(
            about(None, ("dev", "gh"), None),
            "mcp-workbench trust diff dev gh"
        );
        assert_eq!(
            about(None, ("my dev", "it's"), Some("a;b")),
            r"mcp-workbench trust diff 'my dev' 'it'\''s' 'a;b'"
        );
        assert_eq!(
            about(None, ("dev", "g\u{3164}h"), Some("dele\u{AD}te")),
            "mcp-workbench trust diff dev 'g⟦U+3164⟧h' 'dele⟦U+00AD⟧te'"
        );
        assert_eq!(
            about(Some("/home/me/a b.json"), ("dev", "gh"), None),
            "mcp-workbench --config '/home/me/a b.json' trust diff dev gh"
        );
    }
}
