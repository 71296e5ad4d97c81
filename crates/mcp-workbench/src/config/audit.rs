//! The audit log, as the file asks for it.

use std::path::PathBuf;

/// The size at which a file is put aside, where the configuration names none.
pub(super) const DEFAULT_MAX_BYTES: u64 = 10 * 1024 * 1024;
/// How many files are kept, where the configuration says nothing.
pub(super) const DEFAULT_FILES: u32 = 5;
/// The name of the file, where the configuration names none.
pub(super) const DEFAULT_FILE: &str = "audit.jsonl";

/// Where calls are noted, and how much of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The file that is written to. Older ones stand beside it, with numbers.
    pub file: PathBuf,
    /// The size at which a file is put aside.
    pub max_bytes: u64,
    /// How many files are kept in all.
    pub files: u32,
    /// What is noted of arguments.
    pub arguments: NotedArguments,
}

/// What is noted of the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotedArguments {
    Shape,
    Values,
}
