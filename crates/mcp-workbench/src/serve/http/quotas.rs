//! The limits of principals: requests in flight, requests per second, and bytes per minute. Requests are counted when
//! their bodies are read, bytes of responses when they are written.

use std::{
    collections::{HashMap, hash_map::Entry},
    num::NonZeroU64,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    bucket::{Bucket, Rate},
    limits::MAX_PRINCIPALS,
};
use crate::{
    call::Principal,
    config::{Limits, RequestRate},
    store::Store,
    sync::lock,
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

/// The use of all principals.
#[derive(Default)]
pub(super) struct Quotas {
    table: Mutex<QuotaTable>,
}

#[derive(Default)]
struct QuotaTable {
    principals: HashMap<Principal, Usage>,
    /// Principals that use nothing are removed when there are this many.
    sweep_at: usize,
}

/// The use of one principal.
struct Usage {
    in_flight: u64,
    requests: Bucket,
    bytes: Bucket,
    /// The time from which it is the same as a new one, once nothing is in flight.
    idle_from: Instant,
}

/// A limit that a request would exceed, and the time until it would not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exceeded {
    pub(super) limit: Limit,
    pub(super) wait: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Limit {
    #[error("more than {0} requests at once")]
    InFlight(NonZeroU64),
    #[error("more than {0} requests per second")]
    Requests(NonZeroU64),
    #[error("more than {0} bytes per minute")]
    Bytes(NonZeroU64),
    #[error("more than {MAX_PRINCIPALS} users within a minute")]
    Principals,
}

impl Exceeded {
    /// Returns the wait in whole seconds, as `Retry-After` has it.
    pub(super) fn retry_after(self) -> u64 {
        let rounds_up = u64::from(self.wait.subsec_nanos() > 0);
        // 0 would make clients retry at once.
        self.wait.as_secs().saturating_add(rounds_up).max(1)
    }
}

/// Requests in flight, until the value is dropped.
pub(super) struct InFlight {
    quotas: Arc<Quotas>,
    principal: Principal,
    requests: u64,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(usage) = self.quotas.table().principals.get_mut(&self.principal) {
            usage.in_flight -= self.requests;
        }
    }
}

/// Counts the bytes of a response.
pub(super) struct Meter {
    quotas: Arc<Quotas>,
    principal: Principal,
    per_minute: NonZeroU64,
}

impl Meter {
    pub(super) fn count(&self, bytes: usize) {
        let (table, now) = (&mut *self.quotas.table(), Instant::now());
        if let Some(usage) = table.usage(self.principal, now) {
            usage.add_bytes(bytes, self.per_minute, now);
        }
    }
}

impl Quotas {
    /// Admits a body with so many requests, which may be none: notifications and answers are never refused, or a client
    /// beyond a limit could not cancel.
    pub(super) fn admit(
        self: &Arc<Self>,
        principal: Principal,
        limits: Limits,
        requests: usize,
        bytes: usize,
    ) -> Result<Option<InFlight>, Exceeded> {
        // Without limits a request takes no lock.
        if limits == Limits::default() {
            return Ok(None);
        }
        let now = Instant::now();
        let table = &mut *self.table();
        let usage = table.usage(principal, now).ok_or(Exceeded {
            limit: Limit::Principals,
            wait: SECOND,
        })?;
        let mut requests = requests as u64;
        if requests > 0 {
            usage.check(limits, requests, now)?;
            if let Some(rate) = limits.requests {
                usage.requests.fill(requests, request_rate(rate), now);
                let empty_at = usage.requests.empty_at(request_rate(rate));
                usage.idle_from = usage.idle_from.max(empty_at);
            }
        }
        if let Some(per_minute) = limits.bytes_per_minute {
            usage.add_bytes(bytes, per_minute, now);
        }
        if limits.requests_in_flight.is_none() {
            requests = 0;
        }
        usage.in_flight += requests;
        Ok((requests > 0).then(|| InFlight {
            quotas: Arc::clone(self),
            principal,
            requests,
        }))
    }

    /// Returns a meter for the responses to a principal, if its bytes are limited.
    pub(super) fn meter(self: &Arc<Self>, principal: Principal, limits: Limits) -> Option<Meter> {
        Some(Meter {
            quotas: Arc::clone(self),
            principal,
            per_minute: limits.bytes_per_minute?,
        })
    }

    fn table(&self) -> MutexGuard<'_, QuotaTable> {
        lock(&self.table)
    }
}

/// Takes requests from the rate that all replicas share. While the store is away, that of the replica has to do.
pub(super) async fn take_shared(
    store: &Store,
    principal: Principal,
    limits: Limits,
    requests: usize,
) -> Result<(), Exceeded> {
    let Some((name, rate)) = principal.holder().zip(limits.requests) else {
        return Ok(());
    };
    if requests == 0 {
        return Ok(());
    }
    match store.take_rate(&name, rate, requests as u64).await {
        Ok(Some(wait)) => Err(Exceeded {
            limit: Limit::Requests(rate.per_second),
            wait,
        }),
        Ok(None) => Ok(()),
        Err(error) => {
            tracing::debug!("counting requests for this replica only: {error}");
            Ok(())
        }
    }
}

impl QuotaTable {
    /// Returns what a principal uses; `None` if there are too many principals.
    fn usage(&mut self, principal: Principal, now: Instant) -> Option<&mut Usage> {
        let count = self.principals.len();
        if count >= self.sweep_at.max(MIN_SWEEP) && !self.principals.contains_key(&principal) {
            self.principals.retain(|_, it| !it.is_idle(now));
            // Twice as many, so that the work is shared by those that come.
            self.sweep_at = (2 * self.principals.len()).min(MAX_PRINCIPALS);
        }
        let is_full = self.principals.len() >= MAX_PRINCIPALS;
        match self.principals.entry(principal) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(_) if is_full => None,
            Entry::Vacant(new) => Some(new.insert(Usage {
                in_flight: 0,
                requests: Bucket::new(now),
                bytes: Bucket::new(now),
                idle_from: now,
            })),
        }
    }
}

/// The number of principals from which those that use nothing are removed.
const MIN_SWEEP: usize = 1024;

impl Usage {
    fn is_idle(&self, now: Instant) -> bool {
        self.in_flight == 0 && self.idle_from <= now
    }

    /// Checks requests against all limits. A batch with more requests than a limit allows at once passes alone.
    fn check(&mut self, limits: Limits, requests: u64, now: Instant) -> Result<(), Exceeded> {
        let exceeded = |limit, wait| Exceeded { limit, wait };
        if let Some(most) = limits.requests_in_flight
            && self.in_flight > most.get().saturating_sub(requests)
        {
            return Err(exceeded(Limit::InFlight(most), SECOND));
        }
        if let Some(rate) = limits.requests
            && let Some(wait) = self.requests.wait(requests, request_rate(rate), now)
        {
            return Err(exceeded(Limit::Requests(rate.per_second), wait));
        }
        if let Some(per_minute) = limits.bytes_per_minute
            // The size of a response is known too late. So a principal may go over the limit once, and waits until
            // that has drained.
            && let Some(wait) = self.bytes.wait(1, byte_rate(per_minute), now)
        {
            return Err(exceeded(Limit::Bytes(per_minute), wait));
        }
        Ok(())
    }

    fn add_bytes(&mut self, bytes: usize, per_minute: NonZeroU64, now: Instant) {
        let rate = byte_rate(per_minute);
        self.bytes.fill(bytes as u64, rate, now);
        self.idle_from = self.idle_from.max(self.bytes.empty_at(rate));
    }
}

fn request_rate(rate: RequestRate) -> Rate {
    Rate {
        units: rate.per_second.get(),
        period: SECOND,
        burst: rate.burst.get(),
    }
}

fn byte_rate(per_minute: NonZeroU64) -> Rate {
    Rate {
        units: per_minute.get(),
        period: MINUTE,
        burst: per_minute.get(),
    }
}

#[cfg(test)]
#[path = "quotas_tests.rs"]
mod tests;
