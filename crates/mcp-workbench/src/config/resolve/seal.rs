//! Resolves `seal`, `replicaAddress` and `store`.

use std::{fs, fs::Metadata};

use url::Url;

use super::{EntryVariables, Resolver};
use crate::{
    config::{
        problems::{SealKeyFault, ValueFault},
        raw::{RawConfig, RawSeal, Text},
        sources::Sources,
        store::StoreAddress,
    },
    seal::SealKeys,
};

impl Resolver<'_> {
    /// Returns the address at which the other replicas reach this one. Without a key it means nothing.
    pub(super) fn replica_address(&mut self, raw: &RawConfig) -> Option<Url> {
        let text = raw.replica_address.as_ref()?;
        if raw.seal.is_none() {
            let fault = ValueFault::Needs { key: "seal" };
            self.findings.add(text.place.clone(), fault);
        }
        let value = self.text(&mut EntryVariables::default(), text);
        self.url(text, &value)
    }

    /// Returns the store that replicas share. Without a key its values could not be encrypted.
    pub(super) fn store(&mut self, raw: &RawConfig) -> Option<StoreAddress> {
        let text = raw.store.as_ref()?;
        if raw.seal.is_none() {
            let fault = ValueFault::Needs { key: "seal" };
            self.findings.add(text.place.clone(), fault);
        }
        let value = self.text(&mut EntryVariables::default(), text);
        let address = StoreAddress::parse(&value);
        if address.is_none() {
            self.findings.add(text.place.clone(), ValueFault::StoreUrl);
        }
        address
    }

    /// Returns the keys of seals. Without a usable key there are none, which was recorded.
    pub(super) fn seal(&mut self, raw: &RawSeal) -> Option<SealKeys> {
        let current = self.seal_key(raw.key.as_ref()?)?;
        let previous = match &raw.previous_key {
            Some(text) => Some(self.seal_key(text)?),
            None => None,
        };
        // Both are long enough.
        SealKeys::new(&current, previous.as_deref()).ok()
    }

    /// Returns the text of a key, or records why it cannot be used.
    fn seal_key(&mut self, text: &Text) -> Option<String> {
        let expanded = self.expanded(&mut EntryVariables::default(), text);
        // In this order, since a missing key is also a short one.
        let fault = if !expanded.missing.is_empty() {
            SealKeyFault::Missing
        } else if expanded.used.is_empty() {
            // A default of a reference is written in the file too.
            SealKeyFault::Literal
        } else if self.is_exposed(text) {
            SealKeyFault::Exposed
        } else if SealKeys::new(&expanded.text, None).is_err() {
            SealKeyFault::Short
        } else {
            return Some(expanded.text);
        };
        let fault = ValueFault::SealKey(fault);
        self.findings.add(text.place.clone(), fault);
        None
    }

    /// Returns whether a text refers to a file that other users can read.
    fn is_exposed(&self, text: &Text) -> bool {
        let sources = Sources {
            environment: self.environment,
            folder: &self.folder,
        };
        // Well formed, because the text could be expanded.
        let mut references = text.written.split("${file:").skip(1);
        references.any(|rest| {
            let path = rest.split('}').next().unwrap_or_default();
            fs::metadata(sources.whole(path)).is_ok_and(|file| can_others_read(&file))
        })
    }
}

/// Returns whether other users can read a file. One that belongs to another user may be readable for its group: that is
/// how orchestrators hand out secrets.
#[cfg(unix)]
fn can_others_read(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_own = file.uid() == rustix::process::geteuid().as_raw();
    // Of another owner: nobody else reads it, and the group does not write it.
    let others = if is_own { 0o077 } else { 0o027 };
    file.mode() & others != 0
}

/// On other systems files in the user's directories are private already.
#[cfg(not(unix))]
fn can_others_read(_: &Metadata) -> bool {
    false
}
