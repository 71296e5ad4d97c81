//! The journal of a fixture server.

use std::{fs, path::PathBuf};

use serde_json::value::RawValue;

use super::{Message, TIMEOUT, poll};

/// The journal of one server; several processes may have written to it.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pub(crate) file: PathBuf,
}

impl Journal {
    /// All whole lines, each `PID EVENT [REST]`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let bytes = fs::read(&self.file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(str::to_owned).collect()
    }

    /// Returns the data of the events of this name, in order.
    pub(crate) fn events(&self, event: &str) -> Vec<String> {
        let lines = self.lines();
        let parts = lines.iter().filter_map(|line| {
            let (_, rest) = line.split_once(' ')?;
            let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (name == event).then(|| rest.to_owned())
        });
        parts.collect()
    }

    /// The processes that were started, in order.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let lines = self.lines();
        let starts = lines
            .iter()
            .filter_map(|line| line.strip_suffix(" start")?.parse().ok());
        starts.collect()
    }

    /// The requests and notifications of this method that the server received.
    pub(crate) fn received(&self, method: &str) -> Vec<Message> {
        self.events("in")
            .into_iter()
            .map(Message::parse)
            .filter(|message| message.method.as_deref() == Some(method))
            .collect()
    }

    /// The raw `arguments` of every call that the server received.
    pub(crate) fn arguments(&self) -> Vec<String> {
        self.call_members("arguments")
    }

    /// The raw `name` of every call that the server received.
    pub(crate) fn called(&self) -> Vec<String> {
        self.call_members("name")
    }

    fn call_members(&self, name: &str) -> Vec<String> {
        let calls = self.received("tools/call");
        let members = calls.iter().map(|call| {
            let params = call.params.as_deref().expect("a call has parameters");
            member(params, name).unwrap_or_else(|| panic!("no {name}: {}", call.line))
        });
        members.collect()
    }

    /// Waits for so many events of this name and gives them.
    pub(crate) fn wait(&self, event: &str, count: usize) -> Vec<String> {
        let seen = poll(TIMEOUT, || {
            let events = self.events(event);
            (events.len() >= count).then_some(events)
        });
        seen.unwrap_or_else(|| {
            panic!(
                "no {count} {event} in the journal:\n{}",
                self.lines().join("\n")
            )
        })
    }
}

/// A member of a raw object, raw.
fn member(object: &RawValue, name: &str) -> Option<String> {
    let members: std::collections::HashMap<String, Box<RawValue>> =
        serde_json::from_str(object.get()).ok()?;
    members.get(name).map(|raw| raw.get().to_owned())
}
