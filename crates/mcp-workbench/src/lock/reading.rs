//! Parses the text of a lock file. An invalid part makes the whole file unusable.

use std::{collections::BTreeMap, collections::HashSet};

use bytes::Bytes;
use rawjson::{Kind, Member, RawJson, ScanError};
use serde_json::Value;
use thiserror::Error;

use super::{Digest, Launch, Lock, PinnedServer, PinnedTool, document::LAYOUT};
use crate::{
    config::{AccessFault, PinMode},
    visible::visible,
};

/// The line prefixes that version control leaves in a file with merge conflicts.
const CONFLICT_MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// A reason why a lock file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockFault {
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it is larger than {} MiB", .0 / (1024 * 1024))]
    TooLarge(u64),
    #[error("line {0} is a merge conflict marker")]
    Conflict(usize),
    #[error("invalid JSON at line {0}")]
    Syntax(usize),
    /// A different version of the workbench wrote it.
    #[error("its layout is {}, but this version supports only {LAYOUT}{}", visible(.0), newer(.0))]
    Layout(String),
    /// Other users can write it.
    #[error("{} can write it and so approve anything; {}", .0.writer, .0.remedy())]
    Exposed(AccessFault),
    #[error("{} is invalid", visible(.0))]
    Value(String),
    #[error("duplicate key {}", visible(.0))]
    Duplicate(String),
}

/// Returns a hint for a layout of a later version.
fn newer(layout: &str) -> &'static str {
    match layout.parse::<u32>() {
        Ok(layout) if layout > LAYOUT => " (a newer mcp-workbench wrote it: update this one)",
        _ => "",
    }
}

impl Lock {
    /// Parses the text of a file.
    pub fn parse(text: &[u8]) -> Result<Self, LockFault> {
        // Reported before the syntax error that it causes: a lock file is committed, so conflicts are the usual fault.
        if let Some(line) = conflict(text) {
            return Err(LockFault::Conflict(line));
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let root = RawJson::parse(&Bytes::copy_from_slice(text)).map_err(|error| {
            let at = match error {
                ScanError::Syntax(at) => at,
                // Only a syntax error has a position. A file that nests too deeply was not written by us; any line will do.
                ScanError::TooDeep => 0,
            };
            let before = &text[..at.min(text.len())];
            LockFault::Syntax(memchr::memchr_iter(b'\n', before).count() + 1)
        })?;
        let layout = root.member("layout");
        let layout = layout.as_ref().map_or("", RawJson::as_str);
        if layout != LAYOUT.to_string() {
            return Err(LockFault::Layout(
                if layout.is_empty() {
                    "not given"
                } else {
                    layout
                }
                .to_owned(),
            ));
        }
        let mut lock = Self::default();
        for (key, value) in object(&root, "the file")? {
            match key.as_str() {
                "layout" => {}
                "pin" => lock.policy.is_enforced = pin_mode(&value, &key)? == PinMode::Enforce,
                "pins" => {
                    lock.policy.servers =
                        named(&value, &key, |value, at| named(value, at, pin_mode))?;
                }
                "toolboxes" => {
                    lock.toolboxes = named(&value, &key, |value, at| named(value, at, server))?;
                }
                // An unknown key could be a restriction of a later version. Ignoring it would approve too much.
                _ => return Err(LockFault::Value(key)),
            }
        }
        Ok(lock)
    }
}

/// Returns the number of the first line with a conflict marker.
fn conflict(text: &[u8]) -> Option<usize> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let marked = |line: &[u8]| {
        CONFLICT_MARKERS
            .iter()
            .any(|mark| line.starts_with(mark.as_bytes()))
    };
    Some(lines.position(marked)? + 1)
}

fn pin_mode(value: &RawJson, at: &str) -> Result<PinMode, LockFault> {
    let text = value.as_text();
    let mut modes = [PinMode::Off, PinMode::Notice, PinMode::Enforce].into_iter();
    let mode = modes.find(|mode| text.as_deref() == Some(mode.word()));
    mode.ok_or_else(|| LockFault::Value(at.to_owned()))
}

fn server(value: &RawJson, at: &str) -> Result<PinnedServer, LockFault> {
    let mut server = PinnedServer::default();
    for (key, value) in object(value, at)? {
        let at = format!("{at}.{key}");
        match key.as_str() {
            "launch" => server.launch = launch(&value, &at)?,
            "seen" => server.seen = Some(launch(&value, &at)?),
            "tools" => server.tools = named(&value, &at, tool)?,
            _ => return Err(LockFault::Value(at)),
        }
    }
    Ok(server)
}

fn launch(value: &RawJson, at: &str) -> Result<Launch, LockFault> {
    let part = |value: &RawJson, at: &str| {
        serde_json::from_str::<Value>(value.as_str()).map_err(|_| LockFault::Value(at.to_owned()))
    };
    Ok(Launch::of_parts(named(value, at, part)?))
}

fn tool(value: &RawJson, at: &str) -> Result<PinnedTool, LockFault> {
    if value.kind() == Kind::String {
        return Ok(PinnedTool {
            pinned: Some(digest(value, at)?),
            ..PinnedTool::default()
        });
    }
    let mut tool = PinnedTool::default();
    for (key, value) in object(value, at)? {
        let at = format!("{at}.{key}");
        match key.as_str() {
            "pinned" => tool.pinned = Some(digest(&value, &at)?),
            "seen" => tool.seen = Some(digest(&value, &at)?),
            "finding" => {
                let finding = value.as_text().ok_or(LockFault::Value(at))?;
                tool.finding = Some(finding.into_owned());
            }
            _ => return Err(LockFault::Value(at)),
        }
    }
    match tool {
        PinnedTool {
            pinned: None,
            seen: None,
            ..
        }
        | PinnedTool {
            pinned: None,
            finding: Some(_),
            ..
        } => Err(LockFault::Value(at.to_owned())),
        tool => Ok(tool),
    }
}

fn digest(value: &RawJson, at: &str) -> Result<Digest, LockFault> {
    let digest = value.as_text().and_then(|text| Digest::parse(&text));
    digest.ok_or_else(|| LockFault::Value(at.to_owned()))
}

/// Returns the members of an object. Duplicate keys are an error.
fn object(value: &RawJson, at: &str) -> Result<Vec<(String, RawJson)>, LockFault> {
    let Some(members) = value.members() else {
        return Err(LockFault::Value(at.to_owned()));
    };
    let mut keys = HashSet::new();
    let is_duplicate = |member: &&Member<'_>| !keys.insert(member.key.to_string());
    if let Some(member) = members.iter().find(is_duplicate) {
        return Err(LockFault::Duplicate(format!("{at}.{}", member.key)));
    }
    let members = members.into_iter();
    Ok(members
        .map(|member| (member.key.into_owned(), member.value))
        .collect())
}

/// Parses an object whose keys are names.
fn named<T>(
    value: &RawJson,
    at: &str,
    read: impl Fn(&RawJson, &str) -> Result<T, LockFault>,
) -> Result<BTreeMap<String, T>, LockFault> {
    let members = object(value, at)?.into_iter().map(|(name, value)| {
        let value = read(&value, &format!("{at}.{name}"))?;
        Ok((name, value))
    });
    members.collect()
}

#[cfg(test)]
mod tests;
