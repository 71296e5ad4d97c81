//! What strangers' servers may do to a user: what is looked for in what they say, what may be called, and what is done
//! about it. Everything here is a function of plain data; nothing reads a file or waits. Those who ask for a decision
//! carry it out.
//!
//! - `scan`: definitions of tools are checked before anybody gets to read them.
//! - `clean`: results with hidden characters shown, where the configuration says so.
//! - `permissions`: whether a tool may be called, and what the user is asked.

pub(crate) mod clean;
pub(crate) mod permissions;
pub(crate) mod scan;
