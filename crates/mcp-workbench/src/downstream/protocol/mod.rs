//! What a server of each era is sent, and what its answers mean.

pub(crate) mod conversation;
pub(crate) mod dialect;
pub(crate) mod local;
pub(crate) mod probe;
pub(crate) mod replaced;
pub(crate) mod rounds;
pub(crate) mod subscription;
pub(crate) mod tasks;
