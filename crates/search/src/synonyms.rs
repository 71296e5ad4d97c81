//! Synonyms and broader terms: a tool says "retrieve" for a query with "get", and "sport" for a query about tennis.

use std::{collections::HashMap, sync::LazyLock};

use crate::stem::stemmed;

/// The relation between two words of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nearness {
    /// It is the subject of the other.
    Broader,
    Same,
}

type Table = HashMap<String, Vec<(String, Nearness)>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::new();
    // Each word has the same meaning as all others of its line.
    for line in include_str!("words/same.txt").lines() {
        let words: Vec<String> = line.split_whitespace().map(stemmed).collect();
        for word in &words {
            for other in &words {
                add(&mut table, word, other, Nearness::Same);
            }
        }
    }
    // The line has subjects, a colon, and words that belong to them. Such a word finds its subjects, but a subject
    // does not find the words.
    for line in include_str!("words/broader.txt").lines() {
        let Some((subjects, words)) = line.split_once(':') else {
            continue;
        };
        for word in words.split_whitespace().map(stemmed) {
            for subject in subjects.split_whitespace().map(stemmed) {
                add(&mut table, &word, &subject, Nearness::Broader);
            }
        }
    }
    table
});

fn add(table: &mut Table, word: &str, other: &str, nearness: Nearness) {
    if word == other {
        return;
    }
    let near = table.entry(word.to_owned()).or_default();
    if near.iter().all(|(known, _)| known != other) {
        near.push((other.to_owned(), nearness));
    }
}

/// Returns the words related to the one with this stem, as stems.
pub(crate) fn near(term: &str) -> &'static [(String, Nearness)] {
    TABLE.get(term).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near_to(word: &str) -> Vec<(&'static str, Nearness)> {
        let near = near(&stemmed(word)).iter();
        near.map(|(word, nearness)| (word.as_str(), *nearness))
            .collect()
    }

    #[test]
    fn words_of_one_meaning_lead_to_each_other_and_subjects_do_not_lead_back() {
        assert!(near_to("repo").contains(&("repositori", Nearness::Same)));
        assert!(near_to("repositories").contains(&("repo", Nearness::Same)));
        assert!(near_to("tennis").contains(&("sport", Nearness::Broader)));
        assert!(near_to("sport").iter().all(|(word, _)| *word != "tenni"));
        assert!(near_to("xyzzy").is_empty());
    }

    #[test]
    fn every_line_of_the_tables_is_read() {
        for line in include_str!("words/same.txt").lines() {
            assert!(line.split_whitespace().count() > 1, "{line}");
        }
        for line in include_str!("words/broader.txt").lines() {
            let (subjects, words) = line.split_once(':').unwrap();
            assert!(
                !subjects.trim().is_empty() && !words.trim().is_empty(),
                "{line}"
            );
        }
    }
}
