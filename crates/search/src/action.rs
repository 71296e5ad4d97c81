//! The action of a tool and the action that a query asks for. A request to see something is not served by a tool that
//! deletes it.

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    stem::stemmed,
    tokens::{Style, Word, each_term},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    See,
    Create,
    Change,
    Delete,
    /// Sends a message.
    Send,
    Run,
}

/// The actions by the stems of their verbs.
static ACTIONS: LazyLock<HashMap<String, Action>> = LazyLock::new(|| {
    let lines = include_str!("words/actions.txt").lines();
    let named = lines.filter_map(|line| line.split_once(':'));
    let words = named.flat_map(|(name, words)| {
        let action = Action::named(name);
        words
            .split_whitespace()
            .filter_map(move |word| Some((stemmed(word), action?)))
    });
    words.collect()
});

impl Action {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "see" => Self::See,
            "create" => Self::Create,
            "change" => Self::Change,
            "delete" => Self::Delete,
            "send" => Self::Send,
            "run" => Self::Run,
            _ => return None,
        })
    }

    /// Returns the action of a tool, from the first verb in its name.
    pub(crate) fn of_tool(name: &str) -> Option<Self> {
        let mut found = None;
        each_term(name, Style::Name, |term| {
            found = found.or_else(|| ACTIONS.get(term).copied());
        });
        found
    }

    /// Returns the action that a query asks for. A query that names only things asks to see them.
    pub(crate) fn of_query(words: &[Word]) -> Self {
        words.iter().find_map(Self::of_word).unwrap_or(Self::See)
    }

    /// Returns the action that a word of a query asks for, if it is a verb for one.
    pub(crate) fn of_word(word: &Word) -> Option<Self> {
        let action = ACTIONS.get(&word.term).copied()?;
        // "posts" and "created" describe the thing, not the action.
        let says_what = word.text.ends_with('s') || word.text.ends_with("ed");
        (action == Self::See || !says_what).then_some(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::words;

    #[test]
    fn the_first_verb_decides_the_action() {
        let tools = [
            ("list_created_issues", Some(Action::See)),
            ("linear_createIssue", Some(Action::Create)),
            ("slack_post_message", Some(Action::Send)),
            ("donki", None),
        ];
        for (name, expected) in tools {
            assert_eq!(Action::of_tool(name), expected, "{name}");
        }
        let queries = [
            ("please rename a section", Action::Change),
            ("which callbacks are registered", Action::See),
            ("posts of last week", Action::See),
            ("removing an old branch", Action::Delete),
            ("", Action::See),
        ];
        for (query, expected) in queries {
            assert_eq!(Action::of_query(&words(query)), expected, "{query}");
        }
    }

    #[test]
    fn every_line_of_the_table_is_parsed() {
        for line in include_str!("words/actions.txt").lines() {
            let (name, words) = line.split_once(':').unwrap();
            assert!(Action::named(name).is_some(), "{name}");
            assert!(words.split_whitespace().count() > 1, "{line}");
        }
    }
}
