//! Expands the texts of an entry, and records the origin of the values.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::Resolver;
use crate::config::{
    environment::clean,
    expand::{Expanded, UsedFrom, expand},
    literals::{arguments_for_secrets, names_secret},
    problems::{ReferenceFault, SourceLocation},
    raw::Text,
    resolved::Unset,
    secrets::{Secrets, is_plain_value},
    sources::{MissingValue, Sources},
};

/// The values that one server entry has taken from variables so far.
#[derive(Default)]
pub(super) struct EntryVariables {
    pub(super) unset: Vec<(SourceLocation, MissingValue)>,
    pub(super) secrets: Secrets,
}

impl EntryVariables {
    /// Returns the variables that are not set, in the order of the file.
    pub(super) fn unset(mut self) -> Vec<Unset> {
        self.unset.sort_by(|(one, _), (other, _)| one.cmp(other));
        let unset = self.unset.into_iter();
        unset
            .map(|(place, value)| Unset {
                value,
                path: place.path,
            })
            .collect()
    }
}

impl Resolver<'_> {
    pub(super) fn members(
        &mut self,
        variables: &mut EntryVariables,
        members: Option<&IndexMap<String, Text>>,
    ) -> IndexMap<String, String> {
        let members = members.into_iter().flatten();
        members
            .map(|(name, text)| (name.clone(), self.text(variables, text)))
            .collect()
    }

    /// Expands arguments, and records a warning if one contains a secret.
    pub(super) fn arguments(
        &mut self,
        variables: &mut EntryVariables,
        arguments: &[Text],
    ) -> Vec<String> {
        let written: Vec<&str> = arguments.iter().map(|it| it.written.as_str()).collect();
        let for_secrets = arguments_for_secrets(&written);
        let arguments = arguments.iter().enumerate().map(|(index, argument)| {
            let expanded = self.expanded(variables, argument);
            let is_named = for_secrets.contains(&index);
            let used = expanded.used.iter();
            for (from, _) in used.filter(|(from, value)| is_secret(from, value, is_named)) {
                let fault = ReferenceFault::InArguments(from.clone());
                self.findings.add(argument.place.clone(), fault);
            }
            expanded.text
        });
        arguments.collect()
    }

    pub(super) fn texts(&mut self, variables: &mut EntryVariables, texts: &[Text]) -> Vec<String> {
        texts
            .iter()
            .map(|text| self.text(variables, text))
            .collect()
    }

    /// Returns the text with its variables expanded. If that is impossible, records the faults and returns the text
    /// as written.
    pub(super) fn text(&mut self, variables: &mut EntryVariables, text: &Text) -> String {
        self.expanded(variables, text).text
    }

    pub(super) fn expanded(&mut self, variables: &mut EntryVariables, text: &Text) -> Expanded {
        let sources = Sources {
            environment: self.environment,
            folder: &self.folder,
        };
        match expand(&text.written, &sources) {
            Ok(expanded) => {
                for (from, value) in &expanded.used {
                    match from {
                        UsedFrom::Variable(name) => variables.secrets.add(name, value),
                        UsedFrom::File | UsedFrom::Keyring => {
                            variables.secrets.add("secret", value);
                        }
                    }
                }
                for variable in &expanded.empty {
                    let fault = ReferenceFault::Empty(variable.clone());
                    self.findings.add(text.place.clone(), fault);
                }
                for value in &expanded.missing {
                    variables.unset.push((text.place.clone(), value.clone()));
                    let fault = ReferenceFault::Missing(value.clone());
                    self.findings.add(text.place.clone(), fault);
                }
                expanded
            }
            Err(faults) => {
                for fault in faults {
                    self.findings.add(text.place.clone(), fault);
                }
                Expanded {
                    text: text.written.clone(),
                    ..Expanded::default()
                }
            }
        }
    }

    /// Returns a path relative to the folder of the file; `None` if a variable made it empty.
    pub(super) fn path(
        &mut self,
        variables: &mut EntryVariables,
        text: Option<&Text>,
    ) -> Option<PathBuf> {
        let path = self.text(variables, text?);
        (!path.is_empty()).then(|| clean(&self.folder.join(path)))
    }
}

/// Returns whether a value in an argument is certainly a secret: from a file or the keyring, or from a variable or
/// option that is named for one.
fn is_secret(from: &UsedFrom, value: &str, is_named: bool) -> bool {
    match from {
        UsedFrom::Variable(name) => (is_named || names_secret(name)) && !is_plain_value(value),
        UsedFrom::File | UsedFrom::Keyring => true,
    }
}
