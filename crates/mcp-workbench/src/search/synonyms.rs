//! Words that mean the same, and words of one subject. A tool says "retrieve" where somebody asks to "get".

use std::{collections::HashMap, sync::LazyLock};

use super::stem::stem;

/// Words of the same meaning, a group a line.
const SAME: &[&str] = &[
    "repo repository",
    "delete remove erase drop destroy discard",
    "fetch get retrieve obtain read load",
    "create add new make insert generate build",
    "picture image photo photograph img pic",
    "weather forecast",
    "lookup search find query locate seek discover",
    "directory folder dir",
    "email mail gmail inbox",
    "doc document docs documentation",
    "db database",
    "update edit modify change alter set",
    "list show enumerate display view",
];

/// Words of one subject, a group a line.
const RELATED: &[&str] = &[
    "sport football soccer basketball league team match",
    "money finance bank payment currency",
];

/// How near two words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nearness {
    /// Of one subject.
    Related,
    /// Of the same meaning.
    Same,
}

static TABLE: LazyLock<HashMap<String, Vec<(String, Nearness)>>> = LazyLock::new(|| {
    let mut table = HashMap::<String, Vec<(String, Nearness)>>::new();
    for (groups, nearness) in [(SAME, Nearness::Same), (RELATED, Nearness::Related)] {
        for group in groups {
            let words: Vec<String> = group.split(' ').map(stemmed).collect();
            for word in &words {
                let near = table.entry(word.clone()).or_default();
                for other in words.iter().filter(|other| *other != word) {
                    if near.iter().all(|(known, _)| known != other) {
                        near.push((other.clone(), nearness));
                    }
                }
            }
        }
    }
    table
});

/// The words that are near to the one with this stem, as stems.
pub(super) fn near(term: &str) -> &'static [(String, Nearness)] {
    TABLE.get(term).map_or(&[], Vec::as_slice)
}

fn stemmed(word: &str) -> String {
    let mut word = word.to_owned();
    stem(&mut word);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_meaning_lead_to_each_other() {
        let near_repo: Vec<&str> = near("repo").iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(near_repo, ["repositori"]);
        assert!(near("repositori").iter().any(|(word, _)| word == "repo"));
        assert!(near("xyzzy").is_empty());
    }
}
