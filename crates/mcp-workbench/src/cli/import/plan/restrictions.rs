//! Tool restrictions of an entry, for merging two clients' entries of one server.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const INCLUDED: &str = "includeTools";
const DISABLED: &str = "disabledTools";
const EXCLUDED: [&str; 2] = ["excludeTools", DISABLED];

/// The tool restrictions of an entry.
#[derive(Debug, PartialEq, Eq)]
struct Restrictions {
    /// The only tools that it allows; `None` if it allows all that are not excluded.
    included: Option<BTreeSet<String>>,
    /// The tools that it excludes.
    excluded: BTreeSet<String>,
}

/// Restricts an entry to the tools that both entries allow. Returns true if their restrictions differ.
pub(super) fn restrict_to_both(entry: &mut Map<String, Value>, other: &Value) -> bool {
    let one = Restrictions::of(|key| entry.get(key));
    let other = Restrictions::of(|key| other.get(key));
    if one == other {
        return false;
    }
    if let Some(included) = other.included {
        let both = match one.included {
            Some(own) => own.intersection(&included).cloned().collect(),
            None => included,
        };
        entry.insert(INCLUDED.to_owned(), list(both));
    }
    let added: BTreeSet<String> = other.excluded.difference(&one.excluded).cloned().collect();
    if !added.is_empty() {
        let disabled = names(entry.get(DISABLED)).unwrap_or_default();
        entry.insert(DISABLED.to_owned(), list(&disabled | &added));
    }
    true
}

impl Restrictions {
    fn of<'v>(member: impl Fn(&str) -> Option<&'v Value>) -> Self {
        let excluded = EXCLUDED.into_iter().filter_map(|key| names(member(key)));
        Self {
            included: names(member(INCLUDED)),
            excluded: excluded.flatten().collect(),
        }
    }
}

fn names(list: Option<&Value>) -> Option<BTreeSet<String>> {
    let names = list?.as_array()?.iter().filter_map(Value::as_str);
    Some(names.map(str::to_owned).collect())
}

fn list(names: BTreeSet<String>) -> Value {
    names.into_iter().collect::<Vec<String>>().into()
}
