//! The requests for servers of each era, and the meaning of their responses.

pub(crate) mod conversation;
pub(crate) mod dialect;
pub(crate) mod local;
pub(crate) mod probe;
pub(crate) mod replaced;
pub(crate) mod rounds;
pub(crate) mod subscription;
pub(crate) mod tasks;
