//! Translates references in clients' entries to our syntax. A remark reports each that cannot be translated.

use std::path::Path;

use super::{
    client::Interpolation,
    remark::{Remark, ValueSource},
};
use crate::config::escape_references;

#[derive(Debug, Clone, Copy)]
pub(super) struct ReferenceContext<'a> {
    /// The client's syntax for variables.
    pub(super) dialect: Interpolation,
    /// The directory that the entry is for.
    pub(super) project: Option<&'a Path>,
}

/// A translated text with remarks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TranslatedText {
    /// The text. If it has a reference that cannot be translated, all of it is literal.
    pub(super) text: String,
    pub(super) remarks: Vec<Remark>,
}

enum Meaning {
    /// The value of a variable.
    Variable {
        name: String,
        default: Option<String>,
        source: Option<ValueSource>,
    },
    /// A reference with the same meaning here.
    Same(&'static str),
    Text(String),
    Unknown,
}

/// Translates the text of `key`.
pub(super) fn translate(text: &str, key: &str, from: ReferenceContext<'_>) -> TranslatedText {
    let mut translated = TranslatedText::default();
    let mut rest = text;
    // References begin with `$`, and those of opencode with `{`.
    while let Some(at) = rest.find(['$', '{']) {
        translated.push_literal(&rest[..at]);
        rest = &rest[at..];
        let Some((length, meaning)) = from.reference(rest) else {
            translated.push_literal(&rest[..1]);
            rest = &rest[1..];
            continue;
        };
        if !translated.push(meaning, from.dialect) {
            return untranslatable(text, key, &rest[..length]);
        }
        rest = &rest[length..];
    }
    translated.push_literal(rest);
    translated
}

/// Translates a bare variable name.
pub(super) fn translate_name(name: &str, key: &str) -> TranslatedText {
    if !is_name(name) {
        return untranslatable(name, key, &format!("${{{name}}}"));
    }
    TranslatedText {
        text: format!("${{{name}}}"),
        remarks: Vec::new(),
    }
}

/// Returns the text of one of our own entries with `${env:VAR}` as `${VAR}`, so that entries can be compared.
pub(super) fn normalize_own(text: &str) -> String {
    let mut normalized = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let is_escaped = rest[..at].ends_with('$');
        normalized.push_str(&rest[..at + 2]);
        rest = &rest[at + 2..];
        if !is_escaped {
            rest = rest.strip_prefix("env:").unwrap_or(rest);
        }
    }
    normalized.push_str(rest);
    normalized
}

/// Makes the whole text a literal: a reference that means nothing to the client may mean something to us. The
/// remark omits what follows a colon, because it may be a secret.
fn untranslatable(text: &str, key: &str, reference: &str) -> TranslatedText {
    let reference = match reference.split_once(':') {
        Some((begin, _)) => format!("{begin}:…}}"),
        None => reference.to_owned(),
    };
    TranslatedText {
        text: escape_references(text),
        remarks: vec![Remark::Untranslatable {
            key: key.to_owned(),
            reference,
        }],
    }
}

impl TranslatedText {
    /// Adds text that must not become part of a reference together with what precedes it, such as a folder named
    /// `app$` before `{file:…}`.
    fn push_literal(&mut self, text: &str) {
        if self.text.ends_with('$') && text.starts_with('{') {
            self.text.push('$');
        }
        self.text.push_str(&escape_references(text));
    }

    /// Adds a reference; returns false if it cannot be translated.
    fn push(&mut self, meaning: Meaning, dialect: Interpolation) -> bool {
        // After a `$` our reference would read as the escape for a literal `${`.
        let glued = self.text.ends_with('$');
        match meaning {
            Meaning::Text(text) => self.push_literal(&text),
            Meaning::Unknown => return false,
            Meaning::Same(_) | Meaning::Variable { .. } if glued => return false,
            Meaning::Same(reference) => self.text.push_str(reference),
            Meaning::Variable {
                name,
                default,
                source,
            } => {
                let default = default.map_or_else(String::new, |text| format!(":-{text}"));
                self.text.push_str(&format!("${{{name}{default}}}"));
                let passed_on = matches!(dialect, Interpolation::None | Interpolation::NamesIn(_));
                let variable = name;
                match source {
                    Some(source) => self.remark(Remark::SetVariable { variable, source }),
                    None if passed_on => self.remark(Remark::NowReplaced { variable }),
                    None => {}
                }
            }
        }
        true
    }

    fn remark(&mut self, remark: Remark) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

impl ReferenceContext<'_> {
    /// Returns the length and meaning of the reference at the start of the text.
    fn reference(&self, text: &str) -> Option<(usize, Meaning)> {
        if let Some(inside) = text.strip_prefix("${{")
            && let Some(length) = inside.find("}}")
        {
            // Five characters are the braces and the dollar sign around it.
            return Some((length + 5, template(inside[..length].trim())));
        }
        if let Some(inside) = text.strip_prefix("${") {
            return Some(match inside.find('}') {
                Some(length) => (length + 3, self.braces(&inside[..length])),
                // Without its brace it is not a reference for the client. It must not become one for the workbench, so
                // it is escaped.
                None => (2, Meaning::Text("${".to_owned())),
            });
        }
        match self.dialect {
            Interpolation::Dollar => {
                let name = text.strip_prefix('$')?;
                let length = name.find(|it: char| !is_name_letter(it));
                let name = &name[..length.unwrap_or(name.len())];
                is_name(name).then(|| (name.len() + 1, variable(name)))
            }
            Interpolation::Curly => {
                let inside = text.strip_prefix('{')?;
                let inside = &inside[..inside.find('}')?];
                let meaning = match inside.split_once(':')? {
                    ("env", name) if is_name(name) => variable(name),
                    ("env" | "file", _) => Meaning::Unknown,
                    // Other braces are text, for example JSON in an argument.
                    _ => return None,
                };
                Some((inside.len() + 2, meaning))
            }
            _ => None,
        }
    }

    /// Returns the meaning of the text between `${` and `}`.
    fn braces(&self, inside: &str) -> Meaning {
        // Nested references are not supported here.
        if inside.contains("${") {
            return Meaning::Unknown;
        }
        let (subject, default) = match inside.split_once(":-") {
            Some((subject, default)) => (subject, Some(default.to_owned())),
            None => (inside, None),
        };
        match subject {
            "userHome" => return Meaning::Same("${userHome}"),
            "workspaceFolder" | "workspaceRoot" | "cwd" => return self.project_folder(),
            "workspaceFolderBasename" => {
                let name = self.project.and_then(Path::file_name);
                return name.map_or(Meaning::Unknown, |name| {
                    Meaning::Text(name.to_string_lossy().into_owned())
                });
            }
            "pathSeparator" | "/" => {
                return Meaning::Text(std::path::MAIN_SEPARATOR_STR.to_owned());
            }
            _ => {}
        }
        if let Some(id) = subject.strip_prefix("input:") {
            return Meaning::Variable {
                name: variable_of(id),
                default: None,
                source: Some(ValueSource::Input),
            };
        }
        let name = subject.strip_prefix("env:").unwrap_or(subject);
        if is_name(name) {
            return Meaning::Variable {
                name: name.to_owned(),
                default,
                source: None,
            };
        }
        // Probably a reference of a kind that this client knows and we do not.
        if subject.contains([':', '.']) {
            return Meaning::Unknown;
        }
        Meaning::Text(format!("${{{inside}}}"))
    }

    fn project_folder(&self) -> Meaning {
        match self.project {
            Some(project) => Meaning::Text(project.to_string_lossy().into_owned()),
            None => Meaning::Same("${workspaceFolder}"),
        }
    }
}

/// Returns the meaning of the text between `${{` and `}}`.
fn template(inside: &str) -> Meaning {
    match inside.split_once('.') {
        Some(("secrets" | "inputs", name)) if is_name(name) => Meaning::Variable {
            name: name.to_owned(),
            default: None,
            source: Some(ValueSource::SecretStore),
        },
        _ => Meaning::Unknown,
    }
}

fn variable(name: &str) -> Meaning {
    Meaning::Variable {
        name: name.to_owned(),
        default: None,
        source: None,
    }
}

/// Returns the variable name for an input that a client prompts for.
fn variable_of(id: &str) -> String {
    let mut name: String = id
        .chars()
        .map(|it| {
            if it.is_ascii_alphanumeric() {
                it.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    // The name of a variable cannot begin with a digit.
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "INPUT_");
    }
    name
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| is_name_letter(first) && !first.is_ascii_digit())
        && name.chars().all(is_name_letter)
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests;
