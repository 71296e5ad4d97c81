//! Protection of the user from untrusted servers: the scanner of definitions, the cleaning of results, and
//! permissions. Everything here is a function of plain data; nothing reads a file or waits. The callers enforce
//! the decisions.
//!
//! - `scan` checks tool definitions before anybody reads them.
//! - `clean` makes hidden characters in results visible, if the configuration says so.
//! - `permissions` decides if a tool may be called, and words the question to the user.

pub(crate) mod clean;
pub(crate) mod permissions;
pub(crate) mod scan;
