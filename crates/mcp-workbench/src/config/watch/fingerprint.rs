//! Whether a file is another one than it was: by what is in it, and not by its times.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hasher},
    io::Read,
    path::Path,
};

/// The most of a file that is looked at: more than any configuration may have.
const MOST: u64 = 17 * 1024 * 1024;

/// What is in a file, in a few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(Option<(usize, u64)>);

impl Fingerprint {
    /// The fingerprint of a text.
    pub fn of_text(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// The fingerprint of a file. All that cannot be read, and all that is no plain file, is the same.
    pub fn of_file(file: &Path) -> Self {
        if !fs::metadata(file).is_ok_and(|it| it.is_file()) {
            // Reading a pipe could wait for ever.
            return Self(None);
        }
        let mut bytes = Vec::new();
        let read = File::open(file).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
        match read {
            Ok(_) => Self::of_bytes(&bytes),
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
