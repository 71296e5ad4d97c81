//! Parses the text of a lock file. An invalid part makes the whole file unusable.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    fmt,
};

use bytes::{Buf, Bytes};
use rawjson::{Cursor, Kind, RawJson, ScanError};
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
    pub fn parse(text: Vec<u8>) -> Result<Self, LockFault> {
        // Reported before the syntax error that it causes: a lock file is committed, so conflicts are the usual fault.
        if let Some(line) = conflict(&text) {
            return Err(LockFault::Conflict(line));
        }
        let mut text = Bytes::from(text);
        if text.starts_with(b"\xef\xbb\xbf") {
            text.advance(3);
        }
        let root = RawJson::parse(&text).map_err(|error| {
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
        let read = |cursor: &mut Cursor<'_>, at: &Path<'_>| {
            match at.key {
                "layout" => drop(cursor.written()),
                "pin" => lock.policy.is_enforced = pin_mode(cursor, at)? == PinMode::Enforce,
                "pins" => {
                    lock.policy.servers =
                        named(cursor, at, |cursor, at| named(cursor, at, pin_mode))?;
                }
                "toolboxes" => {
                    lock.toolboxes = named(cursor, at, |cursor, at| named(cursor, at, server))?;
                }
                // An unknown key could be a restriction of a later version. Ignoring it would approve too much.
                _ => return Err(at.invalid()),
            }
            Ok(())
        };
        object(&mut Cursor::new(&root), None, read)?;
        Ok(lock)
    }
}

/// The path to a value in the file, for messages.
struct Path<'a> {
    parent: Option<&'a Self>,
    key: &'a str,
}

impl Path<'_> {
    fn invalid(&self) -> LockFault {
        LockFault::Value(self.to_string())
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.key)
    }
}

/// Returns the number of the first line with a conflict marker.
fn conflict(text: &[u8]) -> Option<usize> {
    let ends = memchr::memchr_iter(b'\n', text).map(|end| end + 1);
    let mut starts = std::iter::once(0).chain(ends);
    let marked = |start: usize| {
        CONFLICT_MARKERS
            .iter()
            .any(|mark| text[start..].starts_with(mark.as_bytes()))
    };
    Some(starts.position(marked)? + 1)
}

fn pin_mode(cursor: &mut Cursor<'_>, at: &Path<'_>) -> Result<PinMode, LockFault> {
    let text = cursor.any_text();
    let mut modes = [PinMode::Off, PinMode::Notice, PinMode::Enforce].into_iter();
    let mode = modes.find(|mode| text.as_deref() == Some(mode.word()));
    mode.ok_or_else(|| at.invalid())
}

fn server(cursor: &mut Cursor<'_>, at: &Path<'_>) -> Result<PinnedServer, LockFault> {
    let mut server = PinnedServer::default();
    object(cursor, Some(at), |cursor, at| {
        match at.key {
            "launch" => server.launch = launch(cursor, at)?,
            "seen" => server.seen = Some(launch(cursor, at)?),
            "tools" => server.tools = named(cursor, at, tool)?,
            _ => return Err(at.invalid()),
        }
        Ok(())
    })?;
    Ok(server)
}

fn launch(cursor: &mut Cursor<'_>, at: &Path<'_>) -> Result<Launch, LockFault> {
    let part = |cursor: &mut Cursor<'_>, at: &Path<'_>| {
        let part = cursor
            .written()
            .and_then(|it| serde_json::from_slice::<Value>(it).ok());
        part.ok_or_else(|| at.invalid())
    };
    Ok(Launch::of_parts(named(cursor, at, part)?))
}

fn tool(cursor: &mut Cursor<'_>, at: &Path<'_>) -> Result<PinnedTool, LockFault> {
    if cursor.kind() == Some(Kind::String) {
        return Ok(PinnedTool {
            pinned: Some(digest(cursor, at)?),
            ..PinnedTool::default()
        });
    }
    let mut tool = PinnedTool::default();
    object(cursor, Some(at), |cursor, at| {
        match at.key {
            "pinned" => tool.pinned = Some(digest(cursor, at)?),
            "seen" => tool.seen = Some(digest(cursor, at)?),
            "finding" => {
                let finding = cursor.any_text().ok_or_else(|| at.invalid())?;
                tool.finding = Some(finding.into_owned());
            }
            _ => return Err(at.invalid()),
        }
        Ok(())
    })?;
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
        } => Err(at.invalid()),
        tool => Ok(tool),
    }
}

fn digest(cursor: &mut Cursor<'_>, at: &Path<'_>) -> Result<Digest, LockFault> {
    let digest = cursor.any_text().and_then(|text| Digest::parse(&text));
    digest.ok_or_else(|| at.invalid())
}

/// Reads the object at the cursor. `read` gets the path of each member and must skip its value. Duplicate keys are an error.
fn object<'a>(
    cursor: &mut Cursor<'a>,
    at: Option<&Path<'_>>,
    mut read: impl FnMut(&mut Cursor<'a>, &Path<'_>) -> Result<(), LockFault>,
) -> Result<(), LockFault> {
    let mut keys: Vec<Cow<'a, str>> = Vec::new();
    let mut fault = None;
    let walked = cursor.members_with_any_keys(|cursor, key| {
        let member = Path {
            parent: at,
            key: &key,
        };
        fault = read(cursor, &member).err();
        keys.push(key);
        fault.is_none().then_some(())
    });
    if walked.is_none() {
        let invalid = || LockFault::Value(at.map_or("the file".to_owned(), Path::to_string));
        return Err(fault.unwrap_or_else(invalid));
    }
    match duplicate(&keys) {
        Some(key) => {
            let duplicate = Path { parent: at, key };
            Err(LockFault::Duplicate(duplicate.to_string()))
        }
        None => Ok(()),
    }
}

/// Returns the first key that is a duplicate. Files are written in the order of their keys, so most have none.
fn duplicate<'a>(keys: &'a [Cow<'_, str>]) -> Option<&'a str> {
    if keys.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut known = HashSet::new();
    keys.iter()
        .map(AsRef::as_ref)
        .find(|key| !known.insert(*key))
}

/// Reads an object whose keys are names.
fn named<'a, T>(
    cursor: &mut Cursor<'a>,
    at: &Path<'_>,
    read: impl Fn(&mut Cursor<'a>, &Path<'_>) -> Result<T, LockFault>,
) -> Result<BTreeMap<String, T>, LockFault> {
    let mut members = Vec::new();
    object(cursor, Some(at), |cursor, at| {
        members.push((at.key.to_owned(), read(cursor, at)?));
        Ok(())
    })?;
    // Made of all members at once, a map of sorted names is built without a search for each.
    Ok(members.into_iter().collect())
}

#[cfg(test)]
mod tests;
