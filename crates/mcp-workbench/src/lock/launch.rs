//! The launch of a server: the parts of its entry as they are written, and the digests of the files that it names and
//! of the variables that point to code. It contains no value of a variable.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    canonical::Digest,
    inputs, program_files,
    programs::{Programs, ReusableDigests},
};
use crate::config::{Server, WrittenEntry};

/// The part that is known only after the start: the server's own name and version.
pub(super) const SAYS: &str = "says";
/// The part with the digests of a program's inputs. Lock files of earlier versions lack it, and it is not compared with
/// those.
pub(super) const INPUTS: &str = "inputs";

/// The parts of a launch by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch(BTreeMap<String, Value>);

impl Launch {
    /// Returns the current launch of a server. Reads files, which may take a moment.
    pub(super) fn of(server: &Server, programs: &Programs, reusable: ReusableDigests) -> Self {
        let mut launch = Self::written(&server.written);
        let files = program_files::digests(server, programs, reusable);
        if !files.is_empty() {
            launch.0.insert("files".to_owned(), in_words(files));
        }
        // An empty part records that there were no inputs, so that a new one is a change.
        if let Some(inputs) = inputs::digests(server, programs, reusable) {
            launch.0.insert(INPUTS.to_owned(), in_words(inputs));
        }
        launch
    }

    /// Returns the parts from the entry.
    fn written(written: &WrittenEntry) -> Self {
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let texts = |texts: &[String]| (!texts.is_empty()).then(|| Value::from(texts.to_vec()));
        let parts = [
            ("args", texts(&written.args)),
            ("command", text(&written.command)),
            ("cwd", text(&written.cwd)),
            ("env", texts(&written.env)),
            ("envFile", text(&written.env_file)),
            ("headers", texts(&written.headers)),
            ("inheritEnv", texts(&written.inherit_env)),
            ("type", text(&written.kind)),
            ("url", text(&written.url)),
        ];
        let parts = parts.into_iter();
        Self(
            parts
                .filter_map(|(name, part)| Some((name.to_owned(), part?)))
                .collect(),
        )
    }

    /// Returns the same launch with the name and version that the server reports.
    #[must_use]
    pub fn saying(&self, product: Option<&str>) -> Self {
        let mut launch = self.clone();
        if let Some(product) = product {
            launch.0.insert(SAYS.to_owned(), product.into());
        }
        launch
    }

    /// Creates a launch from stored parts.
    pub(super) fn of_parts(parts: BTreeMap<String, Value>) -> Self {
        Self(parts)
    }

    /// Returns the parts, sorted by name.
    pub fn parts(&self) -> &BTreeMap<String, Value> {
        &self.0
    }

    /// Returns true if an earlier version, which compared fewer parts, recorded this launch.
    pub fn is_older_than(&self, other: &Self) -> bool {
        other.0.contains_key(INPUTS) && !self.0.contains_key(INPUTS)
    }

    /// Returns the names of the parts in which another launch differs from this recorded one.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let is_older = self.is_older_than(other);
        let names = names
            .into_iter()
            .filter(|name| !(is_older && *name == INPUTS));
        names
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .cloned()
            .collect()
    }

    /// Returns the names of the parts that differ before the server has started.
    pub fn differing_before_start(&self, other: &Self) -> Vec<String> {
        let mut names = self.differing(other);
        names.retain(|name| name != SAYS);
        names
    }
}

/// Converts digests by name to a JSON value.
fn in_words(digests: BTreeMap<String, Digest>) -> Value {
    let digests = digests
        .into_iter()
        .map(|(name, digest)| (name, Value::from(digest.to_string())));
    Value::Object(digests.collect())
}
