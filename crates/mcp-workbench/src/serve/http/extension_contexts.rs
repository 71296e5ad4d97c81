//! The workbenches of clients that declare extensions or experimental capabilities. A legacy server learns them once, at its
//! start, and every server may list its tools by them. So clients share a workbench, and with it servers, only if they
//! declare the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    limits::{MAX_EXTENSION_SETS, MAX_EXTENSION_SETS_OF_PRINCIPAL, MIN_USER_IDLE},
    refusal::Refusal,
};
use crate::{
    call::{ExtensionSet, Principal},
    downstream::ViewId,
    serve::ServeContext,
    sync::lock,
    workbench::Workbench,
};

/// The contexts of the sets that were declared lately.
pub(super) struct ExtensionContexts {
    table: Mutex<HashMap<Key, ExtensionContext>>,
    /// How long a set may be unused.
    idle_limit: Duration,
}

/// The workbench that has the configuration, and the set.
type Key = (ViewId, ExtensionSet);

struct ExtensionContext {
    context: ServeContext,
    /// The first principal that declared it. Whoever declares many makes room among its own.
    principal: Principal,
    /// The time of the last request.
    used: Instant,
}

impl ExtensionContexts {
    pub(super) fn new(session_timeout: Duration) -> Self {
        Self {
            table: Mutex::default(),
            idle_limit: session_timeout.max(MIN_USER_IDLE),
        }
    }

    /// Returns the context of a set, beside the one that has the configuration of its client. `is_used` says whether a
    /// workbench has a session or a running request.
    pub(super) fn of(
        &self,
        base: &ServeContext,
        set: ExtensionSet,
        principal: Principal,
        is_used: impl Fn(&Arc<Workbench>) -> bool,
    ) -> Result<ServeContext, Refusal> {
        let mut table = lock(&self.table);
        let key = (base.workbench.pool().view(), set);
        if !table.contains_key(&key) {
            make_room(&mut table, principal, is_used)?;
        }
        let known = table.entry(key).or_insert_with(|| ExtensionContext {
            context: base.beside(base.workbench.for_extensions(set)),
            principal,
            used: Instant::now(),
        });
        known.used = Instant::now();
        // Several users may share the set. Each request has the name of its own.
        Ok(ServeContext {
            user: base.user.clone(),
            ..known.context.clone()
        })
    }

    /// Ends the workbenches that were unused for too long.
    pub(super) fn sweep(&self, is_used: impl Fn(&Arc<Workbench>) -> bool) {
        let now = Instant::now();
        lock(&self.table).retain(|_, it| {
            let is_idle = now.saturating_duration_since(it.used) >= self.idle_limit;
            let is_over = is_idle && !is_used(&it.context.workbench);
            if is_over {
                it.context.workbench.end_user();
            }
            !is_over
        });
    }
}

/// Makes room for another set: among those of its principal if these are many, or else among all.
fn make_room(
    table: &mut HashMap<Key, ExtensionContext>,
    principal: Principal,
    is_used: impl Fn(&Arc<Workbench>) -> bool,
) -> Result<(), Refusal> {
    let own = table.values().filter(|it| it.principal == principal);
    let has_many = own.count() >= MAX_EXTENSION_SETS_OF_PRINCIPAL;
    if !has_many && table.len() < MAX_EXTENSION_SETS {
        return Ok(());
    }
    let mut candidates: Vec<_> = table
        .iter()
        .filter(|(_, it)| !has_many || it.principal == principal)
        .collect();
    candidates.sort_unstable_by_key(|(_, it)| it.used);
    let idlest = candidates
        .into_iter()
        .find(|(_, it)| !is_used(&it.context.workbench));
    let key = *idlest.ok_or(Refusal::TooManyExtensionSets)?.0;
    if let Some(ended) = table.remove(&key) {
        ended.context.workbench.end_user();
    }
    Ok(())
}
