//! Resolves `limits`. Those of a client replace those of the file key by key.

use std::num::NonZeroU64;

use crate::config::{
    limits::{Limits, RequestRate},
    raw::RawLimits,
};

/// Returns the limits, the first of those that are given for each key.
pub(super) fn limits(given: &[Option<&RawLimits>]) -> Limits {
    let first = |key: fn(&RawLimits) -> Option<u64>| {
        let values = given.iter().flatten().filter_map(|it| key(it));
        // The 0 of a client means no limit. It must not fall back to the limit of the file.
        values.map(NonZeroU64::new).next().flatten()
    };
    let burst = first(|it| it.request_burst);
    Limits {
        requests_in_flight: first(|it| it.requests_in_flight),
        requests: first(|it| it.requests_per_second).map(|per_second| RequestRate {
            per_second,
            burst: burst.unwrap_or(per_second),
        }),
        bytes_per_minute: first(|it| it.bytes_per_minute),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn raw(per_second: Option<u64>, burst: Option<u64>) -> RawLimits {
        RawLimits {
            requests_per_second: per_second,
            request_burst: burst,
            ..RawLimits::default()
        }
    }

    #[test]
    fn keys_of_a_client_replace_those_of_the_file() {
        let file = raw(Some(5), Some(9));
        for (client, expected) in [
            (None, Some((5, 9))),
            (Some(raw(None, None)), Some((5, 9))),
            (Some(raw(Some(7), None)), Some((7, 9))),
            (Some(raw(None, Some(2))), Some((5, 2))),
            (Some(raw(Some(0), Some(2))), None),
        ] {
            let limits = limits(&[client.as_ref(), Some(&file)]);
            let rate = limits.requests;
            let rate = rate.map(|it| (it.per_second.get(), it.burst.get()));
            assert_eq!(rate, expected, "{client:?}");
        }
        let only = limits(&[Some(&raw(Some(3), None))]).requests.unwrap();
        assert_eq!(only.burst, only.per_second);
    }
}
