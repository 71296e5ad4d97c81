//! Names. A tool's identity is three fields. Nothing in the program joins them into a string that is parsed later.

use std::{borrow::Borrow, fmt, marker::PhantomData, sync::Arc};

/// A cheap-to-clone name of one kind; kinds do not mix.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<Kind> {
    text: Arc<str>,
    kind: PhantomData<Kind>,
}

/// Marks the names of toolboxes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OfToolbox {}

/// Marks the names of servers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OfServer {}

/// Marks the names of tools.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OfTool {}

/// Marks the names of clients in the configuration.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OfClient {}

/// The name of a toolbox, as the configuration spells it.
pub type ToolboxName = Name<OfToolbox>;
/// The name of a server inside its toolbox, as the configuration spells it.
pub type ServerName = Name<OfServer>;
/// The name of a tool, as its server spells it.
pub type ToolName = Name<OfTool>;

/// The name of a client, as the configuration spells it.
pub type ClientName = Name<OfClient>;

/// The identity of a server. Two toolboxes may use one server name for different servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerIdentifier {
    /// The toolbox that the server belongs to.
    pub toolbox: ToolboxName,
    /// The server's name in that toolbox.
    pub server: ServerName,
}

/// The identity of a tool, as callers name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolIdentifier {
    /// The toolbox that was opened.
    pub toolbox: ToolboxName,
    /// The server inside the toolbox.
    pub server: ServerName,
    /// The tool of that server.
    pub tool: ToolName,
}

impl ToolIdentifier {
    /// Returns the identity of the server that has the tool.
    pub fn server_identifier(&self) -> ServerIdentifier {
        ServerIdentifier {
            toolbox: self.toolbox.clone(),
            server: self.server.clone(),
        }
    }
}

impl<Kind> Name<Kind> {
    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<Kind> From<&str> for Name<Kind> {
    fn from(name: &str) -> Self {
        Self {
            text: name.into(),
            kind: PhantomData,
        }
    }
}

impl<Kind> Borrow<str> for Name<Kind> {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl<Kind> fmt::Display for Name<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<Kind> fmt::Debug for Name<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
