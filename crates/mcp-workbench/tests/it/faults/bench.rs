//! A running workbench with the faulty server `fs` and the healthy server `ok`, and what the rows do
//! with it.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::After;
use crate::harness::{
    Journal, Message, TIMEOUT, ToolResult, Workbench, alive, cpu_time, memory_peak, poll, survivors,
};

/// How long the healthy server may take to respond, whatever the other does.
const HEALTHY: Duration = Duration::from_secs(20);

/// The memory that a fault may take.
const FLAT: u64 = 64 * 1024 * 1024;

/// The idle time of the processor after which no work is in progress.
const CALM: Duration = Duration::from_millis(700);

/// The value of a variable that must not appear in our text, not even its beginning.
pub(super) const CANARY: &str = "canary-7f3a9c51e0d24b68";
const CANARY_BEGIN: &str = "canary-7f3a";

/// Returns true if a character is invisible.
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200B}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
                | '\u{E000}'..='\u{F8FF}' | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// The workbench of a row.
pub(super) struct Bench {
    pub(super) workbench: Workbench,
    healthy_calls: u64,
}

/// The machine-readable part of a failed call.
pub(super) struct Failed {
    pub(super) code: &'static str,
    pub(super) outcome: Option<&'static str>,
}

impl Failed {
    /// Sent, and nothing is known of its effects.
    pub(super) const fn unknown(code: &'static str) -> Self {
        Self {
            code,
            outcome: Some("unknown"),
        }
    }

    pub(super) const fn not_sent(code: &'static str) -> Self {
        Self {
            code,
            outcome: Some("not_sent"),
        }
    }

    /// The server itself answered with an error.
    pub(super) const fn answered(code: &'static str) -> Self {
        Self {
            code,
            outcome: None,
        }
    }
}

impl Bench {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self {
            workbench,
            healthy_calls: 0,
        }
    }

    /// The journal of the faulty server.
    pub(super) fn journal(&self) -> Journal {
        self.workbench.journal("dev", "fs")
    }

    /// How often the faulty server was started.
    pub(super) fn starts(&self) -> usize {
        self.journal().pids().len()
    }

    /// Opens the toolbox; both servers must come up. Gives the result.
    pub(super) fn open(&mut self) -> Value {
        let opened = self.workbench.open("dev").json();
        assert_eq!(opened["servers_connected"], 2, "{opened}");
        assert_eq!(opened.get("_errors"), None);
        self.healthy();
        opened
    }

    /// Opens the toolbox; only the healthy server comes up. Gives the reason of the other.
    pub(super) fn open_without(&mut self) -> String {
        let opened = self.workbench.open("dev").json();
        assert_eq!(opened["servers_connected"], 1, "{opened}");
        let errors = opened["_errors"].as_array().expect("a list of errors");
        assert_eq!(errors.len(), 1, "{errors:?}");
        let error = errors[0].as_str().expect("a text");
        let reason = error.strip_prefix("Failed to connect to server 'fs' in toolbox 'dev': ");
        let reason = reason.unwrap_or_else(|| panic!("another text: {error}"));
        assert!(!reason.trim().is_empty(), "no reason: {error}");
        self.healthy();
        reason.to_owned()
    }

    /// A call of the healthy server, which must answer soon and with what belongs to it.
    pub(super) fn healthy(&mut self) {
        self.healthy_calls += 1;
        let start = Instant::now();
        let arguments = json!({"healthy": self.healthy_calls});
        let result = self
            .workbench
            .use_tool_of(["dev", "ok", "echo"], &arguments.to_string());
        let took = start.elapsed();
        assert_eq!(result.structured()["arguments"], arguments);
        assert!(took < HEALTHY, "the healthy server took {took:?}");
    }

    /// Sends a call of the faulty server and gives its id.
    pub(super) fn send(&mut self, tool: &str) -> String {
        self.workbench.send_use(tool, "{}")
    }

    /// Calls the faulty server; the healthy one answers meanwhile.
    pub(super) fn call(&mut self, tool: &str) -> ToolResult {
        let id = self.send(tool);
        self.healthy();
        self.workbench.tool_result(&id)
    }

    /// Calls the faulty server, which must succeed.
    pub(super) fn succeeds(&mut self, tool: &str) -> ToolResult {
        let result = self.call(tool);
        assert!(!result.failed(), "{}", result.raw);
        result
    }

    /// Calls the faulty server, which must fail in this way. Gives the result.
    pub(super) fn fails(&mut self, tool: &str, failed: &Failed) -> ToolResult {
        let id = self.send(tool);
        self.healthy();
        self.failed(&id, tool, failed)
    }

    /// Waits for a call that must fail in this way.
    pub(super) fn failed(&mut self, id: &str, tool: &str, failed: &Failed) -> ToolResult {
        let result = self.workbench.tool_result(id);
        let label = format!("Error executing tool '{tool}' in server 'fs' (toolbox 'dev'): ");
        let reason = result.error().strip_prefix(&label);
        let reason = reason.unwrap_or_else(|| panic!("no {label:?}: {}", result.raw));
        assert!(!reason.trim().is_empty(), "{}", result.raw);
        let failure = result.failure();
        let names = [&failure["toolbox"], &failure["server"], &failure["tool"]];
        assert_eq!(names, [&json!("dev"), &json!("fs"), &json!(tool)]);
        assert_eq!(failure["code"], failed.code, "{}", result.raw);
        let outcome = failure.get("outcome").and_then(Value::as_str);
        assert_eq!(outcome, failed.outcome, "{}", result.raw);
        result
    }

    /// Waits until the faulty server has been given so many calls.
    pub(super) fn wait_calls(&self, count: usize) {
        let journal = self.journal();
        let seen = poll(TIMEOUT, || {
            (journal.received("tools/call").len() >= count).then_some(())
        });
        assert!(seen.is_some(), "never {count} calls at the server");
    }

    /// The most memory that the workbench has had.
    pub(super) fn memory(&self) -> u64 {
        memory_peak(self.workbench.pid())
    }

    /// Checks that the memory has stayed near what it was.
    pub(super) fn flat_since(&self, base: u64) {
        self.within_memory(base, FLAT);
    }

    /// Checks that the memory has grown by less than this.
    pub(super) fn within_memory(&self, base: u64, most: u64) {
        let grown = self.memory().saturating_sub(base);
        assert!(grown < most, "{} MiB more", grown / (1024 * 1024));
    }

    /// Waits until the workbench does nothing; one that spins never does.
    pub(super) fn wait_calm(&self) {
        let pid = self.workbench.pid();
        let mut since = (cpu_time(pid), Instant::now());
        let calm = poll(TIMEOUT, || {
            let used = cpu_time(pid);
            if used != since.0 {
                since = (used, Instant::now());
            }
            (since.1.elapsed() >= CALM).then_some(())
        });
        assert!(calm.is_some(), "the workbench never rests");
    }

    /// Checks the conditions that apply after every row.
    pub(super) fn conclude(&mut self, after: After) {
        if after == After::Killed {
            return;
        }
        if after != After::Ended {
            self.afterwards(after);
        }
        let finished = self.workbench.finish();
        assert_eq!(finished.status.code(), Some(0), "{:?}", finished.status);
        for line in finished.stdout {
            let message = Message::parse(line);
            assert!(message.method.is_some(), "answered twice: {}", message.line);
        }
        self.check_own_words(&finished.stderr);
        let left = survivors(&self.workbench.setup.mark);
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// Whatever the servers said: our words have no hidden characters and no secrets.
    fn check_own_words(&self, stderr: &str) {
        assert!(!stderr.contains("panicked"), "a panic");
        let hidden = stderr.lines().find(|line| line.contains(is_hidden));
        assert_eq!(hidden, None, "hidden characters in the log");
        for words in [stderr, &self.workbench.said()] {
            let leak = words.lines().find(|line| line.contains(CANARY_BEGIN));
            assert_eq!(leak, None, "a value of a variable");
        }
    }

    fn afterwards(&mut self, after: After) {
        self.healthy();
        match after {
            After::Recovers => drop(self.succeeds("pid")),
            After::RecoversAtOpen => {
                self.open();
                self.succeeds("pid");
            }
            After::StaysDown => {
                let result = self.call("pid");
                assert_eq!(result.failure()["outcome"], "not_sent", "{}", result.raw);
            }
            After::Either | After::Ended | After::Killed => {}
        }
        self.healthy();
    }
}

/// Waits until a process is gone, and fails if it is not in time.
pub(super) fn wait_gone(pid: u32, within: Duration) {
    let gone = poll(within, || (!alive(pid)).then_some(()));
    assert!(gone.is_some(), "{pid} is still there after {within:?}");
}
