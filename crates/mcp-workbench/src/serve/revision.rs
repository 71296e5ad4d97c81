//! The protocol revisions that have `initialize`.

use crate::era::LEGACY_REVISIONS;

/// A revision of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Revision {
    V2024November,
    V2025March,
    V2025June,
    /// The newest revision. It is the default.
    #[default]
    V2025November,
}

impl Revision {
    /// All of them, oldest first.
    pub(super) const ALL: [Self; 4] = [
        Self::V2024November,
        Self::V2025March,
        Self::V2025June,
        Self::V2025November,
    ];

    /// Returns the revision for a client that requests `wanted`: that one if it is known, otherwise our newest, and the
    /// client decides.
    pub(super) fn negotiate(wanted: &str) -> Self {
        Self::named(wanted).unwrap_or(Self::V2025November)
    }

    /// Returns the revision of this name, if it is known.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.name() == name)
    }

    /// Returns the name on the wire.
    pub(super) fn name(self) -> &'static str {
        LEGACY_REVISIONS[self as usize]
    }

    /// Returns true if a client takes an event without data, from which it can resume.
    pub(super) fn has_priming_events(self) -> bool {
        self >= Self::V2025November
    }

    /// Returns true if a content may be a link to a resource.
    pub(super) fn has_resource_links(self) -> bool {
        self >= Self::V2025June
    }

    /// Returns true if an array is a batch of messages.
    pub(super) fn has_batches(self) -> bool {
        self == Self::V2025March
    }
}

#[cfg(test)]
mod tests;
