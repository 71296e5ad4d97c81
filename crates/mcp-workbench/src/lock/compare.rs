//! What was found of a server, compared with what is pinned of it.

use std::collections::{BTreeMap, HashSet};

use super::{Digest, Launch, PinnedServer, PinnedTool};

/// What was found of a server when it was met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    pub launch: Launch,
    /// The tools that it offers, with the digests of their definitions.
    pub tools: Vec<(String, Digest)>,
    /// The codes of the scanner's findings in these tools, which somebody who approves them approves too. A workbench that
    /// serves leaves them out: only a person approves a finding.
    pub findings: BTreeMap<String, String>,
}

/// What an observation is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// With what was approved, or first met.
    Pinned,
    /// With everything that was told already.
    Seen,
}

/// What is not as it was. Names are sorted or in the server's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// The parts of the launch that are others.
    pub launch: Vec<String>,
    pub changed: Vec<String>,
    /// Tools that were not there.
    pub new: Vec<String>,
    /// Tools that are not there any more.
    pub gone: Vec<String>,
}

/// What of a server a person means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection<'a> {
    Whole,
    Tool(&'a str),
}

impl Differences {
    /// Whether something is there that was not approved or told.
    pub fn is_notable(&self) -> bool {
        !(self.launch.is_empty() && self.changed.is_empty() && self.new.is_empty())
    }
}

impl PinnedServer {
    /// What is pinned of a server that is met for the first time, or approved as it is.
    pub fn of(observation: &Observation) -> Self {
        let tools = observation.tools.iter();
        let tools = tools.map(|tool| (tool.0.clone(), observation.pinned(tool)));
        Self {
            launch: observation.launch.clone(),
            seen: None,
            tools: tools.collect(),
        }
    }

    /// In what a server is not as it was.
    pub fn differences(&self, found: &Observation, base: Base) -> Differences {
        let launch = self.launch.differing(&found.launch);
        let is_seen = |seen: &Launch| seen.differing(&found.launch).is_empty();
        let told = base == Base::Seen && self.seen.as_ref().is_some_and(is_seen);
        let mut differences = Differences {
            launch: if told { Vec::new() } else { launch },
            ..Differences::default()
        };
        for (name, digest) in &found.tools {
            match self.tools.get(name) {
                Some(tool) if tool.pinned == Some(*digest) && tool.covers(found, name) => {}
                Some(tool) if base == Base::Seen && tool.seen == Some(*digest) => {}
                Some(PinnedTool { pinned: None, .. }) | None => differences.new.push(name.clone()),
                Some(_) => differences.changed.push(name.clone()),
            }
        }
        let names: HashSet<&str> = found.tools.iter().map(|(name, _)| name.as_str()).collect();
        let is_gone = |name: &&String| !names.contains(name.as_str());
        differences.gone = self.tools.keys().filter(is_gone).cloned().collect();
        differences
    }

    /// Whether seeing it would note nothing new.
    pub(super) fn has_seen(&self, found: &Observation) -> bool {
        let is_other = !self.launch.differing(&found.launch).is_empty();
        let is_noted = |(name, digest): &(String, Digest)| {
            let tool = self.tools.get(name);
            tool.is_some_and(|it| it.seen == (it.pinned != Some(*digest)).then_some(*digest))
        };
        !self.launch.is_older_than(&found.launch)
            && self.seen.as_ref() == is_other.then_some(&found.launch)
            && found.tools.iter().all(is_noted)
    }

    /// Notes what was found and told, without approving it. A launch that an earlier version recorded gets what this one
    /// compares in addition, as at a first contact.
    pub fn see(&mut self, found: &Observation) {
        if self.launch.differing(&found.launch).is_empty() {
            self.launch = found.launch.clone();
            self.seen = None;
        } else {
            self.seen = Some(found.launch.clone());
        }
        for (name, digest) in &found.tools {
            let tool = self.tools.entry(name.clone()).or_default();
            tool.seen = (tool.pinned != Some(*digest)).then_some(*digest);
        }
    }

    /// Approves what was found. Of a whole server, tools that are gone are forgotten.
    pub fn approve(&mut self, found: &Observation, selection: Selection<'_>) {
        match selection {
            Selection::Whole => *self = Self::of(found),
            Selection::Tool(chosen) => {
                self.launch = found.launch.clone();
                self.seen = None;
                for tool in found.tools.iter().filter(|(name, _)| name == chosen) {
                    self.tools.insert(tool.0.clone(), found.pinned(tool));
                }
                if !found.tools.iter().any(|(name, _)| name == chosen) {
                    self.tools.remove(chosen);
                }
            }
        }
    }

    /// All digests that it holds.
    pub(super) fn digests(&self) -> impl Iterator<Item = Digest> {
        let tools = self.tools.values();
        tools.flat_map(|tool| [tool.pinned, tool.seen]).flatten()
    }
}

impl Observation {
    /// Returns what is pinned of one of its tools that is approved as it is.
    fn pinned(&self, (name, digest): &(String, Digest)) -> PinnedTool {
        PinnedTool {
            pinned: Some(*digest),
            seen: None,
            finding: self.findings.get(name).cloned(),
        }
    }
}

impl PinnedTool {
    /// Returns whether a definition with a finding was approved with it. `code` is that of the finding.
    pub(super) fn releases(&self, digest: impl FnOnce() -> Digest, code: &str) -> bool {
        self.finding.as_deref() == Some(code) && self.pinned == Some(digest())
    }

    /// Returns whether the finding in a tool that somebody looks at is the approved one.
    fn covers(&self, found: &Observation, name: &str) -> bool {
        let finding = found.findings.get(name);
        finding.is_none_or(|code| self.finding.as_ref() == Some(code))
    }
}
