//! The configuration file: raw (as written) to resolved (cannot be wrong).
