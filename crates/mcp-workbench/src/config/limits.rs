//! The limits of each principal over HTTP.

use std::num::NonZeroU64;

/// The limits of one principal; `None` where it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests that are not answered yet.
    pub requests_in_flight: Option<NonZeroU64>,
    pub requests: Option<RequestRate>,
    /// Bytes of requests and responses together.
    pub bytes_per_minute: Option<NonZeroU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    pub per_second: NonZeroU64,
    /// How many may come at once after a pause.
    pub burst: NonZeroU64,
}
