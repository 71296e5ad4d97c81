//! Reads `limits` of the file and of a client.

use std::ops::RangeInclusive;

#[cfg(test)]
use schemars::JsonSchema;

use super::{
    file::unknown_key,
    keys::LIMIT_KEYS,
    reader::{Node, Reader, is_null},
};
use crate::config::problems::KeyScope;

/// The bounds of numbers of requests.
const REQUESTS: RangeInclusive<u64> = 1..=1_000_000;
/// The bounds of `bytesPerMinute`: a small request, and a terabyte.
const BYTES: RangeInclusive<u64> = 1024..=1_000_000_000_000;

/// The limits of each user, or holder of a token, over HTTP. A request beyond one is refused with status 429.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Limits",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false)
))]
pub(in crate::config) struct RawLimits {
    /// The maximum number of requests that are not answered yet; 0 for no limit.
    #[cfg_attr(test, schemars(extend("maximum" = 1_000_000)))]
    pub(in crate::config) requests_in_flight: Option<u64>,
    /// The maximum number of requests per second in the long run; 0 for no limit.
    #[cfg_attr(test, schemars(extend("maximum" = 1_000_000)))]
    pub(in crate::config) requests_per_second: Option<u64>,
    /// The number of requests that may come at once after a pause. Without it, as many as `requestsPerSecond`.
    #[cfg_attr(test, schemars(extend("minimum" = 1, "maximum" = 1_000_000)))]
    pub(in crate::config) request_burst: Option<u64>,
    /// The maximum number of bytes of requests and responses per minute; 0 for no limit.
    #[cfg_attr(test, schemars(extend("anyOf" = [{"const": 0}, {"minimum": 1024, "maximum": 1_000_000_000_000_u64}])))]
    pub(in crate::config) bytes_per_minute: Option<u64>,
}

pub(super) fn limits(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawLimits> {
    let mut limits = RawLimits::default();
    for entry in reader.entries(node)?.iter().filter(|it| !is_null(&it.node)) {
        let value = &entry.node;
        match entry.key {
            "requestsInFlight" => limits.requests_in_flight = reader.limit(value, REQUESTS),
            "requestsPerSecond" => limits.requests_per_second = reader.limit(value, REQUESTS),
            "requestBurst" => {
                let (least, most) = REQUESTS.into_inner();
                limits.request_burst = reader.positive(value, least, most);
            }
            "bytesPerMinute" => limits.bytes_per_minute = reader.limit(value, BYTES),
            _ => unknown_key(reader, entry, KeyScope::Limits, LIMIT_KEYS),
        }
    }
    Some(limits)
}
