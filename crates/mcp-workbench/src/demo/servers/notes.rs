//! The notes store: `add`, `list`, `search` and `remove`, in memory for the life of the process.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::tools::ToolResult;

const MAX_NOTES: usize = 1000;
const MAX_CHARACTERS: usize = 4000;

/// The notes of one running server, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Notebook {
    notes: Vec<Note>,
    /// The id of the newest note; ids are never used again.
    last_id: u64,
}

#[derive(Debug)]
struct Note {
    id: u64,
    text: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotesError {
    /// The text or query is empty.
    #[error("argument `{name}` must not be empty")]
    Empty { name: &'static str },
    /// The note is too long.
    #[error("the note has {length} characters, but at most {limit} are allowed: split it")]
    TooLong { length: usize, limit: usize },
    /// There are too many notes.
    #[error("there are {limit} notes already: remove one first")]
    Full { limit: usize },
    /// No note has this id.
    #[error("there is no note {id}: `list` returns the ids")]
    NotFound { id: u64 },
}

impl Notebook {
    /// Returns the definitions of the store's tools.
    pub(super) fn definitions() -> Vec<Value> {
        vec![
            add_definition(),
            list_definition(),
            search_definition(),
            remove_definition(),
        ]
    }

    /// Runs a tool; returns `None` for an unknown name.
    pub(super) fn call(&mut self, tool: &str, arguments: &Arguments) -> Option<ToolResult> {
        match tool {
            "add" => Some(self.add(arguments)),
            "list" => Some(self.list(arguments)),
            "search" => Some(self.search(arguments)),
            "remove" => Some(self.remove(arguments)),
            _ => None,
        }
    }

    fn add(&mut self, arguments: &Arguments) -> ToolResult {
        arguments.only(&["text"])?;
        let text = not_empty(arguments, "text")?;
        let length = text.chars().count();
        if length > MAX_CHARACTERS {
            return Err(NotesError::TooLong {
                length,
                limit: MAX_CHARACTERS,
            }
            .into());
        }
        if self.notes.len() == MAX_NOTES {
            return Err(NotesError::Full { limit: MAX_NOTES }.into());
        }
        self.last_id += 1;
        self.notes.push(Note {
            id: self.last_id,
            text: text.to_owned(),
        });
        Ok(json!({ "id": self.last_id, "count": self.notes.len() }))
    }

    fn list(&self, arguments: &Arguments) -> ToolResult {
        arguments.only(&[])?;
        Ok(listing(self.notes.iter()))
    }

    fn search(&self, arguments: &Arguments) -> ToolResult {
        arguments.only(&["query"])?;
        let query = not_empty(arguments, "query")?.to_lowercase();
        Ok(listing(
            self.notes
                .iter()
                .filter(|note| note.text.to_lowercase().contains(&query)),
        ))
    }

    fn remove(&mut self, arguments: &Arguments) -> ToolResult {
        arguments.only(&["id"])?;
        let id = arguments.integer("id")?;
        let idx = self
            .notes
            .iter()
            .position(|note| note.id == id)
            .ok_or(NotesError::NotFound { id })?;
        let note = self.notes.remove(idx);
        Ok(json!({ "id": note.id, "text": note.text, "count": self.notes.len() }))
    }
}

fn not_empty<'a>(
    arguments: &'a Arguments,
    name: &'static str,
) -> Result<&'a str, super::tools::ToolError> {
    let text = arguments.string(name)?;
    if text.trim().is_empty() {
        Err(NotesError::Empty { name }.into())
    } else {
        Ok(text)
    }
}

fn listing<'a>(notes: impl Iterator<Item = &'a Note>) -> Value {
    let notes: Vec<_> = notes
        .map(|note| json!({ "id": note.id, "text": note.text }))
        .collect();
    json!({ "notes": notes })
}

fn add_definition() -> Value {
    json!({
        "name": "add",
        "title": "Add a note",
        "description": "Keep a note and return its id. Notes live in memory until this server stops.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {
                    "type": "string",
                    "description": "What to note",
                    "minLength": 1,
                    "maxLength": MAX_CHARACTERS
                }
            },
            "required": ["text"],
            "additionalProperties": false
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "integer" },
                "count": { "type": "integer", "description": "How many notes there are now" }
            },
            "required": ["id", "count"],
            "additionalProperties": false
        },
        "annotations": {
            "readOnlyHint": false,
            "destructiveHint": false,
            "idempotentHint": false,
            "openWorldHint": false
        }
    })
}

fn list_definition() -> Value {
    json!({
        "name": "list",
        "title": "List the notes",
        "description": "Return all notes with their ids, the oldest first.",
        "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        "outputSchema": notes_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    })
}

fn search_definition() -> Value {
    json!({
        "name": "search",
        "title": "Search the notes",
        "description": "Return the notes that contain a text, in upper or lower case, the oldest first.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Text to look for", "minLength": 1 }
            },
            "required": ["query"],
            "additionalProperties": false
        },
        "outputSchema": notes_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    })
}

fn remove_definition() -> Value {
    json!({
        "name": "remove",
        "title": "Remove a note",
        "description": "Remove a note for good and return what it said.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "integer", "description": "Id of the note, from add, list or search", "minimum": 0 }
            },
            "required": ["id"],
            "additionalProperties": false
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "integer" },
                "text": { "type": "string" },
                "count": { "type": "integer", "description": "How many notes are left" }
            },
            "required": ["id", "text", "count"],
            "additionalProperties": false
        },
        "annotations": {
            "readOnlyHint": false,
            "destructiveHint": true,
            "idempotentHint": true,
            "openWorldHint": false
        }
    })
}

fn notes_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "notes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "id": { "type": "integer" }, "text": { "type": "string" } },
                    "required": ["id", "text"],
                    "additionalProperties": false
                }
            }
        },
        "required": ["notes"],
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn run(notebook: &mut Notebook, tool: &str, arguments: Value) -> Result<Value, String> {
        let arguments = Arguments::new(Some(arguments)).unwrap();
        notebook
            .call(tool, &arguments)
            .unwrap()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn notes_are_added_found_and_removed() {
        let mut notebook = Notebook::default();
        let table = [
            ("list", json!({}), json!({"notes": []})),
            (
                "add",
                json!({"text": "Buy Äpfel"}),
                json!({"id": 1, "count": 1}),
            ),
            (
                "add",
                json!({"text": "call Ada"}),
                json!({"id": 2, "count": 2}),
            ),
            (
                "search",
                json!({"query": "äPFEL"}),
                json!({"notes": [{"id": 1, "text": "Buy Äpfel"}]}),
            ),
            ("search", json!({"query": "pear"}), json!({"notes": []})),
            (
                "remove",
                json!({"id": 1}),
                json!({"id": 1, "text": "Buy Äpfel", "count": 1}),
            ),
            (
                "add",
                json!({"text": "third"}),
                json!({"id": 3, "count": 2}),
            ),
            (
                "list",
                json!({}),
                json!({"notes": [{"id": 2, "text": "call Ada"}, {"id": 3, "text": "third"}]}),
            ),
        ];
        for (tool, arguments, expected) in table {
            assert_eq!(run(&mut notebook, tool, arguments), Ok(expected), "{tool}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let mut notebook = Notebook::default();
        let long = "ä".repeat(MAX_CHARACTERS + 1);
        let table = [
            (
                "add",
                json!({}),
                "argument `text` is required: it must be a string",
            ),
            (
                "add",
                json!({"text": " \n"}),
                "argument `text` must not be empty",
            ),
            (
                "add",
                json!({"text": long}),
                "the note has 4001 characters, but at most 4000 are allowed: split it",
            ),
            (
                "search",
                json!({"query": ""}),
                "argument `query` must not be empty",
            ),
            (
                "remove",
                json!({"id": 7}),
                "there is no note 7: `list` returns the ids",
            ),
            (
                "list",
                json!({"all": true}),
                "unknown argument `all`: this tool takes no arguments",
            ),
        ];
        for (tool, arguments, expected) in table {
            assert_eq!(
                run(&mut notebook, tool, arguments),
                Err(expected.to_owned()),
                "{tool}"
            );
        }
    }

    #[test]
    fn the_number_of_notes_is_bounded() {
        let mut notebook = Notebook::default();
        for _ in 0..MAX_NOTES {
            run(&mut notebook, "add", json!({"text": "x"})).unwrap();
        }
        assert_eq!(
            run(&mut notebook, "add", json!({"text": "x"})),
            Err("there are 1000 notes already: remove one first".to_owned())
        );
    }
}
