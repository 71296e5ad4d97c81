//! Compares an observed server with its pins.

use std::collections::{BTreeMap, HashSet};

use ident::ToolName;

use super::{Digest, Launch, PinnedServer, PinnedTool};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    pub launch: Launch,
    /// The tools that it offers, with the digests of their definitions.
    pub tools: Vec<(ToolName, Digest)>,
    /// The codes of the scanner's findings in these tools, which an approval covers. A serving workbench leaves them
    /// out, because only a person approves a finding.
    pub findings: BTreeMap<String, String>,
}

/// The side that an observation is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The approved state, or that of the first contact.
    Pinned,
    /// The state that was last reported.
    Seen,
}

/// The differences of an observation. Names are sorted or in the server's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// The changed parts of the launch.
    pub launch: Vec<String>,
    pub changed: Vec<String>,
    pub new: Vec<String>,
    pub gone: Vec<String>,
}

/// The part of a server that a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection<'a> {
    Whole,
    Tool(&'a str),
}

impl Differences {
    /// Returns true if something is new or changed.
    pub fn is_notable(&self) -> bool {
        !(self.launch.is_empty() && self.changed.is_empty() && self.new.is_empty())
    }
}

impl PinnedServer {
    /// Pins an observation, at a first contact or an approval.
    pub fn of(observation: &Observation) -> Self {
        let tools = observation
            .tools
            .iter()
            .map(|(name, digest)| (name.to_string(), observation.pinned(name.as_str(), *digest)));
        Self {
            launch: observation.launch.clone(),
            seen: None,
            tools: tools.collect(),
        }
    }

    /// Returns the differences of an observation from this record.
    pub fn differences(&self, found: &Observation, base: Base) -> Differences {
        let launch = self.launch.differing(&found.launch);
        let is_seen = |seen: &Launch| seen.differing(&found.launch).is_empty();
        let is_reported = base == Base::Seen && self.seen.as_ref().is_some_and(is_seen);
        let mut differences = Differences {
            launch: if is_reported { Vec::new() } else { launch },
            ..Differences::default()
        };
        for (name, digest) in &found.tools {
            match self.tools.get(name.as_str()) {
                // A finding that was not approved counts as a change too: a later scanner may find it in the same
                // definition.
                Some(tool) if tool.pinned == Some(*digest) && tool.covers(found, name.as_str()) => {
                }
                Some(tool) if base == Base::Seen && tool.seen == Some(*digest) => {}
                // It was reported and never approved, so it is still new.
                Some(PinnedTool { pinned: None, .. }) | None => {
                    differences.new.push(name.to_string());
                }
                Some(_) => differences.changed.push(name.to_string()),
            }
        }
        let names: HashSet<&str> = found.tools.iter().map(|(name, _)| name.as_str()).collect();
        let is_gone = |name: &&String| !names.contains(name.as_str());
        differences.gone = self.tools.keys().filter(is_gone).cloned().collect();
        differences
    }

    /// Returns true if [`see`](Self::see) would change nothing.
    pub(super) fn has_seen(&self, found: &Observation) -> bool {
        let is_other = !self.launch.differing(&found.launch).is_empty();
        let is_noted = |(name, digest): &(ToolName, Digest)| {
            let tool = self.tools.get(name.as_str());
            // As `see` leaves it: `seen` is set exactly if the definition is not the pinned one.
            tool.is_some_and(|it| it.seen == (it.pinned != Some(*digest)).then_some(*digest))
        };
        !self.launch.is_older_than(&found.launch)
            && self.seen.as_ref() == is_other.then_some(&found.launch)
            && found.tools.iter().all(is_noted)
    }

    /// Records a reported observation without approving it. A launch that an earlier version recorded gets the parts
    /// that this version compares in addition, as at a first contact.
    pub fn see(&mut self, found: &Observation) {
        if self.launch.differing(&found.launch).is_empty() {
            self.launch = found.launch.clone();
            self.seen = None;
        } else {
            self.seen = Some(found.launch.clone());
        }
        for (name, digest) in &found.tools {
            let tool = self.tools.entry(name.to_string()).or_default();
            tool.seen = (tool.pinned != Some(*digest)).then_some(*digest);
        }
    }

    /// Approves an observation. An approval of the whole server removes the tools that no longer exist.
    pub fn approve(&mut self, found: &Observation, selection: Selection<'_>) {
        match selection {
            Selection::Whole => *self = Self::of(found),
            Selection::Tool(chosen) => {
                let is_chosen = |(name, _): &&(ToolName, Digest)| name.as_str() == chosen;
                self.launch = found.launch.clone();
                self.seen = None;
                for (name, digest) in found.tools.iter().filter(is_chosen) {
                    let tool = found.pinned(chosen, *digest);
                    self.tools.insert(name.to_string(), tool);
                }
                // The server no longer has the tool, so there is nothing to approve.
                if !found.tools.iter().any(|tool| is_chosen(&tool)) {
                    self.tools.remove(chosen);
                }
            }
        }
    }

    /// Returns all digests of this record.
    pub(super) fn digests(&self) -> impl Iterator<Item = Digest> {
        let tools = self.tools.values();
        tools.flat_map(|tool| [tool.pinned, tool.seen]).flatten()
    }
}

impl Observation {
    /// Returns the pin of a tool that is approved as it is.
    fn pinned(&self, name: &str, digest: Digest) -> PinnedTool {
        PinnedTool {
            pinned: Some(digest),
            seen: None,
            finding: self.findings.get(name).cloned(),
        }
    }
}

impl PinnedTool {
    /// Returns true if a definition with a finding was approved with it. `code` is that of the finding.
    pub(super) fn releases(&self, digest: impl FnOnce() -> Digest, code: &str) -> bool {
        self.finding.as_deref() == Some(code) && self.pinned == Some(digest())
    }

    /// Returns true if the finding in an observed tool is the approved one.
    fn covers(&self, found: &Observation, name: &str) -> bool {
        let finding = found.findings.get(name);
        finding.is_none_or(|code| self.finding.as_ref() == Some(code))
    }
}
