//! The configuration file as it is written: its types, which are also the source of its JSON Schema, and a reader for
//! JSON with comments. Nothing is expanded or defaulted here.

mod file;
mod keys;
mod oauth;
mod reader;
mod server;
mod types;

pub(super) use self::{
    file::{SYNTAX, empty_file, read, syntax_fault},
    oauth::{RawGrant, RawOAuth, RawOAuthDetails, RawSigningAlgorithm},
    reader::{Node, Reader, json_type, member},
    types::{
        RawAudit, RawAuditArguments, RawAuditDetails, RawCommand, RawConfig, RawConnect, RawEra,
        RawInheritEnv, RawPermissions, RawPin, RawServer, RawShare, RawToolMode, RawToolbox, Text,
    },
};

#[cfg(test)]
mod tests;
