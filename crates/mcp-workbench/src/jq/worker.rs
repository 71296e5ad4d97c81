//! The process in which a filter runs: this program, with an argument of its own, under limits that it sets itself.
//!
//! Its stdin is the length of the filter on a line of its own, the filter and the JSON text. Its stdout is the output:
//! each value on a line of its own. The exit code says if the output is complete; with [`EXIT_FAILED`] it is the error
//! message instead.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use memchr::memchr;

use super::{Filter, language, on_large_stack};

/// The first argument that makes this program a worker. It is not a command for users.
pub(crate) const WORKER_ARGUMENT: &str = "run-jq-filter";

/// The exit code if the filter failed.
pub(crate) const EXIT_FAILED: u8 = 3;

/// The maximum output of a filter.
pub(crate) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The number of characters of an error message from its beginning, and from its end if it is longer. The value that a filter
/// fails on is in the middle, and may be the whole input.
const MESSAGE_HEAD: usize = 160;
const MESSAGE_TAIL: usize = 120;

/// The maximum memory of a filter: enough to hold the largest message several times.
#[cfg(unix)]
const MAX_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// The maximum CPU time of a filter, in seconds.
#[cfg(unix)]
const MAX_CPU_SECONDS: u64 = 2;

/// Runs the filter on stdin, and returns the exit code.
pub(crate) fn run() -> ExitCode {
    // First of all, so that reading the input is bounded too.
    limit();
    let mut text = Vec::new();
    if io::stdin().lock().read_to_end(&mut text).is_err() {
        return ExitCode::FAILURE;
    }
    let outcome = on_large_stack(move || evaluate(&text));
    let (output, code) = match outcome {
        Some(Ok(output)) => (output, ExitCode::SUCCESS),
        Some(Err(message)) => (shortened(message).into_bytes(), ExitCode::from(EXIT_FAILED)),
        None => return ExitCode::FAILURE,
    };
    match io::stdout().lock().write_all(&output) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the beginning of the input of a worker, which the JSON text follows.
pub(crate) fn head(filter: &Filter) -> String {
    format!("{}\n{}", filter.text().len(), filter.text())
}

fn evaluate(input: &[u8]) -> Result<Vec<u8>, String> {
    let (code, json) = split(input).ok_or("invalid input")?;
    let mut output = Vec::new();
    let mut is_full = false;
    language::evaluate(code, json, |line| {
        if !output.is_empty() {
            output.push(b'\n');
        }
        is_full = output.len() + line.len() > MAX_OUTPUT_BYTES;
        if !is_full {
            output.extend_from_slice(line);
        }
        !is_full
    })?;
    if is_full {
        return Err(format!("its output is over {MAX_OUTPUT_BYTES} bytes"));
    }
    Ok(output)
}

/// Returns a message without its middle if it is long: both ends say what is wrong.
fn shortened(message: String) -> String {
    let head = message.char_indices().nth(MESSAGE_HEAD);
    let tail = message.char_indices().nth_back(MESSAGE_TAIL);
    match (head, tail) {
        (Some((head, _)), Some((tail, _))) if head < tail => {
            format!("{} … {}", &message[..head], &message[tail..])
        }
        _ => message,
    }
}

/// Returns the filter and the JSON text.
fn split(input: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr(b'\n', input)?;
    let length: usize = str::from_utf8(&input[..end]).ok()?.parse().ok()?;
    let (code, json) = input[end + 1..].split_at_checked(length)?;
    Some((str::from_utf8(code).ok()?, json))
}

/// Sets the limits of this process. Where the system has none, only the time that the workbench waits is bounded.
#[cfg(unix)]
fn limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let bound = |bound| Rlimit {
        current: Some(bound),
        maximum: Some(bound),
    };
    let _ = setrlimit(Resource::As, bound(MAX_MEMORY_BYTES));
    let _ = setrlimit(Resource::Cpu, bound(MAX_CPU_SECONDS));
    // A crash is an ordinary outcome here, and must leave no file.
    let _ = setrlimit(Resource::Core, bound(0));
}

#[cfg(not(unix))]
fn limit() {}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_on(filter: &str, json: &str) -> Result<Vec<u8>, String> {
        let filter = Filter::new(filter).unwrap();
        evaluate(format!("{}{json}", head(&filter)).as_bytes())
    }

    #[test]
    fn outputs_are_lines_and_strings_are_plain() {
        let cases: [(&str, &str, Result<&str, &str>); 9] = [
            (
                ".[]|{a,b:.c}",
                r#"[{"a":1.10,"c":1e400},{"a":null}]"#,
                Ok("{\"a\":1.10,\"b\":1e400}\n{\"a\":null,\"b\":null}"),
            ),
            (".a", r#"{"a":"x\ny\u00e4"}"#, Ok("x\ny\u{e4}")),
            (
                ".",
                "12345678901234567890123",
                Ok("12345678901234567890123"),
            ),
            ("empty", "1", Ok("")),
            ("keys_unsorted|join(\",\")", r#"{"z":1,"a":2}"#, Ok("z,a")),
            (".[]|select(test(\"^A\";\"i\"))", r#"["ab","ba"]"#, Ok("ab")),
            (".a.b", r#"{"a":[1]}"#, Err("cannot index [1] with \"b\"")),
            ("test(\"(\")", "\"x\"", Err("invalid regex: ")),
            (".", "{", Err("invalid JSON: ")),
        ];
        for (filter, input, expected) in cases {
            let found = run_on(filter, input);
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(String::from_utf8(found).unwrap(), expected);
                }
                (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{found}"),
                (found, expected) => panic!("{filter}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_long_message_keeps_both_of_its_ends() {
        let long = format!("[{}]", "\"ä\",".repeat(1_000_000) + "1");
        let message = shortened(run_on(".a", &long).unwrap_err());
        assert!(message.starts_with("cannot index [\"ä\","), "{message}");
        assert!(message.ends_with(",1] with \"a\""), "{message}");
        assert!(message.chars().count() < 300, "{message}");
        for short in ["", "x", &"ä".repeat(MESSAGE_HEAD + MESSAGE_TAIL)] {
            assert_eq!(shortened(short.to_owned()), short);
        }
    }

    #[test]
    fn output_over_the_bound_is_an_error() {
        for filter in ["repeat(1)", "range(1000000)", "\"x\" * 2000000"] {
            let found = run_on(filter, "null");
            assert_eq!(
                found,
                Err("its output is over 1048576 bytes".to_owned()),
                "{filter}"
            );
        }
    }
}
