//! Extracts the texts of a tool, field by field.

use rawjson::{Kind, RawJson};

use crate::{Field, ToolText};

/// The depth to which schemas are read; deeper parts are rarely what a tool is about.
const MAX_DEPTH: usize = 6;

/// Calls `visit` with every text of a tool and its field.
pub(crate) fn each_text(tool: &ToolText<'_>, visit: &mut impl FnMut(Field, &str)) {
    visit(Field::Name, tool.name.as_str());
    for member in tool.definition.members().unwrap_or_default() {
        match member.key.as_ref() {
            "title" => text(&member.value, Field::Name, visit),
            "description" => text(&member.value, Field::Description, visit),
            "inputSchema" => schema(&member.value, 0, visit),
            "annotations" => {
                if let Some(title) = member.value.member("title") {
                    text(&title, Field::Name, visit);
                }
            }
            _ => {}
        }
    }
}

fn text(value: &RawJson, field: Field, visit: &mut impl FnMut(Field, &str)) {
    if let Some(text) = value.as_text() {
        visit(field, &text);
    }
}

/// Reads a schema: the names of properties, their descriptions, and the values to choose from.
fn schema(value: &RawJson, depth: usize, visit: &mut impl FnMut(Field, &str)) {
    if depth > MAX_DEPTH {
        return;
    }
    for member in value.members().unwrap_or_default() {
        match member.key.as_ref() {
            "properties" => {
                for property in member.value.members().unwrap_or_default() {
                    visit(Field::Parameter, &property.key);
                    schema(&property.value, depth + 1, visit);
                }
            }
            "description" => text(&member.value, Field::ParameterText, visit),
            "enum" => {
                for choice in member.value.elements().unwrap_or_default() {
                    text(&choice, Field::ParameterText, visit);
                }
            }
            "items" | "additionalProperties" => schema(&member.value, depth + 1, visit),
            "anyOf" | "oneOf" | "allOf" => {
                for choice in member.value.elements().unwrap_or_default() {
                    schema(&choice, depth + 1, visit);
                }
            }
            "$defs" | "definitions" if member.value.kind() == Kind::Object => {
                for definition in member.value.members().unwrap_or_default() {
                    schema(&definition.value, depth + 1, visit);
                }
            }
            _ => {}
        }
    }
}
