//! What is run, or reached, when a server is started: the parts of its entry as they are written, and the digests of the
//! files that it names. Values of variables are not among them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    program_files,
    programs::{Programs, Recall},
};
use crate::config::{Server, Written};

/// The part that is known only when the server has come up: its own name and version.
pub(super) const SAYS: &str = "says";

/// The parts of a launch by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch(BTreeMap<String, Value>);

impl Launch {
    /// How a server is started now. Files are read, which may take a moment.
    pub(super) fn of(server: &Server, programs: &Programs, recall: Recall) -> Self {
        let mut launch = Self::written(&server.written);
        let files = program_files::digests(server, programs, recall);
        if !files.is_empty() {
            let files = files.into_iter();
            let files = files.map(|(file, digest)| (file, Value::from(digest.to_string())));
            launch
                .0
                .insert("files".to_owned(), Value::Object(files.collect()));
        }
        launch
    }

    /// The same, where no file has to be read for it.
    pub(super) fn at_once(server: &Server, programs: &Programs, recall: Recall) -> Option<Self> {
        let is_known = program_files::are_known(server, programs, recall);
        is_known.then(|| Self::of(server, programs, recall))
    }

    /// The parts that stand in the entry.
    fn written(written: &Written) -> Self {
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

    /// The same launch of a server that has said what it is.
    #[must_use]
    pub fn saying(&self, product: Option<&str>) -> Self {
        let mut launch = self.clone();
        if let Some(product) = product {
            launch.0.insert(SAYS.to_owned(), product.into());
        }
        launch
    }

    /// A launch of parts that were kept.
    pub(super) fn of_parts(parts: BTreeMap<String, Value>) -> Self {
        Self(parts)
    }

    /// The parts, sorted by their names.
    pub fn parts(&self) -> &BTreeMap<String, Value> {
        &self.0
    }

    /// The names of the parts in which another launch differs.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let names = names.into_iter();
        names
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .cloned()
            .collect()
    }

    /// The names of the parts in which one that has not come up yet differs.
    pub fn differing_before_start(&self, other: &Self) -> Vec<String> {
        let mut names = self.differing(other);
        names.retain(|name| name != SAYS);
        names
    }
}
