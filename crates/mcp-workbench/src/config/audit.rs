//! The audit log settings.

use std::path::PathBuf;

/// The default size at which the log is rotated.
pub(super) const DEFAULT_MAX_BYTES: u64 = 10 * 1024 * 1024;
/// The default number of files.
pub(super) const DEFAULT_FILES: u32 = 5;
/// The default name of the file.
pub(super) const DEFAULT_FILE: &str = "audit.jsonl";

/// The settings of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The current file. Rotated files are next to it, with numbers.
    pub file: PathBuf,
    /// The size at which the file is rotated.
    pub max_bytes: u64,
    /// The total number of files.
    pub files: u32,
    pub arguments: AuditArguments,
}

/// The part of a call's arguments that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditArguments {
    Shape,
    Values,
}
