//! Redaction of values that came from variables, so that they do not appear in messages.
//!
//! Not every variable is a secret, and a message full of `[redacted]` helps nobody. A value is hidden unless its
//! variable names paths, users or the terminal (`HOME`, `PATH`, `PROJECT_ROOT` …), or the value is shorter than four
//! characters, a short number such as a port, or a common setting such as `true` or `info`.

mod notation;

use std::{borrow::Cow, fmt, ops::Range};

use memchr::memmem;

use self::notation::{MAX_ESCAPE_LENGTH, Notation};

/// The replacement for a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// The minimum length of a secret. A shorter value would be found in every other word.
const MIN_LENGTH: usize = 4;

/// Numbers up to this length are ports and counts.
const MAX_PLAIN_NUMBER_LENGTH: usize = 5;

/// Variables that are not secret.
const PLAIN_VARIABLES: &[&str] = &[
    "APPDATA",
    "COMPUTERNAME",
    "COMSPEC",
    "DISPLAY",
    "EDITOR",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "HOST",
    "HOSTNAME",
    "LANG",
    "LOCALAPPDATA",
    "LOGNAME",
    "NODE_ENV",
    "OLDPWD",
    "OS",
    "PATH",
    "PATHEXT",
    "PORT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PWD",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
    "WAYLAND_DISPLAY",
    "WINDIR",
];

/// Prefixes of the names of variables that are not secret.
const PLAIN_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Suffixes of the names of variables that are not secret.
const PLAIN_SUFFIXES: &[&str] = &[
    "_DIR",
    "_DIRECTORY",
    "_FOLDER",
    "_HOME",
    "_LEVEL",
    "_PATH",
    "_PORT",
    "_ROOT",
];

/// Values that are common settings, whatever their variable.
const PLAIN_VALUES: &[&str] = &[
    "auto",
    "debug",
    "default",
    "development",
    "disabled",
    "enabled",
    "error",
    "false",
    "info",
    "json",
    "local",
    "localhost",
    "main",
    "none",
    "null",
    "production",
    "read",
    "staging",
    "stdio",
    "test",
    "text",
    "trace",
    "true",
    "utf-8",
    "utf8",
    "verbose",
    "warn",
    "warning",
    "write",
];

/// Values that must not appear in messages.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The values without their line breaks.
    values: Vec<String>,
}

impl Secrets {
    /// Adds the value of a variable, unless it is clearly not a secret. Each line of a multi-line value is a secret
    /// too, because messages quote single lines.
    pub fn add(&mut self, variable: &str, value: &str) {
        if is_plain_variable(variable) {
            return;
        }
        self.add_value(value);
        for line in value.split(['\r', '\n']) {
            self.add_value(line.trim());
        }
    }

    /// Adds the secrets of another.
    pub fn merge(&mut self, other: &Self) {
        for value in &other.values {
            self.add_value(value);
        }
    }

    /// Returns the length of the longest secret in its longest notation. The last part of a truncated text, up to
    /// this length, may be the beginning of a secret.
    pub fn longest(&self) -> usize {
        let longest = self.values.iter().map(String::len).max();
        longest.unwrap_or(0) * MAX_ESCAPE_LENGTH
    }

    /// Returns whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the text with every occurrence of a secret replaced by `[redacted]`, also where it is percent-encoded,
    /// escaped for JSON or broken over lines. Nothing remains of secrets that overlap in the text.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hidden = self.occurrences(text);
        if hidden.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut shown_to = 0;
        for range in hidden {
            redacted.push_str(&text[shown_to..range.start]);
            redacted.push_str(REDACTED);
            shown_to = range.end;
        }
        redacted.push_str(&text[shown_to..]);
        Cow::Owned(redacted)
    }

    /// Returns whether a text contains one of them, in any notation.
    pub fn occur_in_json(&self, text: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        Notation::of(text).any(|notation| {
            let mut decoded = Cow::Borrowed(text.as_bytes());
            if !notation.is_decoded(text) {
                let mut bytes = Vec::with_capacity(text.len());
                notation.decode(text, |byte, _| bytes.push(byte));
                decoded = Cow::Owned(bytes);
            }
            let mut values = self.values.iter();
            values.any(|value| memmem::find(&decoded, value.as_bytes()).is_some())
        })
    }

    /// Adds a value, whatever its variable.
    pub(super) fn add_value(&mut self, value: &str) {
        // Texts are searched without their line breaks, so that a value that a server has wrapped is found.
        let value = value.replace(['\r', '\n'], "");
        if !is_plain_value(&value) && !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    /// Returns the ranges of secrets in the text: sorted, with overlapping ones merged.
    fn occurrences(&self, text: &str) -> Vec<Range<usize>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        for notation in Notation::of(text) {
            if notation.is_decoded(text) {
                self.find(text.as_bytes(), |hit| found.push(hit));
                continue;
            }
            // Searched in its decoded form, with the positions of the bytes in the original, which is what is
            // redacted.
            let (mut bytes, mut places) = (Vec::new(), Vec::new());
            notation.decode(text, |byte, place| {
                bytes.push(byte);
                places.push(place);
            });
            self.find(&bytes, |hit| {
                found.push(places[hit.start].start..places[hit.end - 1].end);
            });
        }
        found.sort_unstable_by_key(|range| (range.start, range.end));
        // The later range comes first here, and is merged into the one that stays.
        found.dedup_by(|next, kept| {
            let overlaps = next.start < kept.end;
            if overlaps {
                kept.end = kept.end.max(next.end);
            }
            overlaps
        });
        found
    }

    /// Finds the values in decoded bytes.
    fn find(&self, bytes: &[u8], mut hit: impl FnMut(Range<usize>)) {
        for value in &self.values {
            for at in memmem::find_iter(bytes, value.as_bytes()) {
                hit(at..at + value.len());
            }
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} hidden)", self.values.len())
    }
}

fn is_plain_variable(name: &str) -> bool {
    // Windows ignores case, and writes `SystemRoot`.
    let name = name.to_ascii_uppercase();
    PLAIN_VARIABLES.contains(&name.as_str())
        || PLAIN_PREFIXES.iter().any(|part| name.starts_with(part))
        || PLAIN_SUFFIXES.iter().any(|part| name.ends_with(part))
}

/// Returns whether a value is too short or too common to be a secret.
pub(super) fn is_plain_value(value: &str) -> bool {
    let length = value.chars().count();
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    length < MIN_LENGTH
        || value.trim().is_empty()
        || (is_number && length <= MAX_PLAIN_NUMBER_LENGTH)
        || PLAIN_VALUES
            .iter()
            .any(|plain| plain.eq_ignore_ascii_case(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        for value in values {
            secrets.add("TOKEN", value);
        }
        secrets
    }

    #[test]
    fn every_occurrence_is_replaced() {
        let cases: [(&[&str], &str, &str); 8] = [
            (
                &["hunter2"],
                "pass hunter2, again hunter2",
                "pass [redacted], again [redacted]",
            ),
            (&["hunter2"], "nothing here", "nothing here"),
            (&[], "hunter2", "hunter2"),
            (&["hunter2", "hunter2345"], "x=hunter2345;", "x=[redacted];"),
            (&["abcdef", "defghi"], "<abcdefghi>", "<[redacted]>"),
            (&["hunter2"], "hunter2hunter2", "[redacted][redacted]"),
            (&["redacted", "hunter2"], "hunter2", "[redacted]"),
            (&["pässwört"], "ä pässwört ü", "ä [redacted] ü"),
        ];
        for (values, text, expected) in cases {
            assert_eq!(secrets(values).redact(text), expected, "{values:?}");
        }
    }

    #[test]
    fn a_secret_is_found_in_every_notation() {
        let secrets = secrets(&["p\"ä ss/w+rd"]);
        for written in [
            "p\"ä ss/w+rd",
            "p%22%C3%A4%20ss%2Fw%2Brd",
            "p%22%c3%a4%20ss/w%2brd",
            "p%22%C3%A4+ss%2Fw%2Brd",
            r#"p\"ä ss/w+rd"#,
            r#"p\"ä ss\/w+rd"#,
            r"\u0070\u0022\u00e4\u0020ss/w+rd",
            "p\"ä ss\r/w+rd",
            "p\"ä ss\r\n/w\n+rd",
            r#"p\"ä ss\r\n/w+rd"#,
            "p%22%C3%A4%20ss%0D%0A%2Fw%2Brd",
        ] {
            let text = format!("ü {written}\n");
            assert_eq!(secrets.redact(&text), "ü [redacted]\n", "{written:?}");
            assert!(secrets.occur_in_json(&text), "{written:?}");
        }
    }

    #[test]
    fn the_parts_between_carriage_returns_are_hidden_too() {
        let key = secrets(&["BEGIN KEY\rMIIB0123\rEND KEY"]);
        assert_eq!(key.redact("bad: MIIB0123"), "bad: [redacted]");
        assert_eq!(key.redact("BEGIN KEY\nMIIB0123\nEND KEY"), "[redacted]");
    }

    #[test]
    fn a_clean_text_is_not_copied() {
        assert!(matches!(
            secrets(&["hunter2"]).redact("clean"),
            Cow::Borrowed("clean")
        ));
    }

    #[test]
    fn a_secret_is_found_in_json_however_it_is_written() {
        let secrets = secrets(&["hun\"ter2"]);
        let cases = [
            (r#"{"a":"x hun\"ter2"}"#, true),
            (r#"{"a":"hun ter2"}"#, false),
        ];
        for (text, found) in cases {
            assert_eq!(secrets.occur_in_json(text), found, "{text}");
        }
    }

    #[test]
    fn trivial_values_are_not_hidden() {
        for value in [
            "", "1", "abc", "true", "FALSE", "info", "8080", "65535", "    ",
        ] {
            assert!(secrets(&[value]).is_empty(), "{value}");
        }
        for value in ["abcd", "123456", "ghp_0123"] {
            assert!(!secrets(&[value]).is_empty(), "{value}");
        }
    }

    #[test]
    fn variables_for_paths_and_users_are_not_hidden() {
        for name in [
            "HOME",
            "PATH",
            "Path",
            "USER",
            "PWD",
            "LC_ALL",
            "XDG_CACHE_HOME",
            "PROJECT_ROOT",
        ] {
            let mut secrets = Secrets::default();
            secrets.add(name, "/home/somebody");
            assert!(secrets.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_lines_of_a_value_are_hidden_too() {
        let key = secrets(&["-----BEGIN KEY-----\nMIIB0123\n-----END KEY-----\n"]);
        assert_eq!(
            key.redact("bad key: MIIB0123 | x"),
            "bad key: [redacted] | x"
        );
    }

    #[test]
    fn merged_secrets_are_all_redacted() {
        let mut both = secrets(&["hunter2"]);
        both.merge(&secrets(&["swordfish", "hunter2"]));
        assert_eq!(both.redact("hunter2 swordfish"), "[redacted] [redacted]");
    }

    #[test]
    fn values_are_not_shown() {
        assert_eq!(format!("{:?}", secrets(&["hunter2"])), "Secrets(1 hidden)");
    }

    proptest! {
        /// Slicing in the middle of a character would panic.
        #[test]
        fn any_text_can_be_redacted(
            values in prop::collection::vec(r"[aä+%\\\n ]{4,6}", 1..4),
            text in r"([aä+%\\\r\n ]|%C3|%A4|%61|\\u00e4|\\n){0,30}",
        ) {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let _ = secrets(&values).redact(&text);
        }

        #[test]
        fn no_secret_survives(
            values in prop::collection::vec("[xyz]{4,6}", 1..4),
            text in "[xyz ]{0,40}",
        ) {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let redacted = secrets(&values).redact(&text).into_owned();
            for value in values {
                prop_assert!(!redacted.contains(value), "{} in {}", value, redacted);
            }
        }
    }
}
