//! Cache hints on results: how long a result may be cached, and who may share it.

use rawjson::{Kind, RawJson};

/// The member with the lifetime in milliseconds.
pub(super) const TTL: &str = "ttlMs";
/// The member with the scope.
pub(super) const SCOPE: &str = "cacheScope";

/// The clients that may share a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheScope {
    Public,
    /// Only the client that requested it.
    Private,
}

/// The cache hints of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheHints {
    /// The lifetime in milliseconds, from the moment at which the result was received.
    pub ttl_ms: u64,
    pub scope: CacheScope,
}

impl CacheHints {
    /// The members of a result that have hints.
    pub(crate) const MEMBERS: [&str; 2] = [TTL, SCOPE];

    /// The hints of a result whose server gives none.
    pub(crate) const NONE: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };

    /// Reads the hints of a result. Missing ones get the most restrictive value.
    pub(crate) fn of(result: &RawJson) -> Self {
        Self::read(|name| result.member(name))
    }

    /// Reads the hints of a result whose members are known.
    pub(crate) fn read(member: impl Fn(&str) -> Option<RawJson>) -> Self {
        let ttl = member(TTL).filter(|it| it.kind() == Kind::Number);
        let scope = member(SCOPE);
        let public = scope.is_some_and(|it| it.as_text().is_some_and(|it| it == "public"));
        Self {
            // A negative or fractional lifetime counts as missing.
            ttl_ms: ttl.and_then(|it| it.as_str().parse().ok()).unwrap_or(0),
            scope: if public {
                CacheScope::Public
            } else {
                CacheScope::Private
            },
        }
    }

    /// Returns the hints for a value that was made from two results.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            // It is outdated as soon as one of them is.
            ttl_ms: self.ttl_ms.min(other.ttl_ms),
            scope: match (self.scope, other.scope) {
                (CacheScope::Public, CacheScope::Public) => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }

    /// Returns a result with these hints in place of its own.
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

/// Returns whether results of a method carry cache hints.
pub(crate) fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "skills/list"
            | "skills/get"
    )
}
