//! The resources that each client was shown in a list, as hashes of their URIs. A URI belongs to the first server that a client
//! hears it from, so a result that links one of them later does not take it over.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Weak},
};

use ident::ServerIdentifier;

use super::merged::Merged;
use crate::call::Owner;

/// The number of clients whose lists are remembered. When there are more, all are forgotten.
const MAX_CLIENTS: usize = 1000;

type List = Merged<ServerIdentifier>;
/// The hashes of the URIs of a list.
type Hashes = Arc<HashSet<u64>>;

#[derive(Default)]
pub(super) struct ShownUris {
    /// Its keys are random, so no server can find a URI with the hash of another.
    hasher: RandomState,
    clients: HashMap<Owner, Hashes>,
    /// The list that was shown last. Clients that were shown the same list share its hashes.
    last: Option<(Weak<List>, Hashes)>,
}

impl ShownUris {
    /// Records that a client was shown a list.
    pub(super) fn show(&mut self, client: Owner, list: &Arc<List>) {
        let same = self.last.as_ref().filter(|(last, _)| {
            let last = last.upgrade();
            last.is_some_and(|last| Arc::ptr_eq(&last, list))
        });
        let hashes = if let Some((_, hashes)) = same {
            Arc::clone(hashes)
        } else {
            let hashes = list.names().map(|uri| self.hasher.hash_one(uri));
            let hashes: Hashes = Arc::new(hashes.collect());
            self.last = Some((Arc::downgrade(list), Arc::clone(&hashes)));
            hashes
        };
        if self.clients.len() >= MAX_CLIENTS && !self.clients.contains_key(&client) {
            self.clients.clear();
        }
        self.clients.insert(client, hashes);
    }

    /// Returns true if the last list that a client was shown has a URI.
    pub(super) fn contains(&self, client: Owner, uri: &str) -> bool {
        let shown = self.clients.get(&client);
        shown.is_some_and(|shown| shown.contains(&self.hasher.hash_one(uri)))
    }

    /// Forgets a client that has gone.
    pub(super) fn forget(&mut self, client: Owner) {
        self.clients.remove(&client);
    }
}
