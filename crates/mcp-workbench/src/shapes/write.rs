//! Shapes as text: short for signatures, and as TypeScript for scripts. A name that only one result had is not written.

use rawjson::Kind;

use super::shape::{ObjectShape, Shape};

/// The results that must have a name before it is written.
const FEWEST_RESULTS: u64 = 2;
/// The depth to which a shape is written, which is that to which values are read.
const MAX_WRITTEN_DEPTH: usize = 6;
/// The type of a value that is not known.
const UNKNOWN: &str = "unknown";

/// The form of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `{issues: {number, title?}[]}`: the types of values without parts go without saying.
    Signature,
    /// `{ issues: { number: number; title?: string }[] }`.
    TypeScript,
}

/// Returns a shape to a depth in at most so many characters; a deep shape loses its inner parts. `None` if it says nothing.
pub(super) fn text(shape: &Shape, form: Form, characters: usize) -> Option<String> {
    let writer = Writer {
        form,
        fewest_results: FEWEST_RESULTS,
    };
    let depths = (1..=MAX_WRITTEN_DEPTH).rev();
    let mut texts = depths.map(|depth| writer.shape(shape, depth));
    let text = texts.find(|text| text.chars().count() <= characters)?;
    // A plain string or number tells a model nothing.
    let has_parts = text.contains(['{', '[']) && text.contains(|it: char| it.is_alphabetic());
    has_parts.then_some(text)
}

/// Returns a shape with all of its names, which two shapes have in common only if they are the same but for counts.
pub(super) fn whole_text(shape: &Shape) -> String {
    let writer = Writer {
        form: Form::TypeScript,
        fewest_results: 0,
    };
    writer.shape(shape, MAX_WRITTEN_DEPTH)
}

struct Writer {
    form: Form,
    /// The results that must have a name.
    fewest_results: u64,
}

impl Writer {
    fn shape(&self, shape: &Shape, depth: usize) -> String {
        let mut types: Vec<String> = Vec::new();
        if let Some(object) = &shape.object {
            types.push(self.object(object, depth));
        }
        if let Some(element) = &shape.element {
            types.push(self.array(element, depth));
        }
        types.extend(shape.kinds().map(|kind| self.kind(kind)));
        match types.len() {
            0 => UNKNOWN.to_owned(),
            _ => types.join(" | "),
        }
    }

    fn array(&self, element: &Shape, depth: usize) -> String {
        if depth == 0 {
            return self.kind(Kind::Array);
        }
        let of = self.shape(element, depth - 1);
        // Without parentheses, `[]` would apply only to the last type.
        if of.contains(" | ") && !(of.starts_with('{') && of.ends_with('}')) {
            format!("({of})[]")
        } else {
            format!("{of}[]")
        }
    }

    fn object(&self, object: &ObjectShape, depth: usize) -> String {
        if depth == 0 {
            return self.kind(Kind::Object);
        }
        if let Some(values) = &object.values {
            let values = self.shape(values, depth - 1);
            return match self.form {
                Form::Signature => format!("{{[key]: {values}}}"),
                Form::TypeScript => format!("Record<string, {values}>"),
            };
        }
        let shown = object
            .members
            .iter()
            .filter(|it| it.results >= self.fewest_results);
        let members: Vec<String> = shown
            .map(|member| {
                let optional = if object.is_optional(member) { "?" } else { "" };
                let name = match self.form {
                    Form::TypeScript if member.name.contains('-') => format!("\"{}\"", member.name),
                    _ => member.name.clone(),
                };
                let shape = &member.shape;
                let goes_without_saying = self.form == Form::Signature
                    && shape.object.is_none()
                    && shape.element.is_none();
                if goes_without_saying {
                    return format!("{name}{optional}");
                }
                format!("{name}{optional}: {}", self.shape(shape, depth - 1))
            })
            .collect();
        match (self.form, members.is_empty()) {
            (Form::Signature, true) => "{}".to_owned(),
            (Form::Signature, false) => format!("{{{}}}", members.join(", ")),
            (Form::TypeScript, true) => "Record<string, unknown>".to_owned(),
            (Form::TypeScript, false) => format!("{{ {} }}", members.join("; ")),
        }
    }

    fn kind(&self, kind: Kind) -> String {
        match (kind, self.form) {
            (Kind::Array, Form::TypeScript) => "unknown[]".to_owned(),
            (Kind::Array, Form::Signature) => "array".to_owned(),
            (Kind::Object, Form::TypeScript) => "Record<string, unknown>".to_owned(),
            (kind, _) => kind.name().to_owned(),
        }
    }
}
