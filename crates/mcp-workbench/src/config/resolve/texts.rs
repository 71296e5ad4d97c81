//! The texts of an entry: their references replaced, and what was taken from where noted.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::Resolver;
use crate::config::{
    environment::clean,
    expand::{Expanded, UsedFrom, expand},
    literals::{arguments_for_secrets, names_secret},
    problems::{Place, ReferenceFault},
    raw::Text,
    resolved::Unset,
    secrets::{Secrets, is_plain_value},
    sources::{MissingValue, Sources},
};

/// What one server entry has taken from variables so far.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) unset: Vec<(Place, MissingValue)>,
    pub(super) secrets: Secrets,
}

impl Taken {
    /// The variables that are not set, in the order of the file.
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
        taken: &mut Taken,
        members: Option<&IndexMap<String, Text>>,
    ) -> IndexMap<String, String> {
        let members = members.into_iter().flatten();
        members
            .map(|(name, text)| (name.clone(), self.text(taken, text)))
            .collect()
    }

    /// Arguments, with a word where one holds a secret.
    pub(super) fn arguments(&mut self, taken: &mut Taken, arguments: &[Text]) -> Vec<String> {
        let written: Vec<&str> = arguments.iter().map(|it| it.written.as_str()).collect();
        let for_secrets = arguments_for_secrets(&written);
        let arguments = arguments.iter().enumerate().map(|(index, argument)| {
            let expanded = self.expanded(taken, argument);
            let is_named = for_secrets.contains(&index);
            let used = expanded.used.iter();
            for (from, _) in used.filter(|it| is_secret(it, is_named)) {
                let fault = ReferenceFault::InArguments(from.clone());
                self.findings.add(argument.place.clone(), fault);
            }
            expanded.text
        });
        arguments.collect()
    }

    pub(super) fn texts(&mut self, taken: &mut Taken, texts: &[Text]) -> Vec<String> {
        texts.iter().map(|text| self.text(taken, text)).collect()
    }

    /// The text with its variables expanded; as written where that is impossible, which is noted.
    pub(super) fn text(&mut self, taken: &mut Taken, text: &Text) -> String {
        self.expanded(taken, text).text
    }

    fn expanded(&mut self, taken: &mut Taken, text: &Text) -> Expanded {
        let sources = Sources {
            environment: self.environment,
            folder: &self.folder,
        };
        match expand(&text.written, &sources) {
            Ok(expanded) => {
                for (from, value) in &expanded.used {
                    match from {
                        UsedFrom::Variable(name) => taken.secrets.add(name, value),
                        UsedFrom::File | UsedFrom::Keyring => taken.secrets.add("secret", value),
                    }
                }
                for variable in &expanded.empty {
                    let fault = ReferenceFault::Empty(variable.clone());
                    self.findings.add(text.place.clone(), fault);
                }
                for value in &expanded.missing {
                    taken.unset.push((text.place.clone(), value.clone()));
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

    /// A path seen from the folder of the file; one that a variable made empty is none.
    pub(super) fn path(&mut self, taken: &mut Taken, text: Option<&Text>) -> Option<PathBuf> {
        let path = self.text(taken, text?);
        (!path.is_empty()).then(|| clean(&self.folder.join(path)))
    }
}

/// Whether a value that went into an argument is a secret for certain: one of a file or the keyring, or of a variable
/// that is named for one, as the argument itself may be.
fn is_secret((from, value): &(UsedFrom, String), is_named: bool) -> bool {
    match from {
        UsedFrom::Variable(name) => (is_named || names_secret(name)) && !is_plain_value(value),
        UsedFrom::File | UsedFrom::Keyring => true,
    }
}
