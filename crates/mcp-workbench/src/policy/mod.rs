//! What may be offered: rules about servers and their tools that hold whatever a client or a model says.

pub mod lock;
