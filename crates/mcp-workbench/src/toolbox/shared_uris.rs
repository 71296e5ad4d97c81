//! Our own URIs for resources that several servers have under one. They begin with the names of toolbox and server. That
//! beginning is compared with the one of each server, and never taken apart.

use std::{borrow::Cow, sync::Arc};

use ident::{ServerIdentifier, ServerName, ToolboxName};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::downstream::{Skill, ToolList, is_within};

/// The beginning of all of them, except for user interfaces and skills in native mode.
const PREFIX: &str = "mcp-workbench://resource/";

/// A skill of an open toolbox, with the URI by which clients read it.
pub(super) struct ShownSkill<'a> {
    pub(super) server: &'a ServerName,
    pub(super) skill: &'a Skill,
    pub(super) uri: Cow<'a, str>,
}

/// Returns the beginning of our URIs for the resources of a server.
pub(crate) fn server_prefix(begin: &str, server: &ServerIdentifier) -> String {
    // Encoded, so that no name can contain the slash behind it.
    let encode = |name: &str| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let toolbox = encode(server.toolbox.as_str());
    format!("{begin}{toolbox}/{}/", encode(server.server.as_str()))
}

/// Returns our URI for a resource of a server.
pub(crate) fn shared_uri(server: &ServerIdentifier, uri: &str) -> String {
    format!("{}{uri}", server_prefix(PREFIX, server))
}

/// Returns the server's own URI for a generated one; `None` if it is not of this server.
pub(crate) fn original_uri<'a>(server: &ServerIdentifier, uri: &'a str) -> Option<&'a str> {
    uri.strip_prefix(&server_prefix(PREFIX, server))
}

/// Returns the skills of a toolbox in the order of the file. One in a directory that another server uses too has our URI.
pub(super) fn shown_skills<'a>(
    toolbox: &ToolboxName,
    catalogue: &'a [(ServerName, Arc<ToolList>)],
) -> Vec<ShownSkill<'a>> {
    let all = || {
        let servers = catalogue.iter();
        servers.flat_map(|(server, list)| list.skills.iter().map(move |skill| (server, skill)))
    };
    let shown = all().map(|(server, skill)| {
        let is_shared = all().any(|(other, it)| {
            // A directory inside the other one counts too, since its files would have two owners.
            let (one, other_root) = (skill.root(), it.root());
            other != server && (is_within(one, other_root) || is_within(other_root, one))
        });
        let identifier = || ServerIdentifier {
            toolbox: toolbox.clone(),
            server: server.clone(),
        };
        ShownSkill {
            server,
            skill,
            uri: if is_shared {
                shared_uri(&identifier(), &skill.uri).into()
            } else {
                skill.uri.as_str().into()
            },
        }
    });
    shown.collect()
}
