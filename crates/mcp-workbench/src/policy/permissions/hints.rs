//! Tool annotations, read with caution.

use std::collections::HashMap;

use ident::ToolName;
use rawjson::{Kind, RawJson};

use crate::config::ToolHint;

/// The number of tools per server whose hints are remembered; further ones get the worst hints.
const MAX_TOOLS: usize = 20_000;

/// The annotations that matter for permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hints {
    /// The server says that the tool changes nothing.
    pub read_only: bool,
    /// The tool may destroy something; true unless the server denies it.
    pub destructive: bool,
}

impl Hints {
    pub(crate) const ALL: [Self; 4] = [
        Self::new(false, false),
        Self::new(false, true),
        Self::new(true, false),
        Self::new(true, true),
    ];

    /// The hints of a tool without annotations.
    pub(crate) const WORST: Self = Self::new(false, true);

    const fn new(read_only: bool, destructive: bool) -> Self {
        Self {
            read_only,
            destructive,
        }
    }

    /// Reads the hints of a definition. As in the protocol, a tool is not read-only unless it says so, and a tool
    /// that is not read-only may be destructive unless it denies that. A tool that says both is not read-only.
    pub(crate) fn of(definition: &RawJson) -> Self {
        let annotations = definition
            .member("annotations")
            .filter(|it| it.kind() == Kind::Object);
        let said = |name: &str| {
            let members = annotations.as_ref()?.members()?;
            let mut values = members.iter().filter(|member| member.key == name);
            let value = values.next()?.value.clone();
            // Of duplicate keys it is unknown which one a client reads, so neither counts.
            (values.next().is_none() && value.kind() == Kind::Boolean).then(|| value.is_true())
        };
        let destructive = said("destructiveHint");
        let read_only = said("readOnlyHint") == Some(true) && destructive != Some(true);
        Self::new(read_only, !read_only && destructive != Some(false))
    }

    /// Returns whether a definition says in so many words that the tool is destructive. Without the word it may still be.
    pub(crate) fn marks_destructive(definition: &RawJson) -> bool {
        let annotations = definition.member("annotations");
        let said = annotations.and_then(|it| it.member("destructiveHint"));
        said.is_some_and(|it| it.is_true()) && !Self::of(definition).read_only
    }

    /// Returns true if the hint applies to the tool.
    pub(crate) fn holds(self, hint: ToolHint) -> bool {
        match hint {
            ToolHint::ReadOnly => self.read_only,
            ToolHint::Destructive => self.destructive,
        }
    }

    fn and(self, other: Self) -> Self {
        Self::new(
            self.read_only && other.read_only,
            self.destructive || other.destructive,
        )
    }
}

/// The worst hints that a server has given for each tool so far: a server that turns malicious cannot pass the
/// rules by changing its annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HintHistory {
    tools: HashMap<ToolName, Hints>,
}

impl HintHistory {
    /// Merges the current hints of a tool; returns the hints that count.
    pub(crate) fn record(&mut self, tool: &ToolName, hints: Hints) -> Hints {
        if let Some(known) = self.tools.get_mut(tool) {
            *known = known.and(hints);
            return *known;
        }
        // A server that lists endless names must not fill the memory.
        if self.tools.len() >= MAX_TOOLS {
            return Hints::WORST;
        }
        self.tools.insert(tool.clone(), hints);
        hints
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Merges the hints of an earlier session.
    pub(crate) fn merge(&mut self, earlier: &Self) {
        for (tool, hints) in &earlier.tools {
            self.record(tool, *hints);
        }
    }

    /// Returns the hints that count; `None` if the tool was never listed.
    pub(crate) fn get(&self, tool: &ToolName) -> Option<Hints> {
        self.tools.get(tool).copied()
    }
}
