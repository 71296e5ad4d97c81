//! Secrets, and the rights on the files that hold them.

mod rights;
mod signed_in;
mod sources;
mod sweep;
