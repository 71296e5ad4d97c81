//! The codes of JSON-RPC errors.

/// The text is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// It is JSON, but no message.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters cannot be used.
pub const INVALID_PARAMS: i64 = -32602;
/// Something failed that is not the sender's fault.
pub const INTERNAL_ERROR: i64 = -32603;
