//! The HTTP headers with which a modern request can be routed without reading its body: `Mcp-Method`, `Mcp-Name`, and
//! `Mcp-Param-…` for the arguments that a tool's schema marks.

use std::{borrow::Cow, collections::HashSet};

use base64::{Engine, prelude::BASE64_STANDARD};
use rawjson::{Kind, RawJson};
use thiserror::Error;

pub(crate) const METHOD: &str = "mcp-method";
/// The name or URI that the request is about.
pub(crate) const NAME: &str = "mcp-name";
pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The prefix of the headers for arguments.
pub(crate) const PARAMETER_PREFIX: &str = "mcp-param-";

/// The schema keyword that marks an argument.
const MARK: &str = "x-mcp-header";
/// The notation for a value that cannot be written in a header as it is.
const ENCODED_BEGIN: &str = "=?base64?";
const ENCODED_END: &str = "?=";
/// The maximum depth to which a schema is searched.
const MAX_DEPTH: usize = 32;

/// Returns the member of the parameters that `Mcp-Name` repeats, if the method has one.
pub(crate) fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// Encodes a text as the value of a header.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    // HTTP removes white space around a value.
    let edge = |c: char| matches!(c, ' ' | '\t');
    // Sent as it is, such a text would be decoded by its reader.
    let looks_encoded = text.starts_with(ENCODED_BEGIN) && text.ends_with(ENCODED_END);
    let cut_off = text.starts_with(edge) || text.ends_with(edge);
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if visible && !cut_off && !looks_encoded {
        return text.into();
    }
    let encoded = BASE64_STANDARD.encode(text);
    format!("{ENCODED_BEGIN}{encoded}{ENCODED_END}").into()
}

/// Decodes the value of a header; `None` if it is malformed.
pub(crate) fn decode(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value
        .strip_prefix(ENCODED_BEGIN)
        .and_then(|rest| rest.strip_suffix(ENCODED_END));
    let Some(encoded) = encoded else {
        // Readers differ in how they decode other bytes.
        let visible = value
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        return visible.then_some(value.into());
    };
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    Some(decoded.into())
}

/// An argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParameterHeader {
    /// The path of the argument.
    path: Vec<String>,
    /// True for an integer, which is compared as a number.
    is_integer: bool,
    /// The name of the header, in lower case.
    pub header: String,
}

/// The reason why the marks in a schema are invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum MarkProblem {
    /// The mark is not on an argument.
    #[error("x-mcp-header is not on an argument")]
    Misplaced,
    /// The mark is not a valid header name.
    #[error("x-mcp-header is not a valid header name")]
    NoName,
    /// Two arguments use one header.
    #[error("x-mcp-header uses {0} for two arguments")]
    Duplicate(String),
    /// The type of the argument cannot be written in a header.
    #[error("x-mcp-header is on an argument that is not a string, integer or boolean")]
    NotPlain,
}

impl ParameterHeader {
    /// Returns the arguments that a tool's input schema marks.
    pub(crate) fn all_in(schema: &RawJson) -> Result<Vec<Self>, MarkProblem> {
        // Almost no schema has a mark, and the substring search costs next to nothing.
        if memchr::memmem::find(schema.as_bytes(), MARK.as_bytes()).is_none() {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        walk(schema, &SchemaPosition::Root, 0, &mut found)?;
        let mut names = HashSet::new();
        for it in &found {
            if !names.insert(it.header.clone()) {
                return Err(MarkProblem::Duplicate(it.header.clone()));
            }
        }
        Ok(found)
    }

    /// Returns the value of the argument in a call, as text; `None` if it is missing or not a plain value.
    pub(crate) fn value(&self, arguments: &RawJson) -> Option<String> {
        let mut value = arguments.clone();
        for key in &self.path {
            value = value.member(key)?;
        }
        match value.kind() {
            Kind::String => Some(value.as_text()?.into_owned()),
            Kind::Number | Kind::Boolean => Some(value.as_str().to_owned()),
            Kind::Object | Kind::Array | Kind::Null => None,
        }
    }

    /// Returns whether the header, as it was sent, agrees with the arguments. A duplicate argument agrees with no
    /// header, because it is unknown which of the two the server will read.
    pub(crate) fn agrees(&self, given: Option<&str>, arguments: &RawJson) -> bool {
        if self.is_ambiguous(arguments) {
            return false;
        }
        match (given.map(decode), self.value(arguments)) {
            (None, None) => true,
            (Some(Some(given)), Some(value)) => given == value || self.same_number(&given, &value),
            _ => false,
        }
    }

    /// Returns whether the path matches more than one argument.
    fn is_ambiguous(&self, arguments: &RawJson) -> bool {
        let mut value = arguments.clone();
        for key in &self.path {
            let members = value.members().unwrap_or_default();
            let mut named = members.into_iter().filter(|member| member.key == *key);
            match (named.next().map(|member| member.value), named.next()) {
                (Some(_), Some(_)) => return true,
                (Some(only), None) => value = only,
                (None, _) => return false,
            }
        }
        false
    }

    /// Returns whether two texts are the same integer, as `1` and `1.0` are.
    fn same_number(&self, one: &str, other: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        self.is_integer && number(one).is_some() && number(one) == number(other)
    }
}

/// The position of a subschema.
enum SchemaPosition {
    Root,
    /// An argument, with its path.
    Argument(Vec<String>),
    /// A position that describes no argument.
    Elsewhere,
}

impl SchemaPosition {
    fn argument(&self, name: &str) -> Self {
        match self {
            Self::Root => Self::Argument(vec![name.to_owned()]),
            Self::Argument(path) => {
                Self::Argument(path.iter().cloned().chain([name.to_owned()]).collect())
            }
            Self::Elsewhere => Self::Elsewhere,
        }
    }
}

fn walk(
    schema: &RawJson,
    position: &SchemaPosition,
    depth: usize,
    found: &mut Vec<ParameterHeader>,
) -> Result<(), MarkProblem> {
    // The schema comes from a server, and a deep one must not exhaust the stack.
    if depth > MAX_DEPTH {
        return Ok(());
    }
    if let Some(elements) = schema.elements() {
        return elements
            .iter()
            .try_for_each(|it| walk(it, &SchemaPosition::Elsewhere, depth + 1, found));
    }
    for member in schema.members().unwrap_or_default() {
        match member.key.as_ref() {
            MARK => found.push(marked(schema, position, &member.value)?),
            // Only here a key is the name of an argument.
            "properties" => {
                for argument in member.value.members().unwrap_or_default() {
                    let position = position.argument(&argument.key);
                    walk(&argument.value, &position, depth + 1, found)?;
                }
            }
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for named in member.value.members().unwrap_or_default() {
                    walk(&named.value, &SchemaPosition::Elsewhere, depth + 1, found)?;
                }
            }
            // These hold values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => walk(&member.value, &SchemaPosition::Elsewhere, depth + 1, found)?,
        }
    }
    Ok(())
}

fn marked(
    schema: &RawJson,
    position: &SchemaPosition,
    name: &RawJson,
) -> Result<ParameterHeader, MarkProblem> {
    let SchemaPosition::Argument(path) = position else {
        return Err(MarkProblem::Misplaced);
    };
    let name = name.as_text().ok_or(MarkProblem::NoName)?;
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(MarkProblem::NoName);
    }
    let kind = schema.member("type");
    let kind = kind.as_ref().and_then(RawJson::as_text);
    if !matches!(kind.as_deref(), Some("string" | "integer" | "boolean")) {
        return Err(MarkProblem::NotPlain);
    }
    Ok(ParameterHeader {
        path: path.clone(),
        is_integer: kind.as_deref() == Some("integer"),
        header: format!("{PARAMETER_PREFIX}{}", name.to_ascii_lowercase()),
    })
}

/// Returns whether a character is allowed in a header name.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}
