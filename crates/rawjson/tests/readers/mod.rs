//! The comparison of the scanner with other readers of JSON, which the test and the longer program share.

pub(crate) mod mutate;
mod scalar;
