//! The two eras of the protocol, on both sides of the workbench.

mod modern_servers;
mod probing;
mod remote_servers;
