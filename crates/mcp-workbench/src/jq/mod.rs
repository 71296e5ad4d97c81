//! jq filters, with which a client selects the part of a result that it needs. The engine is jaq.
//!
//! A [`Filter`] is checked when it is made: a typo costs no call. It runs in a short-lived process of this program
//! ([`worker`]), because nothing else bounds its time and memory: jq can loop and recurse without end, and a thread
//! cannot be killed. A filter has no access to the environment, files, modules or the clock.

mod language;
pub(crate) mod worker;

use std::{sync::Arc, thread};

/// The maximum length of a filter, in bytes.
pub(crate) const MAX_FILTER_BYTES: usize = 1000;

/// The stack of a thread that works on a filter. The parser recurses; measured in a debug build, a byte of a nested
/// filter takes at most 16 KiB.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// A filter without syntax errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter(Arc<str>);

/// The reason why a text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("{what} at column {column}")]
    Syntax {
        what: String,
        /// The place in characters, counted from 1.
        column: usize,
    },
    #[error("the filter has {bytes} bytes; at most {MAX_FILTER_BYTES} are accepted")]
    TooLong { bytes: usize },
    #[error("the filter could not be checked")]
    NotChecked,
}

impl Filter {
    /// Checks the text of a filter.
    pub(crate) fn new(text: &str) -> Result<Self, FilterError> {
        if text.len() > MAX_FILTER_BYTES {
            let bytes = text.len();
            return Err(FilterError::TooLong { bytes });
        }
        let text: Arc<str> = text.into();
        let checked = Arc::clone(&text);
        let check = move || language::check(&checked);
        on_large_stack(check).unwrap_or(Err(FilterError::NotChecked))?;
        Ok(Self(text))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Runs work that recurses. Returns `None` if there is no thread for it, or if it panics.
fn on_large_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    thread.name("jq".into()).spawn(work).ok()?.join().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_problem_and_its_column() {
        let cases = [
            (".a | foo", "undefined filter `foo` at column 6"),
            (".[0", "expected closing bracket at column 4"),
            (
                ".a |",
                "expected term, found the end of the filter at column 5",
            ),
            (".\"ä\" | $x", "undefined variable `$x` at column 8"),
            ("$ENV.HOME", "undefined variable `$ENV` at column 1"),
            ("env", "undefined filter `env` at column 1"),
            ("input", "undefined filter `input` at column 1"),
            ("now", "undefined filter `now` at column 1"),
            ("halt", "undefined filter `halt` at column 1"),
            ("debug", "undefined filter `debug` at column 1"),
            (
                "import \"a\" as a; .",
                "modules are not available at column 9",
            ),
            (
                "import \"/etc/passwd\" as $a; .",
                "modules are not available at column 9",
            ),
            ("@base32", "undefined filter `@base32` at column 1"),
        ];
        for (text, expected) in cases {
            let error = Filter::new(text).expect_err(text);
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn usual_filters_are_accepted() {
        for text in [
            ".",
            ".[] | {number, title}",
            "[.items[] | select(.name | test(\"^a\"; \"i\"))] | length",
            ".a // \"none\" | ascii_downcase",
            "to_entries | map(.key) | sort | unique | join(\", \")",
            "group_by(.kind) | map({kind: .[0].kind, count: length})",
            "first(.[] | select(.id == 3)), limit(2; .[]), .[-1:]",
            "reduce .[] as $x (0; . + $x.size) | tostring",
            "try error(\"x\") catch .",
            "[paths(type == \"number\")]",
            "walk(if type == \"object\" then del(.url) else . end)",
        ] {
            assert_eq!(
                Filter::new(text).map(|it| it.text().to_owned()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn no_text_of_the_greatest_length_overflows_the_stack() {
        let nested = [
            "(",
            "[",
            "{a:",
            "-",
            "def f:",
            "if ",
            "\"\\(",
            "try ",
            ".|",
            ". as [",
            "label $x|",
            ".[",
            "reduce ",
            "..",
            ".a?//",
            "f(",
            "@json \"\\(",
        ];
        for open in nested {
            let text = open.repeat(MAX_FILTER_BYTES / open.len());
            assert!(Filter::new(&text).is_err(), "{open}");
            for close in [")", "]", "}", "1"] {
                let half = MAX_FILTER_BYTES / (open.len() + close.len());
                let text = format!("{}{}", open.repeat(half - 1), close.repeat(half - 1));
                let _ = Filter::new(&text);
            }
        }
        let long = ".".repeat(MAX_FILTER_BYTES + 1);
        let bytes = MAX_FILTER_BYTES + 1;
        assert_eq!(Filter::new(&long), Err(FilterError::TooLong { bytes }));
    }
}
