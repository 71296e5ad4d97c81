//! Edits the toolboxes and servers of a configuration text.

use serde_json::{Value, json};

use super::{error::EditError, text::JsoncText};
use crate::near::nearest;

/// The key of the toolboxes.
const TOOLBOXES: &str = "toolboxes";

/// The key of the servers of a toolbox.
const SERVERS: &str = "mcpServers";

/// The key of the permissions of a server.
const PERMISSIONS: &str = "permissions";

/// The text of a configuration file, which is changed in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigText(JsoncText);

impl ConfigText {
    /// Parses the text of a file. It checks only that the text is an object in JSON with comments.
    pub(crate) fn parse(text: &str) -> Result<Self, EditError> {
        let text = JsoncText::parse(text)?;
        // Toolboxes that are not an object are reported before anything is changed.
        text.keys(&[TOOLBOXES])?;
        Ok(Self(text))
    }

    /// Returns the names of the toolboxes, in the order of the file.
    pub(crate) fn toolboxes(&self) -> Result<Vec<String>, EditError> {
        self.0.keys(&[TOOLBOXES])
    }

    /// Returns the names of the servers of a toolbox, in the order of the file, disabled ones included.
    pub(crate) fn server_names(&self, toolbox: &str) -> Result<Vec<String>, EditError> {
        self.known_toolbox(toolbox)?;
        self.0.keys(&[TOOLBOXES, toolbox, SERVERS])
    }

    /// Adds a toolbox without servers.
    pub(crate) fn add_toolbox(&mut self, name: &str, description: &str) -> Result<(), EditError> {
        if self.toolboxes()?.iter().any(|known| known == name) {
            return Err(EditError::ToolboxExists { name: name.into() });
        }
        let toolbox = json!({"description": description, SERVERS: {}});
        self.0.set(&[TOOLBOXES], name, &toolbox)
    }

    pub(crate) fn add_server(
        &mut self,
        toolbox: &str,
        name: &str,
        entry: &Value,
    ) -> Result<(), EditError> {
        if self
            .server_names(toolbox)?
            .iter()
            .any(|known| known == name)
        {
            return Err(EditError::ServerExists {
                toolbox: toolbox.into(),
                name: name.into(),
            });
        }
        self.0.set(&[TOOLBOXES, toolbox, SERVERS], name, entry)
    }

    /// Removes a toolbox with all its servers.
    pub(crate) fn remove_toolbox(&mut self, name: &str) -> Result<(), EditError> {
        self.known_toolbox(name)?;
        self.0.remove(&[TOOLBOXES], name)?;
        Ok(())
    }

    pub(crate) fn remove_server(&mut self, toolbox: &str, name: &str) -> Result<(), EditError> {
        self.known_server(toolbox, name)?;
        self.0.remove(&[TOOLBOXES, toolbox, SERVERS], name)?;
        Ok(())
    }

    /// Returns the line of the comment directly above a server or toolbox, which stays if that is removed.
    pub(crate) fn comment_above(
        &self,
        toolbox: &str,
        server: Option<&str>,
    ) -> Result<Option<usize>, EditError> {
        match server {
            Some(server) => self.0.comment_above(&[TOOLBOXES, toolbox, SERVERS], server),
            None => self.0.comment_above(&[TOOLBOXES], toolbox),
        }
    }

    /// Enables or disables a server of a toolbox, or all of them. A toolbox itself has no such switch.
    pub(crate) fn set_enabled(
        &mut self,
        toolbox: &str,
        server: Option<&str>,
        enabled: bool,
    ) -> Result<(), EditError> {
        let servers = match server {
            None => self.server_names(toolbox)?,
            Some(server) => {
                self.known_server(toolbox, server)?;
                vec![server.to_owned()]
            }
        };
        for server in servers {
            let path = [TOOLBOXES, toolbox, SERVERS, &server];
            if enabled {
                self.enable(&path)?;
            } else {
                self.disable(&path)?;
            }
        }
        Ok(())
    }

    /// Sets the rules under `allow` of a server.
    pub(crate) fn set_allowed(
        &mut self,
        toolbox: &str,
        server: &str,
        rules: &[String],
    ) -> Result<(), EditError> {
        self.known_server(toolbox, server)?;
        let entry = [TOOLBOXES, toolbox, SERVERS, server];
        if !self.0.keys(&entry)?.iter().any(|it| it == PERMISSIONS) {
            self.0.set(&entry, PERMISSIONS, &json!({}))?;
        }
        let permissions = [TOOLBOXES, toolbox, SERVERS, server, PERMISSIONS];
        self.0.set(&permissions, "allow", &json!(rules))
    }

    pub(crate) fn finish(self) -> String {
        self.0.finish()
    }

    fn disable(&mut self, entry: &[&str]) -> Result<(), EditError> {
        let keys = self.0.keys(entry)?;
        let has = |wanted: &str| keys.iter().any(|key| key == wanted);
        // An entry with `enabled` is switched by that key, so that it does not say two things.
        if has("enabled") && !has("disabled") {
            return self.0.set(entry, "enabled", &false.into());
        }
        self.0.set(entry, "disabled", &true.into())
    }

    /// Enables an entry: removes a key that `disable` added, and changes one that the user wrote.
    fn enable(&mut self, entry: &[&str]) -> Result<(), EditError> {
        if self.0.is_flag(entry, "enabled", false)? {
            self.0.set(entry, "enabled", &true.into())?;
        }
        if !self.0.is_flag(entry, "disabled", true)? {
            return Ok(());
        }
        // `disable` adds its key at the end. Without a comment behind it, removing the key restores the text.
        if self.0.is_bare_end(entry, "disabled")? {
            self.0.remove(entry, "disabled")?;
            return Ok(());
        }
        self.0.set(entry, "disabled", &false.into())
    }

    fn known_toolbox(&self, name: &str) -> Result<(), EditError> {
        let known = self.toolboxes()?;
        if known.iter().any(|it| it == name) {
            return Ok(());
        }
        Err(EditError::UnknownToolbox {
            near: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
            name: name.into(),
            known,
        })
    }

    fn known_server(&self, toolbox: &str, name: &str) -> Result<(), EditError> {
        let known = self.server_names(toolbox)?;
        if known.iter().any(|it| it == name) {
            return Ok(());
        }
        Err(EditError::UnknownServer {
            toolbox: toolbox.into(),
            near: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
            name: name.into(),
            known,
        })
    }
}
