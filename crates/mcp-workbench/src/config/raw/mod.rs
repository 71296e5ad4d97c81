//! The configuration file as it is written: its types, which are also the source of its JSON Schema, and a reader for
//! JSON with comments. Nothing is expanded or defaulted here.

mod auth;
mod file;
mod keys;
mod limits;
mod oauth;
mod reader;
mod seal;
mod server;
mod types;

pub(super) use self::{
    auth::RawAuth,
    file::{SYNTAX, empty_file, read, syntax_fault},
    limits::RawLimits,
    oauth::{RawExchange, RawGrant, RawOAuth, RawOAuthDetails, RawPer, RawSigningAlgorithm},
    reader::{Node, Reader, json_type, member},
    seal::RawSeal,
    types::{
        RawAudit, RawAuditArguments, RawAuditDetails, RawClient, RawCommand, RawConfig, RawConnect,
        RawEra, RawInheritEnv, RawPermissions, RawPin, RawServer, RawShare, RawToolMode,
        RawToolbox, Text,
    },
};

#[cfg(test)]
mod tests;
