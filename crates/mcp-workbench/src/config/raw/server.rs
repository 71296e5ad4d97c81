//! Reads an entry of `mcpServers`, in our spelling or that of another client.

use std::ops::RangeInclusive;

use indexmap::IndexMap;
use jsonc_parser::{ast::Value, common::Ranged};

use super::{
    file::{named, pin, unknown_key},
    keys::{self, PERMISSION_KEYS, ServerKey, ServerKeyMeaning},
    oauth,
    reader::{Entry, Node, Reader, is_null},
    types::{
        MAX_TIMEOUT_MS, Presence, RawCommand, RawEra, RawInheritEnv, RawPermissions, RawServer,
        RawShare, TOOL_LIST_BYTES, TOOLS, Text,
    },
};
use crate::{
    config::problems::{KeyFault, KeyScope, Named, ValueFault},
    near::nearest,
};

const SHARES: &[&str] = &["auto", "machine", "project", "client"];
const ERAS: &[&str] = &["auto", "legacy", "modern"];

/// A known key with its value. A lower rank means a better spelling.
struct Understood<'e, 'v> {
    key: ServerKey,
    rank: usize,
    entry: &'e Entry<'v>,
}

pub(super) fn server(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawServer> {
    let entries = reader.entries(node)?;
    let understood = understood(reader, &entries);
    let mut server = RawServer {
        presence: Presence {
            place: reader.place(node.value.start(), &node.path),
            command: understood.iter().any(|it| it.key == ServerKey::Command),
            url: understood.iter().any(|it| it.key == ServerKey::Url),
        },
        ..RawServer::default()
    };
    for it in &understood {
        let best = understood.iter().filter(|other| other.key == it.key);
        match best.min_by_key(|other| other.rank) {
            Some(best) if best.rank < it.rank => {
                let fault = KeyFault::SpeltTwice {
                    kept: best.entry.key.into(),
                    ignored: it.entry.key.into(),
                };
                reader.report(it.entry.key_start, &it.entry.node.path, fault);
            }
            _ => read_key(reader, &mut server, it.key, &it.entry.node),
        }
    }
    Some(server)
}

/// Returns the known entries, and records unknown ones.
fn understood<'e, 'v>(
    reader: &mut Reader<'_>,
    entries: &'e [Entry<'v>],
) -> Vec<Understood<'e, 'v>> {
    let mut understood = Vec::new();
    // `null` is how some clients write an unset key.
    for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
        match keys::meaning(entry.key) {
            ServerKeyMeaning::Understood(key, rank) => {
                understood.push(Understood { key, rank, entry });
            }
            ServerKeyMeaning::Ignored => {}
            ServerKeyMeaning::Unknown => {
                let fault = KeyFault::Unknown {
                    key: entry.key.into(),
                    scope: KeyScope::Server,
                    near: nearest(entry.key, keys::understood()),
                };
                reader.report(entry.key_start, &entry.node.path, fault);
            }
        }
    }
    understood
}

fn read_key(reader: &mut Reader<'_>, server: &mut RawServer, key: ServerKey, node: &Node<'_>) {
    let tool = "tool name";
    match key {
        ServerKey::Command => server.command = command(reader, node),
        ServerKey::Args => server.args = reader.texts(node),
        ServerKey::Env => server.env = Some(variables(reader, node)),
        ServerKey::Cwd => server.cwd = reader.filled_text(node, "directory"),
        ServerKey::EnvFile => server.env_file = reader.filled_text(node, "file name"),
        ServerKey::InheritEnv => server.inherit_env = inherit_env(reader, node),
        ServerKey::Url => server.url = reader.filled_text(node, "URL"),
        ServerKey::Headers => server.headers = Some(headers(reader, node)),
        ServerKey::Type => server.kind = reader.filled_text(node, "type"),
        ServerKey::Transport => server.transport = reader.filled_text(node, "transport"),
        ServerKey::ToolFilters => server.tool_filters = filters(reader, node),
        ServerKey::IncludeTools => server.include_tools = reader.filled_texts(node, tool),
        ServerKey::ExcludeTools => server.exclude_tools = reader.filled_texts(node, tool),
        ServerKey::DisabledTools => server.disabled_tools = reader.filled_texts(node, tool),
        ServerKey::Permissions => server.permissions = permissions(reader, node),
        ServerKey::Disabled => server.disabled = reader.flag(node),
        ServerKey::Enabled => server.enabled = reader.flag(node),
        ServerKey::Era => server.era = era(reader, node),
        ServerKey::Pin => server.pin = pin(reader, node),
        ServerKey::Share => server.share = share(reader, node),
        ServerKey::ConnectTimeoutMs => server.connect_timeout_ms = milliseconds(reader, node),
        ServerKey::CallTimeoutMs => server.call_timeout_ms = milliseconds(reader, node),
        ServerKey::MaxCallMs => server.max_call_ms = milliseconds(reader, node),
        ServerKey::IdleTimeoutMs => server.idle_timeout_ms = milliseconds(reader, node),
        ServerKey::MaxResultChars => server.max_result_chars = reader.budget(node),
        ServerKey::ResultSelect => server.result_select = Some(result_select(reader, node)),
        ServerKey::MaxTools => server.max_tools = number_within(reader, node, TOOLS),
        ServerKey::MaxToolListBytes => {
            server.max_tool_list_bytes = number_within(reader, node, TOOL_LIST_BYTES);
        }
        ServerKey::Sanitize => server.sanitize = reader.flag(node),
        ServerKey::OAuth => server.oauth = oauth::oauth(reader, node),
    }
}

fn command(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawCommand> {
    let Value::Array(array) = node.value else {
        let program = reader.filled_text(node, "command")?;
        return Some(RawCommand::Program(program));
    };
    let line = reader.texts(node)?;
    let Some(program) = line.first() else {
        // If all items were invalid, that was reported already.
        if array.elements.is_empty() {
            reader.report_value(node, ValueFault::Empty { what: "command" });
        }
        return None;
    };
    if program.written.trim().is_empty() {
        reader.report_value(node, ValueFault::Empty { what: "command" });
        return None;
    }
    Some(RawCommand::Line(line))
}

fn variables(reader: &mut Reader<'_>, node: &Node<'_>) -> IndexMap<String, Text> {
    named(reader, node, Named::Variable, |reader, value| {
        reader.text(value)
    })
}

fn headers(reader: &mut Reader<'_>, node: &Node<'_>) -> IndexMap<String, Text> {
    named(reader, node, Named::Header, |reader, value| {
        let text = reader.text(value)?;
        // A line break would begin another header.
        if text.written.contains(['\r', '\n']) {
            reader.report_value(value, ValueFault::LineBreak);
        }
        Some(text)
    })
}

fn result_select(reader: &mut Reader<'_>, node: &Node<'_>) -> IndexMap<String, Text> {
    named(reader, node, Named::Tool, |reader, value| {
        reader.filled_text(value, "filter")
    })
}

fn inherit_env(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawInheritEnv> {
    match node.value {
        Value::BooleanLit(boolean) => Some(RawInheritEnv::All(boolean.value)),
        Value::Array(_) => reader
            .filled_texts(node, "variable name")
            .map(RawInheritEnv::Names),
        _ => {
            reader.wrong_type(node, "a boolean or an array of names");
            None
        }
    }
}

fn era(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawEra> {
    let word = reader.text(node)?.written;
    let fault = match word.as_str() {
        "auto" => return Some(RawEra::Auto),
        "legacy" => return Some(RawEra::Legacy),
        "modern" => return Some(RawEra::Modern),
        _ => ValueFault::UnknownWord {
            near: nearest(&word, ERAS.iter().copied()),
            found: word,
            known: ERAS,
        },
    };
    reader.report_value(node, fault);
    None
}

fn share(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawShare> {
    let word = reader.text(node)?.written;
    let fault = match word.as_str() {
        "auto" => return Some(RawShare::Auto),
        "machine" => return Some(RawShare::Machine),
        "project" => return Some(RawShare::Project),
        "client" => return Some(RawShare::Client),
        _ => ValueFault::UnknownWord {
            near: nearest(&word, SHARES.iter().copied()),
            found: word,
            known: SHARES,
        },
    };
    reader.report_value(node, fault);
    None
}

fn filters(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Vec<Text>> {
    let filters = reader.filled_texts(node, "filter")?;
    // It would exclude nothing.
    for filter in filters.iter().filter(|filter| filter.written == "!") {
        reader.report_text(filter, ValueFault::Empty { what: "filter" });
    }
    Some(filters)
}

pub(super) fn permissions(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<RawPermissions> {
    let entries = reader.entries(node)?;
    let mut permissions = RawPermissions::default();
    for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
        let list = match entry.key {
            "allow" => &mut permissions.allow,
            "ask" => &mut permissions.ask,
            "deny" => &mut permissions.deny,
            "code" => &mut permissions.code,
            _ => {
                unknown_key(reader, entry, KeyScope::Permissions, PERMISSION_KEYS);
                continue;
            }
        };
        *list = reader.filled_texts(&entry.node, "rule");
    }
    Some(permissions)
}

fn number_within(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    bounds: RangeInclusive<u64>,
) -> Option<u64> {
    let (least, most) = bounds.into_inner();
    reader.positive(node, least, most)
}

fn milliseconds(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<u64> {
    reader.positive(node, 1, MAX_TIMEOUT_MS)
}
