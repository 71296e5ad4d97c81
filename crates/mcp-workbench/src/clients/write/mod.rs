//! Edits the text of a client's file in place: comments, order and layout stay.

mod toml;
mod yaml;

use std::path::Path;

use serde_json::Value;

use self::{toml::TomlText, yaml::YamlText};
pub(super) use self::{toml::table_of, yaml::yaml};
use super::{
    client::{Client, Format, ServerLayout},
    document::SyntaxError,
};
use crate::config::{EditError, JsoncText};

/// A client's file as text.
#[derive(Debug)]
pub(crate) struct ClientText {
    client: &'static Client,
    text: Text,
}

#[derive(Debug)]
enum Text {
    Json(JsoncText),
    Toml(Box<TomlText>),
    Yaml(YamlText),
}

/// Reasons why a client's file cannot be edited.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientEditError {
    /// Invalid JSON, or a different value where the servers should be.
    #[error("{0}")]
    Json(#[from] EditError),
    /// Invalid TOML or YAML.
    #[error("{0}\n  hint: fix it there; the client probably cannot read it either")]
    Syntax(#[from] SyntaxError),
    /// The value under the key is not a table of servers.
    #[error("`{key}` is not a table of servers\n  hint: fix it, or add the entry by hand")]
    NoServers { key: String },
    /// YAML in a layout that cannot be edited line by line.
    #[error(
        "the servers cannot be changed without reformatting other lines\n  hint: change them by hand"
    )]
    NotInPlace,
}

impl ClientText {
    /// Parses the text of a file. An empty text counts as an empty file.
    pub(crate) fn parse(client: &'static Client, text: &str) -> Result<Self, ClientEditError> {
        let text = match client.format {
            Format::Json
                if text
                    .trim_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
                    .is_empty() =>
            {
                Text::Json(JsoncText::parse("{}\n")?)
            }
            Format::Json => Text::Json(JsoncText::parse(text)?),
            Format::Toml => Text::Toml(Box::new(TomlText::parse(text)?)),
            Format::Yaml => Text::Yaml(YamlText::parse(text)?),
        };
        Ok(Self { client, text })
    }

    /// Sets the entry of a server, in the section of a project if `section` is given.
    pub(crate) fn set(
        &mut self,
        name: &str,
        section: Option<&Path>,
        entry: &Value,
    ) -> Result<(), ClientEditError> {
        let key = self.client.key;
        match &mut self.text {
            Text::Json(text) => {
                let section = section.map(Path::to_string_lossy);
                Ok(text.set(&place(key, section.as_deref()), name, entry)?)
            }
            Text::Toml(text) => match self.client.listing {
                ServerLayout::List => text.set_in_list(key, name, entry),
                ServerLayout::Map | ServerLayout::MapAndProjects => text.set(key, name, entry),
            },
            Text::Yaml(text) => text.set(self.client, name, entry),
        }
    }

    /// Removes a server, from the section of a project if `section` is given. Returns true if it was there.
    pub(crate) fn remove(
        &mut self,
        name: &str,
        section: Option<&Path>,
    ) -> Result<bool, ClientEditError> {
        let key = self.client.key;
        match &mut self.text {
            Text::Json(text) => {
                let section = section.map(Path::to_string_lossy);
                Ok(text.remove(&place(key, section.as_deref()), name)?)
            }
            Text::Toml(text) => Ok(text.remove(key, name)),
            Text::Yaml(text) => text.remove(self.client, name),
        }
    }

    pub(crate) fn finish(self) -> String {
        match self.text {
            Text::Json(text) => text.finish(),
            Text::Toml(text) => text.finish(),
            Text::Yaml(text) => text.finish(),
        }
    }
}

/// Returns the path to the servers, at the top or in the section of a project.
fn place<'a>(key: &'a [&'a str], section: Option<&'a str>) -> Vec<&'a str> {
    let section = section.map(|section| ["projects", section]);
    section
        .into_iter()
        .flatten()
        .chain(key.iter().copied())
        .collect()
}

#[cfg(test)]
mod tests;
