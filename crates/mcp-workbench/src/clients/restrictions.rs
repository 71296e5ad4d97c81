//! Tool restrictions of an entry, for comparing and merging two entries of one server.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const INCLUDED: &str = "includeTools";
const DISABLED: &str = "disabledTools";
const EXCLUDED: [&str; 2] = ["excludeTools", DISABLED];

/// The tool restrictions of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restrictions {
    /// The only tools that it allows; `None` if it allows all that are not excluded.
    included: Option<BTreeSet<String>>,
    /// The tools that it excludes.
    excluded: BTreeSet<String>,
}

/// Restricts an entry to the tools that both entries allow. Returns true if their restrictions differ.
pub(crate) fn restrict_to_both(entry: &mut Map<String, Value>, other: &Value) -> bool {
    let one = Restrictions::of_members(|key| entry.get(key));
    let other = Restrictions::of(other);
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
    pub(crate) fn of(entry: &Value) -> Self {
        Self::of_members(|key| entry.get(key))
    }

    /// Returns true if the other restrictions allow a tool that these do not.
    pub(crate) fn is_stricter_than(&self, other: &Self) -> bool {
        let excludes_more = self.excluded.iter().any(|tool| other.allows(tool));
        let includes_less = match (&self.included, &other.included) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(_), Some(theirs)) => {
                let mut allowed = theirs.iter().filter(|tool| other.allows(tool));
                allowed.any(|tool| !self.allows(tool))
            }
        };
        excludes_more || includes_less
    }

    fn allows(&self, tool: &str) -> bool {
        let is_included = self.included.as_ref().is_none_or(|it| it.contains(tool));
        is_included && !self.excluded.contains(tool)
    }

    fn of_members<'v>(member: impl Fn(&str) -> Option<&'v Value>) -> Self {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn restrictions_are_stricter_if_they_forbid_an_allowed_tool() {
        let include = |names: &[&str]| json!({"includeTools": names});
        let disable = |names: &[&str]| json!({"disabledTools": names});
        let cases = [
            (json!({}), json!({}), false),
            (json!({}), include(&["a"]), false),
            (include(&["a"]), json!({}), true),
            (include(&["a"]), include(&["a"]), false),
            (include(&["a"]), include(&["a", "b"]), true),
            (include(&["a", "b"]), include(&["a"]), false),
            (disable(&["a"]), json!({}), true),
            (disable(&["a"]), disable(&["a", "b"]), false),
            (disable(&["a"]), json!({"excludeTools": ["a"]}), false),
            (disable(&["a"]), include(&["b"]), false),
            (disable(&["a"]), include(&["a"]), true),
            (
                include(&["a"]),
                json!({"includeTools": ["a", "b"], "disabledTools": ["b"]}),
                false,
            ),
        ];
        for (one, other, expected) in cases {
            let stricter = Restrictions::of(&one).is_stricter_than(&Restrictions::of(&other));
            assert_eq!(stricter, expected, "{one} {other}");
        }
    }
}
