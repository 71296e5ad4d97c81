//! Tool search: ranks tools by how well their texts match a query of a person or a model.
//!
//! A tool has six fields: its name, its server's name, its description, the names of its parameters, their
//! descriptions, and the description of its server. Texts are split into words and stemmed (`tokens`, `stem`,
//! `stop`). The index stores the impact of each word on each tool (`index`): BM25 over the fields with one
//! saturation. A query sums these impacts for its words and for words of the same meaning (`synonyms`), weighted by
//! rarity (`query`, `rank`). Misspelled words of a query are corrected (`slip`). Tools whose action fits the query
//! come first (`action`). A tool that the query names in full is always at the top (`key`). Nothing here does IO,
//! waits or locks.

mod action;
mod explain;
mod index;
mod key;
mod query;
mod rank;
mod slip;
mod stem;
mod stop;
mod synonyms;
mod text;
mod tokens;
mod weights;

pub use explain::{Explanation, MatchKind, MatchedWord};
pub use index::Index;
pub use key::Exact;

use ident::{ServerName, ToolIdentifier, ToolName, ToolboxName};
use rawjson::RawJson;

/// The searchable texts of a server.
#[derive(Debug, Clone)]
pub struct ServerText<'a> {
    /// The toolbox of the server.
    pub toolbox: &'a ToolboxName,
    /// The name of the server in that toolbox.
    pub server: &'a ServerName,
    /// Descriptions of the server: the toolbox's description, its own title, its instructions.
    pub about: Vec<&'a str>,
}

/// The searchable texts of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolText<'a> {
    pub name: &'a ToolName,
    /// The definition, as the server sent it.
    pub definition: &'a RawJson,
}

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// Restricts the search to this toolbox.
    pub toolbox: Option<&'a ToolboxName>,
    /// The maximum number of hits.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SearchOutcome {
    /// The best tools, best first.
    pub hits: Vec<Hit>,
    /// The number of tools that match any word of the query.
    pub matches: usize,
    /// True if one of the first hits is about the subject of the query. Otherwise the hits are only the nearest
    /// tools.
    pub is_good: bool,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub tool: ToolIdentifier,
    /// The score, which is comparable only within one query.
    pub score: f32,
    /// Tools with the same texts, which are not listed as hits of their own.
    pub alike: Vec<ToolIdentifier>,
}

/// A part of a tool's text.
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
    /// The description of its server.
    About,
}

impl Field {
    /// All fields, in their order.
    pub(crate) const ALL: [Self; 6] = [
        Self::Name,
        Self::Server,
        Self::Description,
        Self::Parameter,
        Self::ParameterText,
        Self::About,
    ];

    /// Returns the name for users.
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
