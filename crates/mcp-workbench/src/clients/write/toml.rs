//! Edits servers in a TOML text.

use serde_json::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value as TomlValue};

use super::ClientEditError;
use crate::clients::document::{self, SyntaxError};

/// A TOML text that is being edited.
#[derive(Debug)]
pub(super) struct TomlText {
    document: DocumentMut,
    /// True for CRLF line ends. The parser normalizes them, so they are restored at the end.
    windows_lines: bool,
}

impl TomlText {
    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let windows_lines = text.contains("\r\n");
        let plain = text.replace("\r\n", "\n");
        Ok(Self {
            document: document::parse_toml_text(&plain)?.into_mut(),
            windows_lines,
        })
    }

    /// Sets the table of a server.
    pub(super) fn set(
        &mut self,
        key: &[&str],
        name: &str,
        entry: &Value,
    ) -> Result<(), ClientEditError> {
        let servers = self.place(key, || Item::Table(implicit_table()))?;
        match servers {
            Item::Table(servers) => {
                // The decor is the comments and blank lines in front of the table.
                let decor = servers
                    .get(name)
                    .and_then(Item::as_table)
                    .map(|it| it.decor().clone());
                let mut table = table_of(entry);
                if let Some(decor) = decor {
                    *table.decor_mut() = decor;
                }
                servers.insert(name, Item::Table(table));
                Ok(())
            }
            Item::Value(TomlValue::InlineTable(servers)) => {
                servers.insert(name, inline(entry));
                Ok(())
            }
            _ => Err(no_servers(key)),
        }
    }

    /// Sets the table of a server in a list of tables.
    pub(super) fn set_in_list(
        &mut self,
        key: &[&str],
        name: &str,
        entry: &Value,
    ) -> Result<(), ClientEditError> {
        let servers = self.place(key, || Item::ArrayOfTables(ArrayOfTables::new()))?;
        let Item::ArrayOfTables(servers) = servers else {
            return Err(no_servers(key));
        };
        let table = table_of(entry);
        match position(servers, name) {
            Some(number) => {
                servers.replace(number, table);
            }
            None => servers.push(table),
        }
        Ok(())
    }

    /// Removes a server; returns true if it was there.
    pub(super) fn remove(&mut self, key: &[&str], name: &str) -> bool {
        let mut item = self.document.as_item_mut();
        for key in key {
            match item.get_mut(key) {
                Some(next) => item = next,
                None => return false,
            }
        }
        match item {
            Item::ArrayOfTables(servers) => match position(servers, name) {
                Some(number) => {
                    servers.remove(number);
                    true
                }
                None => false,
            },
            item => item
                .as_table_like_mut()
                .is_some_and(|servers| servers.remove(name).is_some()),
        }
    }

    pub(super) fn finish(self) -> String {
        let text = self.document.to_string();
        if self.windows_lines {
            return text.replace('\n', "\r\n");
        }
        text
    }

    /// Returns the item at a path, which is created if it does not exist.
    fn place(
        &mut self,
        key: &[&str],
        make: impl Fn() -> Item,
    ) -> Result<&mut Item, ClientEditError> {
        let [way @ .., last] = key else {
            return Err(no_servers(key));
        };
        let mut table = self.document.as_table_mut();
        for part in way {
            let next = table
                .entry(part)
                .or_insert_with(|| Item::Table(implicit_table()));
            table = next.as_table_mut().ok_or_else(|| no_servers(key))?;
        }
        Ok(table.entry(last).or_insert_with(make))
    }
}

fn no_servers(key: &[&str]) -> ClientEditError {
    ClientEditError::NoServers { key: key.join(".") }
}

/// Returns a table without a heading of its own.
fn implicit_table() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn position(servers: &ArrayOfTables, name: &str) -> Option<usize> {
    let mut servers = servers.iter();
    servers.position(|table| table.get("name").and_then(Item::as_str) == Some(name))
}

/// Converts an entry to a table; nested values become inline.
pub(in crate::clients) fn table_of(entry: &Value) -> Table {
    let mut table = Table::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        table.insert(key, Item::Value(inline(value)));
    }
    table
}

fn inline(value: &Value) -> TomlValue {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => TomlValue::Array(items.iter().map(inline).collect::<Array>()),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.as_str(), inline(value)));
            TomlValue::InlineTable(members.collect::<InlineTable>())
        }
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        // TOML has no null.
        Value::Null => "".into(),
    }
}
