//! The notes store: `add`, `list` and `remove`, in memory for the life of the process.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{NoArguments, ToolResult, object, read_arguments};

const MAX_NOTES: usize = 1000;
/// The longest note, in characters.
const MAX_LENGTH: usize = 4000;

/// The notes of one running server, the oldest first.
#[derive(Default)]
pub(crate) struct Notebook {
    notes: Vec<Note>,
    /// The id of the newest note; ids are never used again.
    last_id: u64,
}

#[derive(Serialize)]
struct Note {
    id: u64,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remove {
    id: u64,
}

impl Notebook {
    pub(crate) fn add(&mut self, arguments: Value) -> ToolResult {
        let Add { text } = read_arguments(arguments)?;
        if text.trim().is_empty() {
            return Err("`text` must not be empty".to_owned());
        }
        if text.chars().count() > MAX_LENGTH {
            return Err(format!("longer than {MAX_LENGTH} characters: split it"));
        }
        if self.notes.len() == MAX_NOTES {
            return Err(format!("already {MAX_NOTES} notes: remove one first"));
        }
        self.last_id += 1;
        let id = self.last_id;
        self.notes.push(Note { id, text });
        Ok(json!({ "id": id, "count": self.notes.len() }))
    }

    pub(crate) fn list(&self, arguments: Value) -> ToolResult {
        let NoArguments {} = read_arguments(arguments)?;
        Ok(json!({ "notes": self.notes }))
    }

    pub(crate) fn remove(&mut self, arguments: Value) -> ToolResult {
        let Remove { id } = read_arguments(arguments)?;
        let index = self.notes.iter().position(|note| note.id == id);
        let index =
            index.ok_or_else(|| format!("there is no note {id}: `list` returns the ids"))?;
        let note = self.notes.remove(index);
        Ok(json!({ "id": note.id, "text": note.text, "count": self.notes.len() }))
    }
}

pub(crate) fn definitions() -> Value {
    let note = object(&json!({ "id": { "type": "integer" }, "text": { "type": "string" } }));
    json!([
        {
            "name": "add",
            "title": "Add a note",
            "description": "Keep a note and return its id. Notes live in memory until this server stops.",
            "inputSchema": object(&json!({
                "text": { "type": "string", "description": "Text of the note", "minLength": 1, "maxLength": MAX_LENGTH }
            })),
            "outputSchema": object(&json!({
                "id": { "type": "integer" },
                "count": { "type": "integer", "description": "Number of notes after the call" }
            })),
            "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false }
        },
        {
            "name": "list",
            "title": "List the notes",
            "description": "Return all notes with their ids, the oldest first.",
            "inputSchema": object(&json!({})),
            "outputSchema": object(&json!({ "notes": { "type": "array", "items": note } })),
            "annotations": { "readOnlyHint": true, "openWorldHint": false }
        },
        {
            "name": "remove",
            "title": "Remove a note",
            "description": "Remove a note for good and return its text.",
            "inputSchema": object(&json!({
                "id": { "type": "integer", "description": "Id of the note, from add or list", "minimum": 0 }
            })),
            "outputSchema": object(&json!({
                "id": { "type": "integer" },
                "text": { "type": "string" },
                "count": { "type": "integer", "description": "Number of notes after the call" }
            })),
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
        }
    ])
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn notes_are_added_listed_and_removed() {
        let mut notes = Notebook::default();
        let add = |notes: &mut Notebook, text| notes.add(json!({ "text": text })).unwrap();
        assert_eq!(add(&mut notes, "Buy Äpfel"), json!({ "id": 1, "count": 1 }));
        assert_eq!(add(&mut notes, "call Ada"), json!({ "id": 2, "count": 2 }));
        let removed = notes.remove(json!({ "id": 1 })).unwrap();
        assert_eq!(removed, json!({ "id": 1, "text": "Buy Äpfel", "count": 1 }));
        // The id of a removed note is not used again.
        assert_eq!(add(&mut notes, "third"), json!({ "id": 3, "count": 2 }));
        let listed = notes.list(json!({})).unwrap();
        let rest = json!([{ "id": 2, "text": "call Ada" }, { "id": 3, "text": "third" }]);
        assert_eq!(listed, json!({ "notes": rest }));
    }

    #[test]
    fn errors_say_what_to_do() {
        let mut notes = Notebook::default();
        let error = |result: ToolResult| result.unwrap_err();
        assert_eq!(
            error(notes.add(json!({}))),
            "invalid arguments: missing field `text`"
        );
        assert_eq!(
            error(notes.add(json!({ "text": " \n" }))),
            "`text` must not be empty"
        );
        assert_eq!(
            error(notes.add(json!({ "text": "ä".repeat(MAX_LENGTH + 1) }))),
            "longer than 4000 characters: split it"
        );
        assert_eq!(
            error(notes.remove(json!({ "id": 7 }))),
            "there is no note 7: `list` returns the ids"
        );
        let unknown = error(notes.list(json!({ "all": true })));
        assert!(unknown.contains("unknown field `all`"), "{unknown}");
        let wrong_type = error(notes.add(json!({ "text": 5 })));
        assert!(wrong_type.contains("expected a string"), "{wrong_type}");
    }

    #[test]
    fn the_number_of_notes_is_bounded() {
        let mut notes = Notebook::default();
        for _ in 0..MAX_NOTES {
            notes.add(json!({ "text": "x" })).unwrap();
        }
        assert_eq!(
            notes.add(json!({ "text": "x" })),
            Err("already 1000 notes: remove one first".to_owned())
        );
    }
}
