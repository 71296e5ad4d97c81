//! Whether a file is another one than it was: by what is in it, and not by its times.

use std::{
    hash::{DefaultHasher, Hasher},
    path::Path,
};

use crate::plain_file;

/// The largest file that is read: larger than any configuration may be.
const MOST: u64 = 17 * 1024 * 1024;

/// What is in a file, in a few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(Option<(usize, u64)>);

impl Fingerprint {
    /// The fingerprint of a text.
    pub fn of_text(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// Returns the fingerprint of a file. All files that cannot be read, are too large or are not regular have the same.
    pub fn of_file(file: &Path) -> Self {
        match plain_file::read(file, MOST) {
            Ok(bytes) => Self::of_bytes(&bytes),
            Err(_) => Self(None),
        }
    }

    /// Whether there is a file that can be read.
    pub fn is_there(self) -> bool {
        self.0.is_some()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        Self(Some((bytes.len(), hasher.finish())))
    }
}
