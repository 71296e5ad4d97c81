//! The result of a run: the value of the script, or why there is none. An error has the kind, the place with its source line,
//! the calls that were made and which of them may have changed something, and the next step.

use std::fmt::Write;

use rawjson::{ObjectText, RawJson};
use script::{ACCEPTS_TYPES, End, Position, Thrown, excerpt};
use serde_json::{Map, Value, json};

use super::run::{CallRecord, CallState, LIMITS, RunEnd, RunReport};
use crate::{scripts::WorkerGone, visible::visible_lines};

/// The key under which programs find the details of a failure.
const ERROR_KEY: &str = "mcp-workbench/error";
/// The next step after a script that could not be read.
const SYNTAX_STEP: &str = if ACCEPTS_TYPES {
    "Nothing ran. Correct the script and run it again."
} else {
    "Nothing ran. Correct the script (JavaScript, without types) and run it again."
};
/// The code of a call that is one too many.
const CALL_LIMIT: &str = "call_limit";
/// The code of a call of a tool that does not exist.
const TOOL_UNKNOWN: &str = "tool_unknown";
/// The number of calls that an error names.
const MAX_NAMED: usize = 10;
/// The number of characters of a message of the script that are shown.
const MAX_MESSAGE: usize = 2000;

impl RunReport {
    /// Returns the result for a client.
    pub(crate) fn to_result(&self, code: &str) -> RawJson {
        match self.value() {
            Some(value) => self.success(value),
            None => self.failure(code),
        }
    }

    /// Returns the value that the script returned, as JSON.
    pub(crate) fn value(&self) -> Option<&str> {
        match &self.end {
            RunEnd::Script(End::Value(value)) => Some(value.get()),
            _ => None,
        }
    }

    fn success(&self, value: &str) -> RawJson {
        let value = RawJson::trusted(value.to_owned().into());
        let mut text = ObjectText::new().member("ok", &true).raw("result", &value);
        // Empty members are left out, because every word costs the model.
        if !self.logs.is_empty() {
            text = text.member("logs", &self.logs);
        }
        if let Some(hint) = self.unfinished() {
            text = text.member("hint", &hint);
        }
        let structured = text
            .member("calls", &self.counts())
            .member("ms", &self.milliseconds())
            .finish();
        ObjectText::new()
            .raw("content", &self.content(structured.as_str()))
            .raw("structuredContent", &structured)
            .finish()
    }

    /// Returns the content of a result: a text, and what the script has emitted.
    fn content(&self, text: &str) -> RawJson {
        let mut content = vec![RawJson::of(&json!({ "type": "text", "text": text }))];
        content.extend(self.emitted.iter().cloned());
        RawJson::array(&content)
    }

    fn failure(&self, code: &str) -> RawJson {
        let mut details = Map::new();
        details.insert("code".into(), self.code().into());
        if let Some(at) = self.place() {
            details.insert("line".into(), at.line.into());
            details.insert("column".into(), at.column.into());
        }
        details.insert("calls".into(), self.counts());
        details.insert("wrote".into(), self.named(CallRecord::has_written).into());
        details.insert("unknown".into(), self.named(CallRecord::is_unknown).into());
        ObjectText::new()
            .raw("content", &self.content(&self.text(code)))
            .member("isError", &true)
            .member("_meta", &json!({ ERROR_KEY: details }))
            .finish()
    }

    fn counts(&self) -> Value {
        let failed = |it: &&CallRecord| matches!(it.state, CallState::Failed { .. });
        let mut counts = Map::new();
        counts.insert("total".into(), self.calls.len().into());
        counts.insert(
            "failed".into(),
            self.calls.iter().filter(failed).count().into(),
        );
        let cancelled = self.cancelled();
        if cancelled > 0 {
            counts.insert("cancelled".into(), cancelled.into());
        }
        Value::Object(counts)
    }

    /// Returns the number of calls that had not ended when the script did.
    fn cancelled(&self) -> usize {
        let running =
            |it: &&CallRecord| matches!(it.state, CallState::Running | CallState::NotSent);
        self.calls.iter().filter(running).count()
    }

    /// Returns a warning about calls that a script did not wait for.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let cancelled = self.cancelled();
        if cancelled == 0 {
            return None;
        }
        let (calls, were) = match cancelled {
            1 => ("1 call".to_owned(), "was"),
            several => (format!("{several} calls"), "were"),
        };
        let unknown = self.named(CallRecord::is_unknown);
        let unknown = match &unknown[..] {
            [] => String::new(),
            unknown => format!(" Outcome unknown (may have run): {}.", unknown.join(", ")),
        };
        Some(format!(
            "{calls} {were} cancelled, because the script returned first: use await.{unknown}"
        ))
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the stable code for programs.
    fn code(&self) -> &'static str {
        match &self.end {
            RunEnd::Script(end) => match end {
                End::Value(_) => "ok",
                End::Undefined => "script_no_value",
                End::NotJson(_) => "script_not_json",
                End::TooLarge(_) => "script_result_too_large",
                End::Thrown(_) => "script_error",
                End::CpuLimit { .. } => "script_cpu_limit",
                End::OutOfMemory => "script_out_of_memory",
                End::Deadlock => "script_deadlock",
            },
            RunEnd::WorkerGone(WorkerGone::HardLimit) => "script_cpu_limit",
            RunEnd::WorkerGone(WorkerGone::NotConfined(_)) => "script_unsupported",
            RunEnd::WorkerGone(_) => "script_worker_gone",
            RunEnd::TimeLimit(_) => "script_time_limit",
        }
    }

    fn place(&self) -> Option<Position> {
        match &self.end {
            RunEnd::Script(end) => end.place(),
            RunEnd::WorkerGone(_) | RunEnd::TimeLimit(_) => None,
        }
    }

    /// Returns the error for a model.
    pub(crate) fn text(&self, code: &str) -> String {
        let mut text = self.headline();
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", self.calls_made());
        if let Some(shown) = self.place().and_then(|at| excerpt(code, at)) {
            let _ = write!(text, "\n{}", visible_lines(&shown));
        }
        let _ = write!(text, "\n{}", self.next_step());
        if !self.logs.is_empty() {
            let _ = write!(text, "\nlogs:\n{}", visible_lines(&self.logs.join("\n")));
        }
        text
    }

    fn headline(&self) -> String {
        let at = self
            .place()
            .map_or_else(String::new, |at| format!(" at {at}"));
        match &self.end {
            RunEnd::Script(End::Thrown(thrown)) => thrown_headline(thrown, &at),
            RunEnd::Script(End::CpuLimit { .. }) => {
                format!("CPU limit {} ms exceeded{at}.", LIMITS.cpu_ms)
            }
            RunEnd::Script(End::OutOfMemory) => format!(
                "Out of memory ({} MB): process results in pages.",
                LIMITS.heap_bytes / (1024 * 1024)
            ),
            RunEnd::Script(End::Deadlock) => {
                "Deadlock: the script awaits a promise that nothing can settle (line unknown)."
                    .to_owned()
            }
            RunEnd::Script(End::TooLarge(bytes)) => format!(
                "Result is {} KB, limit {} KB: return a summary, or only the fields you need.",
                bytes.div_ceil(1024),
                LIMITS.result_bytes / 1024
            ),
            RunEnd::Script(End::NotJson(reason)) => format!("Result is not JSON: {reason}."),
            // A value is not an error, so this is shown for `undefined` alone.
            RunEnd::Script(End::Undefined | End::Value(_)) => {
                "Returned undefined. Use \"return <value>\".".to_owned()
            }
            RunEnd::WorkerGone(WorkerGone::HardLimit) => {
                "Stopped: hard limit, the script did not yield.".to_owned()
            }
            RunEnd::WorkerGone(WorkerGone::Exited {
                signal: Some(signal),
            }) => {
                format!("The worker process of the script was killed by signal {signal}.")
            }
            RunEnd::WorkerGone(WorkerGone::Exited { signal: None } | WorkerGone::Garbled) => {
                "The worker process of the script ended unexpectedly.".to_owned()
            }
            RunEnd::WorkerGone(WorkerGone::NotConfined(reason)) => {
                format!("Scripts cannot run here, because their worker is not confined: {reason}.")
            }
            RunEnd::TimeLimit(limit) => {
                let waiting = self.calls.iter().find(|it| it.state == CallState::Running);
                let waiting = waiting.map(|it| format!(": waiting for {}", it.shown()));
                format!(
                    "Time limit {} s{}.",
                    limit.as_secs(),
                    waiting.unwrap_or_default()
                )
            }
        }
    }

    /// Returns the calls that were made, and which of them may have changed something.
    fn calls_made(&self) -> String {
        let completed = self
            .calls
            .iter()
            .filter(|it| it.state == CallState::Completed);
        let (mut all, mut writes) = (0, 0);
        for call in completed {
            all += 1;
            writes += usize::from(call.writes);
        }
        let mut text = format!(" Calls completed before: {all}");
        if writes > 0 {
            let s = if writes == 1 { "" } else { "s" };
            let _ = write!(text, " ({writes} write{s}: NOT rolled back)");
        }
        text.push('.');
        let wrote = self.named(CallRecord::has_written);
        if !wrote.is_empty() {
            let _ = write!(text, "\nWrote: {}.", wrote.join(", "));
        }
        let unknown = self.named(CallRecord::is_unknown);
        if !unknown.is_empty() {
            let _ = write!(
                text,
                "\nOutcome unknown (may have run): {}.",
                unknown.join(", ")
            );
        }
        let waiting = self.named(|it| it.state == CallState::NotSent);
        if !waiting.is_empty() {
            let _ = write!(
                text,
                "\nDid not run (waited for the user): {}.",
                waiting.join(", ")
            );
        }
        text
    }

    /// Returns the calls of a kind, by name and place.
    fn named(&self, is: impl Fn(&CallRecord) -> bool) -> Vec<String> {
        let mut named: Vec<String> = Vec::new();
        let found: Vec<&CallRecord> = self.calls.iter().filter(|it| is(it)).collect();
        named.extend(found.iter().take(MAX_NAMED).map(|it| it.shown()));
        if found.len() > MAX_NAMED {
            named.push(format!("{} more", found.len() - MAX_NAMED));
        }
        named
    }

    fn next_step(&self) -> &'static str {
        // First, whatever was wrong with the script: to repeat what it wrote would do more harm.
        let has_effects = self
            .calls
            .iter()
            .any(|it| it.has_written() || it.is_unknown());
        if has_effects {
            return "Do not run the whole script again: it would repeat what it wrote. Continue from here, and look first at \
                    what is unknown.";
        }
        match &self.end {
            RunEnd::Script(End::Thrown(thrown)) if thrown.name == "SyntaxError" => SYNTAX_STEP,
            RunEnd::WorkerGone(WorkerGone::NotConfined(_)) => "Call the tools one by one.",
            RunEnd::Script(End::Thrown(thrown)) if thrown.tool.is_some() => {
                "Correct the call, or catch ToolError {tool, code, outcome, message} to go on without it."
            }
            RunEnd::Script(End::Deadlock) => {
                "Await only promises of tools, and of what follows from them."
            }
            RunEnd::TimeLimit(_) => {
                "Make independent calls with Promise.all, or raise timeout_s (up to 120)."
            }
            RunEnd::WorkerGone(WorkerGone::HardLimit) | RunEnd::Script(End::CpuLimit { .. }) => {
                "Compute less in the script: let tools filter, and avoid loops over large data."
            }
            _ => "Correct the script and run it again.",
        }
    }
}

impl CallRecord {
    fn has_written(&self) -> bool {
        self.writes && self.state == CallState::Completed
    }

    /// Returns whether the call may have had an effect that nobody knows.
    fn is_unknown(&self) -> bool {
        let is_unknown = match self.state {
            CallState::Running => true,
            CallState::Failed { is_unknown } => is_unknown,
            CallState::Completed | CallState::NotSent => false,
        };
        is_unknown && self.writes
    }

    fn shown(&self) -> String {
        match self.at {
            Some(at) => format!("{} (started {at})", self.call.name),
            None => self.call.name.clone(),
        }
    }
}

fn thrown_headline(thrown: &Thrown, at: &str) -> String {
    let message: String = thrown.message.chars().take(MAX_MESSAGE).collect();
    let message = match message.trim_end_matches('.') {
        // As that of `Promise.any`.
        "" => "no message".to_owned(),
        message => visible_lines(message).into_owned(),
    };
    let name: String = thrown.name.chars().take(100).collect();
    let name = visible_lines(&name);
    // This text ends with the next step in brackets.
    let is_unknown = thrown.code.as_deref() == Some(TOOL_UNKNOWN);
    let stop = if is_unknown { "" } else { "." };
    match &thrown.tool {
        Some(_) if thrown.code.as_deref() == Some(CALL_LIMIT) => format!("{message}{at}."),
        Some(tool) if !message.contains(tool.as_str()) => {
            let tool: String = tool.chars().take(MAX_MESSAGE).collect();
            format!("{name}{at} in {}: {message}{stop}", visible_lines(&tool))
        }
        _ => format!("{name}{at}: {message}{stop}"),
    }
}
