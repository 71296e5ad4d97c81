//! The translation table: what each era adds and takes away, and that nothing else changes.

mod headers;
mod properties;
mod table;
