//! How long a result may be kept, and by whom.

use crate::wire::{Kind, RawJson};

/// The member that says for how many milliseconds.
pub(super) const TTL: &str = "ttlMs";
/// The member that says by whom.
pub(super) const SCOPE: &str = "cacheScope";

/// Who may be given a result that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheScope {
    Public,
    /// Whoever it was made for.
    Private,
}

/// How long a result may be kept, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheHints {
    /// For how many milliseconds.
    pub ttl_ms: u64,
    pub scope: CacheScope,
}

impl CacheHints {
    /// What is said of a result whose server says nothing.
    pub(crate) const NONE: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };

    /// What a result says; what it does not say is assumed to be nothing.
    pub(crate) fn of(result: &RawJson) -> Self {
        let ttl = result.member(TTL).filter(|it| it.kind() == Kind::Number);
        let scope = result.member(SCOPE);
        let public = scope.is_some_and(|it| it.as_text().is_some_and(|it| it == "public"));
        Self {
            ttl_ms: ttl.and_then(|it| it.as_str().parse().ok()).unwrap_or(0),
            scope: if public {
                CacheScope::Public
            } else {
                CacheScope::Private
            },
        }
    }

    /// What holds for something that was made of two results.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            ttl_ms: self.ttl_ms.min(other.ttl_ms),
            scope: match (self.scope, other.scope) {
                (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }

    /// A result with these hints in place of its own.
    #[must_use]
    pub(crate) fn put_on(self, result: &RawJson) -> RawJson {
        let scope = match self.scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        };
        result
            .with_member(TTL, &RawJson::of(&self.ttl_ms))
            .with_member(SCOPE, &RawJson::of(&scope))
    }
}

impl Default for CacheHints {
    fn default() -> Self {
        Self::NONE
    }
}

/// Whether the results of a method say how long they may be kept.
pub(crate) fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}
