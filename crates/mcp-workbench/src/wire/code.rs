//! The codes of JSON-RPC errors.

pub(crate) const PARSE_ERROR: i64 = -32700;
/// It is JSON, but no message.
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters cannot be used.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// Something failed that is not the sender's fault.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
