//! What a server says of its tools in their annotations, read with caution.

use std::collections::HashMap;

use crate::{
    config::ToolHint,
    ident::ToolName,
    wire::{Kind, RawJson},
};

/// Of how many tools of one server is remembered what was said; of further ones the worst is thought.
const MAX_TOOLS: usize = 20_000;

/// What counts of a tool's annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hints {
    /// Its server says that it changes nothing.
    pub read_only: bool,
    /// It may destroy something, as far as its server says.
    pub destructive: bool,
}

impl Hints {
    pub(crate) const ALL: [Self; 4] = [
        Self::new(false, false),
        Self::new(false, true),
        Self::new(true, false),
        Self::new(true, true),
    ];

    /// What is thought of a tool of which nothing is said.
    pub(crate) const WORST: Self = Self::new(false, true);

    const fn new(read_only: bool, destructive: bool) -> Self {
        Self {
            read_only,
            destructive,
        }
    }

    /// The hints of a definition. As the protocol has it, a tool that does not say that it is read-only is not, and
    /// one that is not may be destructive unless it says otherwise. A tool that says both is not read-only.
    pub(crate) fn of(definition: &RawJson) -> Self {
        let annotations = definition.member("annotations");
        let annotations = annotations.filter(|it| it.kind() == Kind::Object);
        let said = |name: &str| {
            let members = annotations.as_ref()?.members()?;
            let mut values = members.iter().filter(|member| member.key == name);
            let value = values.next()?.value.clone();
            // Of two it is not known which one a reader takes.
            (values.next().is_none() && value.kind() == Kind::Boolean).then(|| value.is_true())
        };
        let destructive = said("destructiveHint");
        let read_only = said("readOnlyHint") == Some(true) && destructive != Some(true);
        Self::new(read_only, !read_only && destructive != Some(false))
    }

    /// Whether a rule about this holds.
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

/// What a server has said of its tools so far, at its worst: a server that turns bad must not talk a tool through the
/// rules by another word about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    tools: HashMap<ToolName, Hints>,
}

impl Said {
    /// Takes in what is said of a tool now; returns what counts.
    pub(crate) fn note(&mut self, tool: &ToolName, hints: Hints) -> Hints {
        if let Some(known) = self.tools.get_mut(tool) {
            *known = known.and(hints);
            return *known;
        }
        if self.tools.len() >= MAX_TOOLS {
            return Hints::WORST;
        }
        self.tools.insert(tool.clone(), hints);
        hints
    }

    /// Whether nothing was said yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Takes in all that was said before.
    pub(crate) fn merge(&mut self, earlier: &Self) {
        for (tool, hints) in &earlier.tools {
            self.note(tool, *hints);
        }
    }

    /// What counts of a tool; nothing if it was never listed.
    pub(crate) fn get(&self, tool: &ToolName) -> Option<Hints> {
        self.tools.get(tool).copied()
    }
}
