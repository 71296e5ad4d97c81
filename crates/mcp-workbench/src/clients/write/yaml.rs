//! Edits servers in a YAML text. An edit inserts or removes whole lines, so that every other byte stays. It is
//! accepted only if the new text parses to exactly the expected content; otherwise the file is left alone.

use std::ops::Range;

use serde_json::{Value, json};

use super::ClientEditError;
use crate::clients::{
    client::{Client, Format, ServerLayout},
    document::{self, SyntaxError},
};

/// Words that YAML does not read as strings.
const NON_STRING_WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// The indentation of the first server in a file without servers.
const DEFAULT_INDENT: usize = 2;

/// A YAML text that is being edited.
#[derive(Debug)]
pub(super) struct YamlText {
    text: String,
    content: Value,
}

/// The lines that contain the servers.
#[derive(Debug)]
struct Block {
    /// The range of an empty map or list after the key, or an empty range at its position.
    empty: Range<usize>,
    /// The end of the key's line.
    start: usize,
    /// The indentation of the servers.
    column: usize,
    /// The lines of each server, without trailing comments.
    servers: Vec<Range<usize>>,
}

impl YamlText {
    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            content: document::parse(text, Format::Yaml)?,
            text: text.to_owned(),
        })
    }

    /// Sets the entry of a server: replaces it, or appends it to the others.
    pub(super) fn set(
        &mut self,
        client: &Client,
        name: &str,
        entry: &Value,
    ) -> Result<(), ClientEditError> {
        let key = key_of(client)?;
        let mut expected = self.content.clone();
        let servers = servers_in(&mut expected, client, key)?;
        let number = position(servers, name);
        match (servers, number) {
            (Value::Array(list), Some(number)) => list[number] = entry.clone(),
            (Value::Array(list), None) => list.push(entry.clone()),
            (servers, _) => servers[name] = entry.clone(),
        }
        let listed = match client.listing {
            ServerLayout::List => json!([entry]),
            ServerLayout::Map | ServerLayout::MapAndProjects => json!({name: entry}),
        };
        let text = match (Block::find(&self.text, client.listing, key), number) {
            // If the key is there in a layout that `find` does not know, this adds it a second time. The text is then
            // invalid, and `accept` refuses it.
            (None, _) => {
                let lines = format!("{key}:\n{}", indented(&yaml(&listed, 0), DEFAULT_INDENT));
                self.with_lines(self.text.len()..self.text.len(), &lines)
            }
            (Some(block), Some(number)) => {
                let lines = block
                    .servers
                    .get(number)
                    .cloned()
                    .ok_or(ClientEditError::NotInPlace)?;
                self.with_lines(lines, &indented(&yaml(&listed, 0), block.column))
            }
            (Some(block), None) => {
                let at = block.servers.last().map_or(block.start, |it| it.end);
                let mut text = self.with_lines(at..at, &indented(&yaml(&listed, 0), block.column));
                // The empty map is in front of the new lines, so that its position still holds.
                text.replace_range(block.empty, "");
                text
            }
        };
        self.accept(text, expected)
    }

    /// Removes a server; returns true if it was there.
    pub(super) fn remove(&mut self, client: &Client, name: &str) -> Result<bool, ClientEditError> {
        let key = key_of(client)?;
        let mut expected = self.content.clone();
        let servers = servers_in(&mut expected, client, key)?;
        let Some(number) = position(servers, name) else {
            return Ok(false);
        };
        match servers {
            Value::Array(list) => drop(list.remove(number)),
            Value::Object(map) => drop(map.remove(name)),
            _ => {}
        }
        let block =
            Block::find(&self.text, client.listing, key).ok_or(ClientEditError::NotInPlace)?;
        let lines = block.servers.get(number).cloned();
        let mut text = self.with_lines(lines.ok_or(ClientEditError::NotInPlace)?, "");
        if block.servers.len() == 1 {
            // A key without a value would be null, which is not an empty map.
            text.insert_str(block.empty.end, &format!(" {}", empty_of(client.listing)));
        }
        self.accept(text, expected)?;
        Ok(true)
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Returns the text with a range of lines replaced.
    fn with_lines(&self, place: Range<usize>, lines: &str) -> String {
        let before = &self.text[..place.start];
        let separator = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let mut lines = format!("{separator}{lines}");
        // The file has the line ends of Windows.
        if self.text.contains("\r\n") {
            lines = lines.replace('\n', "\r\n");
        }
        format!("{before}{lines}{}", &self.text[place.end..])
    }

    /// Accepts a text if it has the expected content.
    fn accept(&mut self, text: String, expected: Value) -> Result<(), ClientEditError> {
        // Lines are edited as text, so the result is parsed: a file that we would damage is left alone.
        if document::parse(&text, Format::Yaml).as_ref() != Ok(&expected) {
            return Err(ClientEditError::NotInPlace);
        }
        self.text = text;
        self.content = expected;
        Ok(())
    }
}

impl Block {
    /// Finds the lines of the servers under a key of the top level.
    fn find(text: &str, listing: ServerLayout, key: &str) -> Option<Self> {
        let mut lines = lines(text).skip_while(|(_, line)| !is_key(line, key));
        let (range, line) = lines.next()?;
        let behind = &line[key.len() + 1..];
        let value = behind.trim();
        let colon = range.start + key.len() + 1;
        let mut block = Self {
            empty: colon..colon,
            start: range.end,
            column: DEFAULT_INDENT,
            servers: Vec::new(),
        };
        if value == empty_of(listing) {
            block.empty.end += behind.trim_end().len();
            return Some(block);
        }
        // The servers are on the line of their key, where lines cannot be added.
        if !value.is_empty() && !value.starts_with('#') {
            return None;
        }
        let content = lines.filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        for (range, line) in content {
            let column = line.len() - line.trim_start_matches(' ').len();
            let is_item = line[column..].starts_with('-');
            let is_server = match listing {
                ServerLayout::List => is_item,
                ServerLayout::Map | ServerLayout::MapAndProjects => column > 0,
            };
            // Deeper lines belong to the last server; the first line that does not fit ends the block.
            match block.servers.last_mut() {
                None if is_server => block.column = column,
                Some(last) if column > block.column => {
                    last.end = range.end;
                    continue;
                }
                Some(_) if is_server && column == block.column => {}
                _ => break,
            }
            block.servers.push(range);
        }
        Some(block)
    }
}

/// Returns the key of the servers, which is one of the top level for all clients with YAML.
fn key_of(client: &Client) -> Result<&'static str, ClientEditError> {
    match client.key {
        [key] => Ok(key),
        _ => Err(ClientEditError::NotInPlace),
    }
}

/// Returns the servers of a document, creating them if there are none.
fn servers_in<'v>(
    document: &'v mut Value,
    client: &Client,
    key: &str,
) -> Result<&'v mut Value, ClientEditError> {
    if document.is_null() {
        *document = json!({});
    }
    let document = document.as_object_mut();
    let members = document.ok_or(ClientEditError::NotInPlace)?;
    let servers = members.entry(key).or_insert(Value::Null);
    match (&servers, client.listing) {
        (Value::Null, ServerLayout::List) => *servers = json!([]),
        (Value::Null, _) => *servers = json!({}),
        (Value::Array(_), ServerLayout::List)
        | (Value::Object(_), ServerLayout::Map | ServerLayout::MapAndProjects) => {}
        _ => return Err(ClientEditError::NotInPlace),
    }
    Ok(servers)
}

fn position(servers: &Value, name: &str) -> Option<usize> {
    match servers {
        Value::Object(map) => map.keys().position(|it| it == name),
        Value::Array(list) => list.iter().position(|it| it["name"] == name),
        _ => None,
    }
}

fn empty_of(listing: ServerLayout) -> &'static str {
    match listing {
        ServerLayout::List => "[]",
        ServerLayout::Map | ServerLayout::MapAndProjects => "{}",
    }
}

/// Returns the lines of a text with their ranges. The ranges include the line ends, the lines do not.
fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start..at, line.trim_end_matches(['\r', '\n']))
    })
}

fn is_key(line: &str, key: &str) -> bool {
    let rest = line.strip_prefix(key);
    rest.is_some_and(|rest| rest.starts_with(':'))
}

fn indented(lines: &str, column: usize) -> String {
    let mut text = String::new();
    for line in lines.lines() {
        text.push_str(&" ".repeat(column));
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Formats a value as YAML. Strings are quoted as in JSON, because YAML is a superset of it.
pub(in crate::clients) fn yaml(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(key, value)| {
                let key = quoted_key(key);
                if has_lines(value) {
                    format!("{indent}{key}:\n{}", yaml(value, depth + 1))
                } else {
                    format!("{indent}{key}: {value}\n")
                }
            });
            members.collect()
        }
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| {
                let item = yaml(item, depth + 1);
                format!("{indent}- {}", item.trim_start())
            });
            items.collect()
        }
        plain => format!("{indent}{plain}\n"),
    }
}

/// Returns true if a value has lines of its own. Empty maps and lists are written behind their key.
fn has_lines(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Quotes a key if YAML could read it as something else.
fn quoted_key(key: &str) -> String {
    let is_plain = key.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && key
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
        && !NON_STRING_WORDS.contains(&key.to_ascii_lowercase().as_str());
    if is_plain {
        return key.to_owned();
    }
    Value::from(key).to_string()
}
