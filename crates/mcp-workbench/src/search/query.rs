//! A query taken apart: what is looked for, and which words of the index stand for it.

use std::collections::HashSet;

use super::{
    explain::How,
    index::Index,
    stop::is_stop_word,
    synonyms::{Nearness, near},
    tokens::{Word, words},
};

/// Longer queries are cut: what stands behind is data, not a question.
const LONGEST_QUERY: usize = 4_096;
/// So many different words of a query count.
const MOST_CONCEPTS: usize = 64;

/// One thing that a query asks for, and the words of the index that stand for it.
#[derive(Debug)]
pub(super) struct Concept {
    /// The word of the query.
    pub word: String,
    /// How rare it is: how much it says to find it.
    pub rarity: f32,
    /// The words of the index for it, the best first; each counts, and only the best of them in one tool.
    pub variants: Vec<Variant>,
}

/// A word of the index that stands for a word of the query.
#[derive(Debug)]
pub(super) struct Variant {
    /// Its place in the index.
    pub term: u32,
    /// What a tool gains that is all about it.
    pub weight: f32,
    /// Why it stands for the word.
    pub how: How,
}

/// The concepts of a query.
pub(super) fn concepts(index: &Index, text: &str) -> Vec<Concept> {
    let cut = text.floor_char_boundary(LONGEST_QUERY);
    let all = words(&text[..cut]);
    let telling: Vec<&Word> = all
        .iter()
        .filter(|word| !is_stop_word(&word.text))
        .collect();
    let chosen = if telling.is_empty() {
        all.iter().collect()
    } else {
        telling
    };
    let mut seen = HashSet::new();
    let mut concepts = Vec::new();
    for word in chosen {
        if concepts.len() < MOST_CONCEPTS && seen.insert(word.term.as_str()) {
            read(index, word, &mut concepts);
        }
    }
    concepts
}

/// Adds what a word of the query asks for: itself, or its parts where the index does not know it.
fn read(index: &Index, word: &Word, concepts: &mut Vec<Concept>) {
    if index.term(&word.term).is_some() || word.parts.is_empty() {
        concepts.extend(concept(index, &word.text, &word.term, How::Same));
        return;
    }
    for part in &word.parts {
        concepts.extend(concept(index, part, part, How::Part));
    }
}

fn concept(index: &Index, word: &str, term: &str, how: How) -> Option<Concept> {
    let weights = &index.weights;
    let own = index.term(term);
    let own_rarity = own.map(|term| rarity(index, term));
    let mut variants = Vec::new();
    if let (Some(term), Some(rarity)) = (own, own_rarity) {
        let weight = if how == How::Part { weights.part } else { 1.0 };
        variants.push(Variant {
            term,
            weight: rarity * weight,
            how,
        });
    }
    for (other, nearness) in near(term) {
        let Some(other) = index.term(other) else {
            continue;
        };
        let (weight, how) = match nearness {
            Nearness::Same => (weights.synonym, How::Synonym),
            Nearness::Related => (weights.related, How::Related),
        };
        // A rare word for a common thing is no better than the common one.
        let rarity =
            own_rarity.map_or_else(|| rarity(index, other), |own| own.min(rarity(index, other)));
        variants.push(Variant {
            term: other,
            weight: rarity * weight,
            how,
        });
    }
    let rarity = own_rarity.or_else(|| variants.first().map(|first| rarity(index, first.term)))?;
    Some(Concept {
        word: word.to_owned(),
        rarity,
        variants,
    })
}

/// How rare a word is among the tools.
#[expect(clippy::cast_precision_loss, reason = "there are not so many tools")]
fn rarity(index: &Index, term: u32) -> f32 {
    let all = index.len() as f32;
    let having = index.terms[term as usize].postings.len() as f32;
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}
