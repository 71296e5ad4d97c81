//! Detects whether the content of a file has changed, independent of its timestamps.

use std::{
    hash::{DefaultHasher, Hasher},
    path::Path,
};

use crate::plain_file;

/// The maximum size of a file that is read: more than a configuration may have.
const MAX_BYTES: u64 = 17 * 1024 * 1024;

/// A short digest of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(Option<(usize, u64)>);

impl Fingerprint {
    /// The fingerprint of all files that cannot be read.
    pub(crate) const UNKNOWN: Self = Self(None);

    /// Returns the fingerprint as text, for another process of this build.
    pub(crate) fn to_text(self) -> String {
        format!("{:?}", self.0)
    }

    /// Returns the fingerprint of a text.
    pub fn of_text(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// Returns the fingerprint of a file. All files that cannot be read, are too large or are not regular have the same.
    pub fn of_file(file: &Path) -> Self {
        match plain_file::read(file, MAX_BYTES) {
            Ok(bytes) => Self::of_bytes(&bytes),
            Err(_) => Self::UNKNOWN,
        }
    }

    /// Returns whether the file exists and can be read.
    pub fn is_readable(self) -> bool {
        self.0.is_some()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        // Its keys are constant, unlike those of a `HashMap`, so that processes of one build can compare
        // fingerprints.
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self(Some((bytes.len(), hasher.finish())))
    }
}
