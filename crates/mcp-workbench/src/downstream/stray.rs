//! Text that a server writes to stdout while it starts and that is not a message, such as a banner or a log line. The
//! start continues without it, but it often explains a start that fails.

use std::sync::OnceLock;

use crate::config::Secrets;

/// Upper bound on the characters that are stored.
const MAX_CHARACTERS: usize = 200;

/// The first such line of a server, without secrets.
#[derive(Debug, Default)]
pub(crate) struct StrayText(OnceLock<String>);

impl StrayText {
    /// Stores a line, unless it is empty or there is one already.
    pub(crate) fn record(&self, line: &[u8], secrets: &Secrets) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if !text.is_empty() {
            self.0
                // Redacted before it is cut, because half a secret would not be recognised.
                .get_or_init(|| secrets.redact(text).chars().take(MAX_CHARACTERS).collect());
        }
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
