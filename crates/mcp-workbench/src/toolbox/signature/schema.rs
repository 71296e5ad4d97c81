//! Reduces a JSON Schema to the shape of the values that it allows, as far as one line can show it. Schemas are
//! untrusted text: the depth, width and length that are read are bounded, and odd parts become `any`.

use std::collections::HashSet;

use rawjson::{Kind, RawJson};

use super::name::quoted;

/// The maximum depth to which objects and arrays are read.
const MAX_DEPTH: usize = 4;

/// The maximum number of subschemas that are read in all.
const MAX_PARTS: usize = 256;

/// The maximum number of optional members that are read per object.
const MAX_OPTIONAL: usize = 64;

/// The maximum number of alternatives that are read per value.
const MAX_ALTERNATIVES: usize = 16;

/// The maximum number of enum values, and the maximum length of each.
const MAX_ENUM_VALUES: usize = 16;
const MAX_ENUM_VALUE_LENGTH: usize = 48;

/// The values that a schema allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AllowedValues {
    /// Any value, or values that cannot be described.
    Any,
    /// A type with a simple name.
    Word(String),
    /// These values, and this many more.
    Words {
        values: Vec<String>,
        more: usize,
    },
    Array(Box<Self>),
    /// A list with a shape for each position.
    Tuple(Vec<Self>),
    Object(Members),
    Union(Vec<Self>),
}

/// The members of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) known: Vec<Member>,
    /// The number of further members, all optional.
    pub(super) more: usize,
    /// The shape of all other members, if the schema has one.
    pub(super) others: Option<Box<AllowedValues>>,
}

/// A member of an object, or a parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) is_required: bool,
    pub(super) shape: AllowedValues,
    /// The default value, as JSON.
    pub(super) default: Option<String>,
}

/// Reads the parameters of a tool.
pub(super) fn read(schema: Option<&RawJson>) -> Members {
    let Some(schema) = schema else {
        return Members::default();
    };
    let mut reader = SchemaReader {
        root: schema,
        parts_left: MAX_PARTS,
    };
    let parts = reader.parts(schema);
    let mut members = reader.members(&parts, 0);
    if parts.iter().any(|part| part.member("properties").is_some()) {
        // A model should not be told that a tool accepts arbitrary other arguments.
        members.others = None;
    }
    members
}

struct SchemaReader<'a> {
    /// The root of local references.
    root: &'a RawJson,
    parts_left: usize,
}

impl SchemaReader<'_> {
    /// Returns a schema with everything that it references or combines with `allOf`: all of them apply to a value.
    fn parts(&mut self, schema: &RawJson) -> Vec<RawJson> {
        let mut parts = Vec::new();
        let mut waiting = vec![schema.clone()];
        let mut followed = HashSet::new();
        while let Some(part) = waiting.pop() {
            // The schema itself is read in any case, however much was spent before.
            if parts.is_empty() || self.parts_left > 0 {
                self.parts_left = self.parts_left.saturating_sub(1);
                let made_of = part
                    .member("allOf")
                    .and_then(|it| it.elements())
                    .unwrap_or_default();
                // Reversed, because the last one is taken first.
                waiting.extend(made_of.into_iter().take(MAX_PARTS).rev());
                let reference = part.member("$ref");
                let reference = reference.as_ref().and_then(RawJson::as_text);
                if let Some(reference) = reference
                    // A reference may lead back to itself.
                    && followed.insert(reference.clone().into_owned())
                {
                    waiting.extend(self.resolve(&reference));
                }
                parts.push(part);
            }
        }
        parts
    }

    /// Resolves a local reference.
    fn resolve(&self, reference: &str) -> Option<RawJson> {
        let mut found = self.root.clone();
        let pointer = reference.strip_prefix('#')?;
        for step in pointer.split('/').skip(1).take(MAX_DEPTH * 4) {
            // In this order, as RFC 6901 wants it: `~01` stands for `~1`.
            let step = step.replace("~1", "/").replace("~0", "~");
            found = match found.kind() {
                Kind::Array => found.elements()?.into_iter().nth(step.parse().ok()?)?,
                _ => found.member(&step)?,
            };
        }
        Some(found)
    }

    /// Returns the shape of a value at this depth.
    fn shape(&mut self, schema: &RawJson, depth: usize) -> AllowedValues {
        if self.parts_left == 0 || schema.kind() != Kind::Object {
            return AllowedValues::Any;
        }
        let parts = self.parts(schema);
        // Literal values say more than the type, so `enum` and `const` win over everything else.
        if let Some(words) = literals(&parts) {
            return words;
        }
        // Next to `properties`, `anyOf` usually says which members go together; the properties are the shape.
        let has_members = parts.iter().any(|part| part.member("properties").is_some());
        let alternatives = if has_members {
            Vec::new()
        } else {
            alternatives(&parts)
        };
        let mut shapes = Vec::new();
        for alternative in alternatives.iter().take(MAX_ALTERNATIVES) {
            add(&mut shapes, self.shape(alternative, depth));
        }
        if shapes.is_empty() {
            for word in types(&parts) {
                add(&mut shapes, self.typed(&word, &parts, depth));
            }
        }
        let is_nullable = |part: &RawJson| part.member("nullable").is_some_and(|it| it.is_true());
        if parts.iter().any(is_nullable) {
            add(&mut shapes, AllowedValues::Word("null".to_owned()));
        }
        if shapes.len() > 1 {
            return AllowedValues::Union(shapes);
        }
        shapes.pop().unwrap_or(AllowedValues::Any)
    }

    fn typed(&mut self, word: &str, parts: &[RawJson], depth: usize) -> AllowedValues {
        match word {
            "object" if depth < MAX_DEPTH => {
                let members = self.members(parts, depth + 1);
                if members == Members::default() {
                    return AllowedValues::Word("object".to_owned());
                }
                AllowedValues::Object(members)
            }
            "array" if depth < MAX_DEPTH => self.array(parts, depth + 1),
            "string" => {
                let format = first(parts, "format");
                let format = format
                    .as_ref()
                    .and_then(RawJson::as_text)
                    .filter(|it| it.len() <= MAX_ENUM_VALUE_LENGTH && is_word(it));
                AllowedValues::Word(
                    format.map_or("string".to_owned(), |it| format!("string<{it}>")),
                )
            }
            word => AllowedValues::Word(word.to_owned()),
        }
    }

    fn array(&mut self, parts: &[RawJson], depth: usize) -> AllowedValues {
        let places = first(parts, "prefixItems").or_else(|| first(parts, "items"));
        if let Some(places) = places.as_ref().and_then(RawJson::elements) {
            let places = places.iter().take(MAX_ALTERNATIVES);
            return AllowedValues::Tuple(places.map(|it| self.shape(it, depth)).collect());
        }
        let items = first(parts, "items");
        AllowedValues::Array(Box::new(
            items.map_or(AllowedValues::Any, |it| self.shape(&it, depth)),
        ))
    }

    /// Returns the objects that describe members: those that apply, and those of alternatives, of which one applies.
    fn properties(&mut self, parts: &[RawJson]) -> Vec<RawJson> {
        let own = parts.iter().filter_map(|part| part.member("properties"));
        let mut found: Vec<RawJson> = own.collect();
        for alternative in alternatives(parts).iter().take(MAX_ALTERNATIVES) {
            let parts = self.parts(alternative);
            found.extend(parts.iter().filter_map(|part| part.member("properties")));
        }
        found
    }

    /// Returns all required members, and others while there is room.
    fn members(&mut self, parts: &[RawJson], depth: usize) -> Members {
        let mut required = required(parts);
        let mut members = Members::default();
        let mut seen = HashSet::new();
        for properties in self.properties(parts) {
            for property in properties.members().unwrap_or_default() {
                if !seen.insert(property.key.clone().into_owned()) {
                    continue;
                }
                let is_required = required.swap_remove(property.key.as_ref());
                if !is_required && members.known.len() >= MAX_OPTIONAL {
                    members.more += 1;
                    continue;
                }
                members.known.push(Member {
                    is_required,
                    shape: self.shape(&property.value, depth),
                    default: default(&property.value),
                    name: property.key.into_owned(),
                });
            }
        }
        members
            .known
            .extend(required.into_iter().map(|name| Member {
                name,
                is_required: true,
                shape: AllowedValues::Any,
                default: None,
            }));
        // Beside named members it would only make the line longer.
        let others = first(parts, "additionalProperties");
        if members.known.is_empty()
            && let Some(others) = others.filter(|it| it.kind() == Kind::Object)
        {
            members.others = Some(Box::new(self.shape(&others, depth)));
        }
        members
    }
}

/// Returns a member from the first part that has it.
fn first(parts: &[RawJson], name: &str) -> Option<RawJson> {
    parts.iter().find_map(|part| part.member(name))
}

/// Returns the names of all required members.
fn required(parts: &[RawJson]) -> indexmap::IndexSet<String> {
    let lists = parts.iter().filter_map(|part| part.member("required"));
    let names = lists.filter_map(|list| list.elements()).flatten();
    names
        .filter_map(|name| name.as_text().map(std::borrow::Cow::into_owned))
        .collect()
}

fn alternatives(parts: &[RawJson]) -> Vec<RawJson> {
    let lists = parts.iter().flat_map(|part| {
        let any = part.member("anyOf");
        [any, part.member("oneOf")].into_iter().flatten()
    });
    lists.filter_map(|it| it.elements()).flatten().collect()
}

/// Returns the types of a value; infers them if the schema names none.
fn types(parts: &[RawJson]) -> Vec<String> {
    let said = first(parts, "type");
    let several = said.as_ref().and_then(RawJson::elements);
    let words: Vec<String> = several
        .unwrap_or_else(|| said.into_iter().collect())
        .iter()
        .take(MAX_ALTERNATIVES)
        .filter_map(|word| word.as_text().map(std::borrow::Cow::into_owned))
        .filter(|word| is_word(word) && word.len() <= MAX_ENUM_VALUE_LENGTH)
        .collect();
    if !words.is_empty() {
        return words;
    }
    let has = |name: &str| parts.iter().any(|part| part.member(name).is_some());
    if has("properties") || has("additionalProperties") {
        vec!["object".to_owned()]
    } else if has("items") || has("prefixItems") {
        vec!["array".to_owned()]
    } else {
        Vec::new()
    }
}

/// Returns the values that the schema lists one by one.
fn literals(parts: &[RawJson]) -> Option<AllowedValues> {
    if let Some(only) = first(parts, "const") {
        return Some(AllowedValues::Words {
            values: vec![literal(&only)?],
            more: 0,
        });
    }
    let listed = first(parts, "enum")?.elements()?;
    let values: Vec<String> = listed
        .iter()
        .take(MAX_ENUM_VALUES)
        .filter_map(literal)
        .collect();
    (!values.is_empty()).then(|| AllowedValues::Words {
        more: listed.len() - values.len(),
        values,
    })
}

/// Returns a value as JSON on one line, if it is short.
fn literal(value: &RawJson) -> Option<String> {
    let text = match value.as_text() {
        Some(text) => quoted(&text),
        None => value.minified().as_str().to_owned(),
    };
    let fits = text.chars().take(MAX_ENUM_VALUE_LENGTH + 1).count() <= MAX_ENUM_VALUE_LENGTH;
    // With a hidden character it would look like another value.
    (fits && !text.chars().any(crate::visible::is_unseen)).then_some(text)
}

/// Returns the default of a value. A default of null is left out.
fn default(schema: &RawJson) -> Option<String> {
    literal(
        &schema
            .member("default")
            .filter(|it| it.kind() != Kind::Null)?,
    )
}

/// Adds a shape without duplicates. Nested alternatives are flattened, and lists of values are merged.
fn add(shapes: &mut Vec<AllowedValues>, shape: AllowedValues) {
    match shape {
        AllowedValues::Union(inner) => inner.into_iter().for_each(|it| add(shapes, it)),
        AllowedValues::Words { mut values, more } => {
            let known = shapes.iter_mut().find_map(|it| match it {
                AllowedValues::Words { values, more } => Some((values, more)),
                _ => None,
            });
            match known {
                Some((all, left_out)) => {
                    values.retain(|word| !all.contains(word));
                    all.append(&mut values);
                    *left_out += more;
                }
                None => shapes.push(AllowedValues::Words { values, more }),
            }
        }
        shape if !shapes.contains(&shape) => shapes.push(shape),
        _ => {}
    }
}

/// Returns whether a text is one word.
fn is_word(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '/');
    !text.is_empty() && text.chars().all(is_plain)
}
