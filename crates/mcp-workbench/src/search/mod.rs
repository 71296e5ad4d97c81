//! Finding the right tool: what a person or a model asks for in words, against what tools say of themselves.
//!
//! A tool is six fields: its name, its server's name, its description, the names of its parameters, what is said of
//! them, and what is said of its server. Words are taken apart and stemmed (`tokens`, `stem`, `stop`), and each tool
//! has a number for each word that says how much the tool is about it (`index`): BM25 over the fields with one
//! saturation. A query adds up these numbers for its words and for words of the same meaning (`synonyms`), each by how
//! rare it is (`query`, `rank`), and tools that do what is asked for come first (`action`). A name in full is always
//! at the top (`key`). Nothing here does IO, waits or locks.

mod action;
mod explain;
mod index;
mod key;
mod query;
mod rank;
mod stem;
mod stop;
mod synonyms;
mod text;
mod tokens;
mod weights;

pub(crate) use explain::{Explanation, MatchedWord};
pub use index::Index;
pub(crate) use key::Exact;
pub use weights::Weights;

use crate::{
    ident::{ServerName, ToolIdentifier, ToolName, ToolboxName},
    wire::RawJson,
};

/// A server, as far as it is searched.
#[derive(Debug, Clone)]
pub struct ServerText<'a> {
    /// The toolbox that it belongs to.
    pub toolbox: &'a ToolboxName,
    /// Its name in that toolbox.
    pub server: &'a ServerName,
    /// What is said of it: the toolbox's description, its own title, its instructions.
    pub about: Vec<&'a str>,
}

/// A tool, as far as it is searched.
#[derive(Debug, Clone, Copy)]
pub struct ToolText<'a> {
    pub name: &'a ToolName,
    /// Its definition, as its server sent it.
    pub definition: &'a RawJson,
}

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// Only tools of this toolbox.
    pub toolbox: Option<&'a ToolboxName>,
    /// At most so many hits.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The best tools, the best one first.
    pub hits: Vec<Hit>,
    /// How many tools have anything of the query.
    pub matches: usize,
    /// One of the first hits is about the subject of the query. Otherwise the hits are only the nearest tools.
    pub is_good: bool,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub tool: ToolIdentifier,
    /// How well it fits; only good to compare hits of one query.
    pub score: f32,
    /// Tools that say the same of themselves, which are not hits of their own.
    pub alike: Vec<ToolIdentifier>,
}

/// A part of what a tool says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The name and the title of the tool.
    Name,
    /// The name of its server.
    Server,
    Description,
    /// The names of its parameters.
    Parameter,
    /// The descriptions of its parameters, and the values that they may have.
    ParameterText,
    /// What is said of its server.
    About,
}

impl Field {
    /// All fields, in their order.
    pub const ALL: [Self; 6] = [
        Self::Name,
        Self::Server,
        Self::Description,
        Self::Parameter,
        Self::ParameterText,
        Self::About,
    ];

    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Server => "server",
            Self::Description => "description",
            Self::Parameter => "parameter",
            Self::ParameterText => "parameter description",
            Self::About => "about the server",
        }
    }
}

#[cfg(test)]
mod tests;
