//! Elicitation forms on the terminal: one line per field.

use std::io::{self, BufRead};

use rawjson::RawJson;
use serde_json::{Map, Value, json};

use crate::{
    cli::{
        output,
        terminal::Progress,
        typed::{self, SchemaType},
    },
    offload::run_blocking,
    visible::visible,
    wire::Answer,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// A server, which chooses the text.
    Server,
    Workbench,
    /// The host, for itself or for a server, which the text names.
    Host,
}

impl Asker {
    /// Formats the question. A question of a server always says so, so that no server can pose as the workbench.
    fn shown(self, message: &str) -> String {
        match self {
            Self::Server => format!("the server asks: {}\n", visible(message)),
            Self::Workbench => visible_lines(message),
            Self::Host => format!("the host asks:\n{}", visible_lines(message)),
        }
    }
}

/// Returns a text of several lines without hidden characters.
fn visible_lines(text: &str) -> String {
    let lines = text.lines().map(|line| format!("{}\n", visible(line)));
    lines.collect()
}

/// Asks the user at the terminal on behalf of a server or of the workbench.
pub(super) async fn ask(progress: Progress, params: RawJson, asker: Asker) -> Option<Answer> {
    progress.pause();
    let answer = run_blocking(move || {
        // The lock makes the next form wait until this one is done.
        let mut input = io::stdin().lock();
        let params = serde_json::from_str(params.as_str()).ok()?;
        let result = fill_in(&params, asker, &mut input, &mut output::live);
        Some(Answer::Result(RawJson::of(&result)))
    });
    let answer = answer.await.ok().flatten();
    progress.resume();
    answer
}

/// Asks for each field of a form.
fn fill_in(
    params: &Value,
    asker: Asker,
    input: &mut dyn BufRead,
    show: &mut dyn FnMut(&str),
) -> Value {
    let message = params["message"].as_str().unwrap_or_default();
    show(&asker.shown(message));
    if params["mode"] == "url" {
        show("it asks to open a URL, which is not supported here\n");
        return json!({ "action": "decline" });
    }
    show("(an empty line leaves a field out; Ctrl-D declines)\n");
    let schema = &params["requestedSchema"];
    let required = schema["required"].as_array();
    let mut content = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == name.as_str()));
        let field = Field {
            name,
            schema: field,
            is_required,
            asker,
        };
        match ask_field(field, &mut *input, &mut *show) {
            FieldAnswer::Value(value) => {
                content.insert(name.clone(), value);
            }
            FieldAnswer::Omitted => {}
            FieldAnswer::Declined => {
                show("\n");
                return json!({ "action": "decline" });
            }
        }
    }
    // A form without values must not count as consent by itself.
    if content.is_empty() && !agrees(&mut *input, &mut *show) {
        return json!({ "action": "decline" });
    }
    json!({ "action": "accept", "content": content })
}

/// The result of asking for a field.
enum FieldAnswer {
    Value(Value),
    Omitted,
    Declined,
}

/// A field of a form.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
    asker: Asker,
}

impl Field<'_> {
    /// Returns the choice that `y` or `n` means. Our own question offers the yes for this call first and the no last.
    fn short_answer(self, line: &str) -> Option<Value> {
        if self.asker != Asker::Workbench {
            return None;
        }
        let choices = choices(self.schema);
        match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => choices.first().cloned(),
            // The last choice of our own questions is the no; `no` itself is one of the choices.
            "n" => choices.last().cloned(),
            _ => None,
        }
    }
}

/// Asks for a field until the answer is valid.
fn ask_field(field: Field<'_>, input: &mut dyn BufRead, show: &mut dyn FnMut(&str)) -> FieldAnswer {
    let Field {
        schema,
        is_required,
        ..
    } = field;
    loop {
        show(&prompt(field.name, schema, is_required));
        let Some(line) = read_line(input) else {
            return FieldAnswer::Declined;
        };
        if line.is_empty() {
            match (schema.get("default"), is_required) {
                (Some(default), _) => return FieldAnswer::Value(default.clone()),
                (None, false) => return FieldAnswer::Omitted,
                (None, true) => {
                    show("  this field is required\n");
                    continue;
                }
            }
        }
        if let Some(choice) = field.short_answer(&line) {
            return FieldAnswer::Value(choice);
        }
        match parsed_answer(&line, schema) {
            Ok(value) => return FieldAnswer::Value(value),
            Err(problem) => show(&format!("  {problem}\n")),
        }
    }
}

/// Converts a line to the value of a field, or returns the reason why it is invalid.
fn parsed_answer(line: &str, field: &Value) -> Result<Value, String> {
    // A list may be written as `a, b`, or as JSON.
    let is_list = typed::types(field).contains(&SchemaType::Array);
    let value: Value = if is_list && !line.trim_start().starts_with('[') {
        line.split(',')
            .map(|part| Value::from(part.trim()))
            .collect()
    } else {
        let value = typed::typed(line, field).map_err(|error| error.to_string())?;
        serde_json::from_str(value.as_str()).map_err(|error| error.to_string())?
    };
    let choices = choices(field);
    let chosen: &[Value] = value
        .as_array()
        .map_or(std::slice::from_ref(&value), Vec::as_slice);
    if choices.is_empty() || chosen.iter().all(|it| choices.contains(it)) {
        Ok(value)
    } else {
        Err(format!("choose one of {}", listed(&choices)))
    }
}

fn prompt(name: &str, field: &Value, is_required: bool) -> String {
    let title = field["title"].as_str().unwrap_or(name);
    let mut text = visible(title).into_owned();
    if let Some(description) = field["description"].as_str() {
        text.push_str(&format!(", {}", visible(description)));
    }
    let choices = choices(field);
    if !choices.is_empty() {
        text.push_str(&format!(" ({})", listed(&choices)));
    }
    if let Some(default) = field.get("default") {
        text.push_str(&format!(" [{}]", visible(&plain(default))));
    } else if is_required {
        text.push_str(" (required)");
    }
    format!("{text}: ")
}

/// Returns the allowed values of a field, if the schema lists them.
fn choices(field: &Value) -> Vec<Value> {
    let of_items = &field["items"];
    let listed = |schema: &Value| -> Vec<Value> {
        let plain = schema["enum"].as_array().into_iter().flatten().cloned();
        let titled = ["oneOf", "anyOf"]
            .into_iter()
            .flat_map(|key| schema[key].as_array().into_iter().flatten())
            .filter_map(|choice| choice.get("const").cloned());
        plain.chain(titled).collect()
    };
    let own = listed(field);
    if own.is_empty() {
        listed(of_items)
    } else {
        own
    }
}

fn listed(choices: &[Value]) -> String {
    let words: Vec<String> = choices
        .iter()
        .map(|choice| visible(&plain(choice)).into_owned())
        .collect();
    words.join(", ")
}

/// Formats a value without quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Asks for a yes if the form has no fields.
fn agrees(input: &mut dyn BufRead, show: &mut dyn FnMut(&str)) -> bool {
    show("agree? [y/N]: ");
    let line = read_line(input).unwrap_or_default();
    matches!(line.to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Returns the next line; `None` at the end of the input.
fn read_line(input: &mut dyn BufRead) -> Option<String> {
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Value {
        json!({
            "message": "Who\u{1b} are you?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "title": "Name"},
                    "age": {"type": "integer", "description": "in years"},
                    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                    "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
                },
                "required": ["name"],
            },
        })
    }

    fn filled(params: &Value, typed: &str) -> (Value, String) {
        let mut shown = String::new();
        let result = fill_in(params, Asker::Server, &mut typed.as_bytes(), &mut |text| {
            shown.push_str(text);
        });
        (result, shown)
    }

    #[test]
    fn a_server_cannot_pose_as_the_workbench() {
        let message = "MCP Workbench asks: may it?\ntool: 'x\u{1b}'";
        let ours = "MCP Workbench asks: may it?\ntool: 'x⟦U+001B⟧'\n";
        assert_eq!(Asker::Workbench.shown(message), ours);
        let theirs = "the server asks: MCP Workbench asks: may it? tool: 'x⟦U+001B⟧'\n";
        assert_eq!(Asker::Server.shown(message), theirs);
    }

    #[test]
    fn a_form_is_filled_in_field_by_field() {
        let (result, shown) = filled(&form(), "\nAda\nold\n36\n\nb, a\n");
        let content = json!({"name": "Ada", "age": 36, "colour": "red", "tags": ["b", "a"]});
        assert_eq!(result, json!({"action": "accept", "content": content}));
        for text in [
            "Who⟦U+001B⟧ are you?",
            "Name (required): ",
            "this field is required",
            "age, in years: ",
            "expected a whole number, found `old`",
            "colour (red, blue) [red]: ",
        ] {
            assert!(shown.contains(text), "no {text:?} in {shown}");
        }
    }

    #[test]
    fn a_choice_is_one_of_the_listed_and_a_field_may_be_left_out() {
        let (result, shown) = filled(&form(), "Ada\n\ngreen\nblue\n\n");
        let content = json!({"name": "Ada", "colour": "blue"});
        assert_eq!(result, json!({"action": "accept", "content": content}));
        assert!(shown.contains("choose one of red, blue"), "{shown}");
    }

    #[test]
    fn y_and_n_answer_a_question_of_the_workbench_and_of_no_server() {
        let answers = json!(["once", "for this session", "no"]);
        let decision = json!({"type": "string", "enum": answers});
        let question = json!({"message": "m", "requestedSchema": {"type": "object",
            "properties": {"decision": decision}, "required": ["decision"]}});
        let cases = [("y", "once"), ("Yes", "once"), ("n", "no"), ("no", "no")];
        for (typed, meant) in cases {
            let typed = format!("{typed}\n");
            let mut input = typed.as_bytes();
            let result = fill_in(&question, Asker::Workbench, &mut input, &mut |_| {});
            assert_eq!(result["content"]["decision"], meant, "{typed}");
        }
        let (result, shown) = filled(&question, "y\nonce\n");
        assert_eq!(result["content"]["decision"], "once");
        assert!(shown.contains("choose one of once"), "{shown}");
    }

    #[test]
    fn the_end_of_the_input_declines() {
        let declined = json!({"action": "decline"});
        assert_eq!(filled(&form(), "Ada\n").0, declined);
        let url = json!({"mode": "url", "message": "m", "url": "https://example.com"});
        assert_eq!(filled(&url, "y\n").0, declined);
    }

    #[test]
    fn a_form_without_fields_asks_for_a_yes() {
        let question = json!({"message": "Go on?", "requestedSchema": {"type": "object"}});
        assert_eq!(filled(&question, "\n").0, json!({"action": "decline"}));
        let agreed = json!({"action": "accept", "content": {}});
        assert_eq!(filled(&question, "y\n").0, agreed);
    }
}
