//! What strangers' servers may do to a user: what is looked for in what they say, and what is done about it. Everything
//! here is a function of text; nothing reads a file or waits.
//!
//! - `scan`: definitions of tools are checked before anybody gets to read them.
//! - `clean`: results with hidden characters shown, where the configuration says so.

pub mod clean;
pub mod scan;
