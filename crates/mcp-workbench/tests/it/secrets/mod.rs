//! Secrets, and the rights on the files that hold them.

mod rights;
mod sources;
mod sweep;
