//! A set: tools of some servers, and queries with the tools that answer them.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use ident::{ServerName, ToolIdentifier, ToolName, ToolboxName};
use rawjson::RawJson;
use search::{Index, ServerText, ToolText};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use thiserror::Error;

/// A reason why a set cannot be read.
#[derive(Debug, Error)]
pub enum SetError {
    /// A file cannot be read.
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("{path}, line {line}: {error}")]
    Line {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        error: serde_json::Error,
    },
}

/// A query and its answers.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    /// Its id in the set, as it is written there: mostly a text, sometimes a number.
    pub qid: Value,
    pub query: String,
    #[serde(default)]
    pub kind: String,
    /// The needs in it; any tool of a group meets one.
    #[serde(default)]
    pub groups: Vec<Vec<String>>,
}

/// A server and its tools, ready to be put into an index.
#[derive(Debug)]
pub struct Shelf {
    pub server: ServerName,
    /// Its descriptions.
    pub about: Vec<String>,
    /// Its tools: name and definition.
    pub tools: Vec<(ToolName, RawJson)>,
}

/// A set as it was read.
#[derive(Debug)]
pub struct Set {
    /// The name of its folder.
    pub name: String,
    pub shelves: Vec<Shelf>,
    pub questions: Vec<Question>,
    /// Queries that no tool answers.
    pub unanswered: Vec<Question>,
    /// The toolbox that all servers are put into.
    toolbox: ToolboxName,
    /// The ids of each tool in the set, by server and name; several if the set has a tool twice.
    ids: HashMap<(String, String), Vec<String>>,
}

#[derive(Deserialize)]
struct ServerLine {
    server: String,
    description: Option<String>,
    title: Option<String>,
    category: Option<String>,
}

#[derive(Deserialize)]
struct ToolLine {
    id: Option<String>,
    server: String,
    name: String,
}

impl Set {
    /// Reads a folder. The file about servers is optional.
    pub fn read(folder: &Path) -> Result<Self, SetError> {
        let servers = lines::<ServerLine>(&folder.join("servers.jsonl")).or_else(none_if_absent)?;
        let questions = lines(&folder.join("queries.jsonl"))?;
        let unanswered = lines(&folder.join("unanswered.jsonl")).or_else(none_if_absent)?;
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        let mut set = Self {
            name: name.to_string_lossy().into_owned(),
            shelves: servers.into_iter().map(|(line, _)| shelf(line)).collect(),
            questions: firsts(questions),
            unanswered: firsts(unanswered),
            toolbox: ToolboxName::from("set"),
            ids: HashMap::new(),
        };
        for (line, text) in lines::<ToolLine>(&folder.join("tools.jsonl"))? {
            set.add(line, text);
        }
        Ok(set)
    }

    /// Puts a tool on the shelf of its server.
    fn add(&mut self, line: ToolLine, text: String) {
        let tool = ToolName::from(line.name.as_str());
        let definition = RawJson::parse(&Bytes::from(text)).expect("it was read as JSON before");
        let mut shelves = self.shelves.iter_mut();
        match shelves.find(|shelf| shelf.server.as_str() == line.server) {
            Some(shelf) => shelf.tools.push((tool, definition)),
            None => self.shelves.push(Shelf {
                server: ServerName::from(line.server.as_str()),
                about: Vec::new(),
                tools: vec![(tool, definition)],
            }),
        }
        let id = line
            .id
            .unwrap_or_else(|| format!("{}/{}", line.server, line.name));
        let ids = self.ids.entry((line.server, line.name)).or_default();
        ids.push(id);
    }

    /// Returns the ids of a tool in the set.
    pub fn ids(&self, tool: &ToolIdentifier) -> &[String] {
        let names = (tool.server.to_string(), tool.tool.to_string());
        self.ids.get(&names).map_or(&[], Vec::as_slice)
    }

    /// How many tools there are.
    pub fn tools(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.tools.len()).sum()
    }

    /// An index of all servers.
    pub fn index(&self) -> Index {
        let mut index = Index::default();
        for shelf in &self.shelves {
            self.put(&mut index, shelf);
        }
        index
    }

    /// Puts one server of the set into an index.
    pub fn put(&self, index: &mut Index, shelf: &Shelf) {
        let text = ServerText {
            toolbox: &self.toolbox,
            server: &shelf.server,
            about: shelf.about.iter().map(String::as_str).collect(),
        };
        let tools = shelf.tools.iter();
        index.put(
            &text,
            tools.map(|(name, definition)| ToolText { name, definition }),
        );
    }
}

/// The shelf of a server, without tools.
fn shelf(line: ServerLine) -> Shelf {
    let about = [line.title, line.description, line.category];
    Shelf {
        server: ServerName::from(line.server.as_str()),
        about: about.into_iter().flatten().collect(),
        tools: Vec::new(),
    }
}

/// The queries of some lines.
fn firsts(lines: Vec<(Question, String)>) -> Vec<Question> {
    lines.into_iter().map(|(question, _)| question).collect()
}

/// Replaces the error of an absent file with an empty list.
fn none_if_absent<T>(error: SetError) -> Result<Vec<T>, SetError> {
    match error {
        SetError::File { error, .. } if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        error => Err(error),
    }
}

/// Returns the lines of a file: the parsed value and the text of each.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<(T, String)>, SetError> {
    let text = fs::read_to_string(path).map_err(|error| SetError::File {
        path: path.to_owned(),
        error,
    })?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            let value = serde_json::from_str(line).map_err(|error| SetError::Line {
                path: path.to_owned(),
                line: number + 1,
                error,
            })?;
            Ok((value, line.to_owned()))
        });
    lines.collect()
}
