//! Input schemas in the detail `compact`: without white space, `$schema`, and titles that repeat a name. Everything else
//! is copied byte for byte.
use rawjson::{Member, RawJson};

/// Keywords whose value is a schema, or an array of schemas.
const SUBSCHEMAS: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords whose value is an object of schemas, each under its own name.
const NAMED_SUBSCHEMAS: &[&str] = &["properties", "$defs", "definitions"];

/// Keywords whose value is an object of schemas under keys that do not name them.
const KEYED_SUBSCHEMAS: &[&str] = &["patternProperties", "dependentSchemas", "dependencies"];

/// Levels of schemas that are looked into, because each of them is scanned again. Deeper schemas only lose white space.
const MAX_LEVELS: usize = 32;

/// The suffix that the Python SDK gives to the name of a tool for the title of its input schema.
const ARGUMENTS: &str = "arguments";

/// The name that a title may repeat.
#[derive(Clone, Copy)]
enum SchemaPart<'a> {
    Tool(&'a str),
    /// A property or a definition.
    Property(&'a str),
    Unnamed,
}

/// Appends the input schema of a tool.
pub(super) fn write_input_schema(text: &mut Vec<u8>, schema: &RawJson, tool: &str) {
    write_schema(text, schema, SchemaPart::Tool(tool), MAX_LEVELS);
}

fn write_schema(text: &mut Vec<u8>, schema: &RawJson, subject: SchemaPart<'_>, levels: usize) {
    let members = schema.members().filter(|_| levels > 0);
    let Some(members) = members else {
        schema.minify_into(text);
        return;
    };
    // Readers differ on which of several titles counts, so none of them is removed.
    let has_one_title = members.iter().filter(|it| it.key == "title").count() == 1;
    let kept = members.iter().filter(|it| match &*it.key {
        // The dialect of the schema, which no model needs.
        "$schema" => false,
        "title" => !(has_one_title && subject.is_repeated_by(&it.value)),
        _ => true,
    });
    write_object(text, kept, |text, member| {
        let (key, value) = (&*member.key, &member.value);
        if SUBSCHEMAS.contains(&key) {
            write_subschemas(text, value, levels - 1);
        } else if NAMED_SUBSCHEMAS.contains(&key) {
            write_schemas(text, value, |name| SchemaPart::Property(name), levels - 1);
        } else if KEYED_SUBSCHEMAS.contains(&key) {
            write_schemas(text, value, |_| SchemaPart::Unnamed, levels - 1);
        } else {
            value.minify_into(text);
        }
    });
}

/// Appends a schema, or an array of schemas.
fn write_subschemas(text: &mut Vec<u8>, value: &RawJson, levels: usize) {
    let Some(elements) = value.elements() else {
        write_schema(text, value, SchemaPart::Unnamed, levels);
        return;
    };
    text.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_schema(text, element, SchemaPart::Unnamed, levels);
    }
    text.push(b']');
}

/// Appends an object whose values are schemas. Its keys are names, even if they read like keywords.
fn write_schemas(
    text: &mut Vec<u8>,
    value: &RawJson,
    subject: fn(&str) -> SchemaPart<'_>,
    levels: usize,
) {
    let Some(members) = value.members() else {
        value.minify_into(text);
        return;
    };
    write_object(text, members.iter(), |text, member| {
        write_schema(text, &member.value, subject(&member.key), levels);
    });
}

fn write_object<'a, 'b: 'a>(
    text: &mut Vec<u8>,
    members: impl Iterator<Item = &'a Member<'b>>,
    mut write_value: impl FnMut(&mut Vec<u8>, &'a Member<'b>),
) {
    text.push(b'{');
    for (index, member) in members.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(member.key_as_sent);
        text.push(b':');
        write_value(text, member);
    }
    text.push(b'}');
}

impl SchemaPart<'_> {
    /// Returns whether a title says nothing but the name, in other letter case or with other separators.
    fn is_repeated_by(self, title: &RawJson) -> bool {
        let Some(title) = title.as_text() else {
            return false;
        };
        match self {
            Self::Tool(name) => {
                folded(&title).eq(folded(name))
                    || folded(&title).eq(folded(name).chain(ARGUMENTS.chars()))
            }
            Self::Property(name) => folded(&title).eq(folded(name)),
            Self::Unnamed => false,
        }
    }
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    let letters = text.chars().filter(|it| !matches!(it, ' ' | '_' | '-'));
    letters.flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests;
