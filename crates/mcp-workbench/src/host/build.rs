//! The order of builds of the program. It is total, so that two builds can never replace each other's host in turns.

use std::{fs, time::UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::program_lookup::own_program;

/// A build of the program: its version, and the time of its file for builds of one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Build {
    pub(crate) version: String,
    /// When the program file was last changed, in nanoseconds since 1970; 0 if that is unknown.
    #[serde(default)]
    pub(crate) modified: u64,
}

impl Build {
    /// Returns the build of this process.
    pub(crate) fn of_process() -> Self {
        let file = own_program().and_then(fs::metadata);
        let modified = file
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|it| u64::try_from(it.as_nanos()).ok());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            modified: modified.unwrap_or_default(),
        }
    }

    /// Returns whether this build is newer than another.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        self.rank() > other.rank()
    }

    /// Returns the key by which builds are ordered. A version before a release ranks below the release.
    fn rank(&self) -> (Vec<u64>, bool, &str, u64) {
        let (numbers, suffix) = match self.version.split_once('-') {
            Some((numbers, suffix)) => (numbers, suffix),
            None => (self.version.as_str(), ""),
        };
        let numbers = numbers.split('.').map(|it| it.parse().unwrap_or(0));
        (numbers.collect(), suffix.is_empty(), suffix, self.modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_ordered_by_version_and_then_by_time() {
        let build = |version: &str, modified| Build {
            version: version.into(),
            modified,
        };
        let ascending = [
            build("0.9.0", 9),
            build("0.10.0-rc.1", 9),
            build("0.10.0", 1),
            build("0.10.0", 2),
            build("0.10.1", 0),
            build("1.0.0", 0),
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(one.is_newer_than(other), at > other_at, "{one:?} {other:?}");
            }
        }
    }
}
