//! This process among the replicas behind one address. What only one process has, such as a parked call, is given out under a
//! sealed handle that names the process, so that no other takes its own for it, and the address at which the others
//! reach it.

use url::Url;

use crate::{
    private_files::random,
    seal::{SealPurpose, Sealer},
};

/// The number of random bytes that name a process.
const INSTANCE_BYTES: usize = 8;
/// Stands for the address of a process that the others cannot reach.
const NO_ADDRESS: &str = "-";

pub(super) struct Replica {
    sealer: Sealer,
    /// The name of this process. With a configured key the handles of earlier processes open too.
    instance: String,
    /// The address at which the other replicas reach this one.
    address: Option<Url>,
}

/// The place of something that a handle names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HandleOwner {
    /// In this process, under this number.
    Here(u64),
    Elsewhere(Elsewhere),
}

/// Something in another process, which may have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elsewhere {
    /// The address of the process, if others can reach it. It is never our own: an earlier process there has ended.
    pub(super) address: Option<Url>,
    /// The words about it that its process has put into the handle.
    pub(super) about: String,
}

impl Replica {
    pub(super) fn new(sealer: Sealer, address: Option<Url>) -> Self {
        let instance = u64::from_ne_bytes(random::<INSTANCE_BYTES>());
        Self {
            sealer,
            instance: format!("{instance:016x}"),
            address,
        }
    }

    /// Returns whether there can be other replicas: processes with the same key.
    pub(super) fn has_others(&self) -> bool {
        self.sealer.is_configured()
    }

    pub(super) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// Returns the handle of something that this process has under a number.
    pub(super) fn handle(&self, purpose: SealPurpose, number: u64) -> String {
        self.handle_about(purpose, number, "")
    }

    /// Returns such a handle with words for a replica that cannot reach this process.
    pub(super) fn handle_about(&self, purpose: SealPurpose, number: u64, about: &str) -> String {
        let address = self.address.as_ref().map_or(NO_ADDRESS, Url::as_str);
        let content = format!("{} {number} {address} {about}", self.instance);
        self.sealer.hide(purpose, &content)
    }

    /// Returns the place of what a handle names; `None` if no replica has issued it.
    pub(super) fn place(&self, purpose: SealPurpose, handle: &str) -> Option<HandleOwner> {
        let content = self.sealer.reveal(purpose, handle)?;
        // The words are last, because they may contain spaces.
        let mut parts = content.splitn(4, ' ');
        let (instance, number) = (parts.next()?, parts.next()?);
        if instance == self.instance {
            return Some(HandleOwner::Here(number.parse().ok()?));
        }
        let address = Url::parse(parts.next()?).ok();
        Some(HandleOwner::Elsewhere(Elsewhere {
            address: address.filter(|it| Some(it) != self.address.as_ref()),
            about: parts.next()?.to_owned(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::SealKeys;

    const PURPOSE: SealPurpose = SealPurpose::ParkedCall;

    fn replica(address: Option<&str>) -> Replica {
        let keys = SealKeys::new(&"k".repeat(32), None).unwrap();
        let address = address.map(|it| Url::parse(it).unwrap());
        Replica::new(Sealer::new(Some(&keys)), address)
    }

    fn elsewhere(address: Option<&str>, about: &str) -> HandleOwner {
        HandleOwner::Elsewhere(Elsewhere {
            address: address.map(|it| Url::parse(it).unwrap()),
            about: about.to_owned(),
        })
    }

    #[test]
    fn a_handle_leads_to_its_process() {
        let (here, there) = ("http://10.0.0.1:1/", "http://10.0.0.2:1/");
        let (one, other) = (replica(Some(here)), replica(Some(there)));
        let handle = one.handle_about(PURPOSE, 7, "a b");
        assert_eq!(one.place(PURPOSE, &handle), Some(HandleOwner::Here(7)));
        assert_eq!(
            other.place(PURPOSE, &handle),
            Some(elsewhere(Some(here), "a b"))
        );
        assert_eq!(one.place(SealPurpose::Run, &handle), None);
        let stranger = Replica::new(Sealer::default(), None);
        assert_eq!(stranger.place(PURPOSE, &handle), None);
    }

    #[test]
    fn an_earlier_process_and_one_without_an_address_cannot_be_reached() {
        let here = Some("http://10.0.0.1:1/");
        let handle = replica(here).handle(PURPOSE, 7);
        assert_eq!(
            replica(here).place(PURPOSE, &handle),
            Some(elsewhere(None, ""))
        );
        let handle = replica(None).handle(PURPOSE, 7);
        assert_eq!(
            replica(here).place(PURPOSE, &handle),
            Some(elsewhere(None, ""))
        );
    }
}
