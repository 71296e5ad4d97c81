//! A query taken apart: the words that are looked for, with those that stand for them, and what each counts.

use super::{
    action::Action,
    explain::How,
    index::Index,
    stem::stem,
    stop::{is_stop_word, is_weak_word},
    synonyms::{Nearness, near},
    tokens::{Word, words},
};

/// Longer queries are cut: what stands behind is data, not a question.
const LONGEST_QUERY: usize = 4_096;
/// So many different words of a query count.
const MOST_WORDS: usize = 64;

/// A word of the index that is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Its place in the index.
    pub term: u32,
    /// What a tool gains that is all about it.
    pub weight: f32,
    /// The word of the query that it stands for.
    pub word: usize,
    /// Why it stands for the word.
    pub how: How,
}

/// A word of a query.
#[derive(Debug)]
pub(super) struct Asked {
    /// As it was written, in lower case.
    pub text: String,
    /// By which it is found.
    term: String,
    how: How,
    /// How often it stands there.
    count: f32,
    weak: bool,
}

/// A query taken apart.
#[derive(Debug)]
pub(super) struct Request {
    /// The words that say something.
    pub asked: Vec<Asked>,
    /// The words of the index to look for, each once.
    pub wanted: Vec<Wanted>,
    /// What is to be done.
    pub action: Action,
}

impl Request {
    /// Takes a query apart.
    pub(super) fn new(index: &Index, text: &str) -> Self {
        let words = words(&text[..text.floor_char_boundary(LONGEST_QUERY)]);
        let asked = asked(index, &words);
        let wanted = wanted(index, &asked);
        Self {
            asked,
            wanted,
            action: Action::of_query(&words),
        }
    }
}

fn asked(index: &Index, words: &[Word]) -> Vec<Asked> {
    let all_grammar = words.iter().all(|word| is_stop_word(&word.text));
    let telling = words
        .iter()
        .filter(|word| all_grammar || !is_stop_word(&word.text));
    let mut asked: Vec<Asked> = Vec::new();
    for word in telling {
        if index.term(&word.term).is_some() || word.parts.is_empty() {
            ask(&mut asked, word, &word.term, How::Same);
            continue;
        }
        for part in &word.parts {
            ask(&mut asked, word, part, How::Part);
        }
    }
    for pair in words.windows(2) {
        if let Some(joined) = joined(index, &pair[0], &pair[1]) {
            ask(&mut asked, &joined, &joined.term, How::Joined);
        }
    }
    asked
}

/// Two words that the index knows as one: "lemon squeezy" is also "lemonsqueezy".
fn joined(index: &Index, first: &Word, second: &Word) -> Option<Word> {
    if is_stop_word(&first.text) || is_stop_word(&second.text) {
        return None;
    }
    let mut term = [first.text.as_str(), &second.text].concat();
    stem(&mut term);
    index.term(&term)?;
    Some(Word {
        text: format!("{} {}", first.text, second.text),
        term,
        parts: Vec::new(),
    })
}

fn ask(asked: &mut Vec<Asked>, word: &Word, term: &str, how: How) {
    if let Some(known) = asked.iter_mut().find(|known| known.term == term) {
        known.count += 1.0;
    } else if asked.len() < MOST_WORDS {
        asked.push(Asked {
            text: word.text.clone(),
            term: term.to_owned(),
            how,
            count: 1.0,
            weak: is_weak_word(&word.text),
        });
    }
}

fn wanted(index: &Index, asked: &[Asked]) -> Vec<Wanted> {
    let weights = &index.weights;
    let strong = asked.iter().filter(|word| !word.weak).count();
    #[expect(clippy::cast_precision_loss, reason = "there are few words")]
    let beyond = strong as f32 - weights.weak_from;
    let weak = (1.0 - weights.weak_slope * beyond).clamp(weights.weak_least, 1.0);
    let mut wanted: Vec<Wanted> = Vec::new();
    let own = |word: &Asked| {
        let part = if word.how == How::Part {
            weights.part
        } else {
            1.0
        };
        let weak = if word.weak { weak } else { 1.0 };
        word.count.powf(weights.repetition) * part * weak
    };
    for (number, word) in asked.iter().enumerate() {
        let term = index.term(&word.term);
        wanted.extend(term.map(|term| Wanted {
            term,
            weight: own(word),
            word: number,
            how: word.how,
        }));
    }
    let said = wanted.len();
    for (number, word) in asked.iter().enumerate() {
        for (other, nearness) in near(&word.term) {
            let Some(term) = index.term(other) else {
                continue;
            };
            if wanted[..said].iter().any(|own| own.term == term) {
                continue;
            }
            let (factor, how) = match nearness {
                Nearness::Same => (weights.synonym, How::Synonym),
                Nearness::Broader => (weights.broader, How::Broader),
            };
            let weight = own(word) * factor;
            match wanted[said..].iter_mut().find(|known| known.term == term) {
                Some(known) if known.weight >= weight => {}
                Some(known) => (known.weight, known.word, known.how) = (weight, number, how),
                None => wanted.push(Wanted {
                    term,
                    weight,
                    word: number,
                    how,
                }),
            }
        }
    }
    let own: Vec<Option<f32>> = asked
        .iter()
        .map(|word| Some(rarity(index, index.term(&word.term)?)))
        .collect();
    for wanted in &mut wanted {
        let rarity = rarity(index, wanted.term);
        // A rare word for a common thing says no more than the common one.
        let most = match wanted.how {
            How::Synonym => own[wanted.word].unwrap_or(rarity),
            _ => rarity,
        };
        wanted.weight *= rarity.min(most);
    }
    wanted
}

/// How rare a word is among the tools.
#[expect(clippy::cast_precision_loss, reason = "there are not so many tools")]
fn rarity(index: &Index, term: u32) -> f32 {
    let all = index.len() as f32;
    let having = index.terms[term as usize].postings.len() as f32;
    let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
    rarity.powf(index.weights.rarity)
}
