//! A parsed query: the words to search for, with related words, and the weight of each.

use crate::{
    action::Action,
    explain::MatchKind,
    index::Index,
    slip::is_one_slip_away,
    stem::stem,
    stop::{is_stop_word, is_weak_word},
    synonyms::{Nearness, near},
    tokens::{Word, words},
};

/// The maximum length of a query. Longer text is data, not a question.
const MAX_QUERY_BYTES: usize = 4_096;
/// Spelling mistakes are corrected in queries of at most this many words. In longer ones a single word does not
/// matter.
const MAX_WORDS_FOR_CORRECTION: usize = 5;
/// The minimum length of a word for spelling correction. A shorter word resembles too many others.
const MIN_LENGTH_FOR_CORRECTION: usize = 5;
/// The maximum number of different words of a query that count.
const MAX_WORDS: usize = 64;

/// A word of the index to search for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchTerm {
    /// The position in the index.
    pub term: u32,
    /// The score of a tool on which the word has full impact.
    pub weight: f32,
    /// The index of the query word that it represents.
    pub word: usize,
    /// The relation to the query word.
    pub how: MatchKind,
    /// The similarity to the query word, from 0 to 1, independent of rarity.
    pub nearness: f32,
}

/// A word of a query.
#[derive(Debug)]
pub(crate) struct QueryWord {
    /// The word in lower case.
    pub text: String,
    /// The stem.
    term: String,
    how: MatchKind,
    count: f32,
    weak: bool,
    /// True for a verb that names the action, not its object.
    is_action: bool,
}

#[derive(Debug)]
pub(crate) struct Request {
    /// The words of the query, without stop words.
    pub query_words: Vec<QueryWord>,
    /// The words of the index to search for, without duplicates.
    pub search_terms: Vec<SearchTerm>,
    /// The action that the query asks for.
    pub action: Action,
}

impl Request {
    pub(crate) fn new(index: &Index, text: &str) -> Self {
        let words = words(&text[..text.floor_char_boundary(MAX_QUERY_BYTES)]);
        let query_words = query_words(index, &words);
        let search_terms = search_terms(index, &query_words);
        Self {
            query_words,
            search_terms,
            action: Action::of_query(&words),
        }
    }

    /// Returns the words of the index for the subject of the query, such as the file in "read a file"; all words if
    /// the query names only actions.
    pub(crate) fn subject(&self) -> impl Iterator<Item = &SearchTerm> {
        let only_actions = self.query_words.iter().all(|word| word.is_action);
        let search_terms = self.search_terms.iter();
        search_terms.filter(move |search_term| {
            only_actions || !self.query_words[search_term.word].is_action
        })
    }
}

fn query_words(index: &Index, words: &[Word]) -> Vec<QueryWord> {
    // A query of only stop words, such as "who am i", still has to find something.
    let all_grammar = words.iter().all(|word| is_stop_word(&word.text));
    let telling = words
        .iter()
        .filter(|word| all_grammar || !is_stop_word(&word.text));
    let mut query_words: Vec<QueryWord> = Vec::new();
    let short = words.len() <= MAX_WORDS_FOR_CORRECTION;
    for word in telling {
        // As it is written, by its parts, or corrected: only words that the index has can find something.
        if index.term(&word.term).is_some() {
            add_word(&mut query_words, word, &word.term, MatchKind::Same);
        } else if !word.parts.is_empty() {
            for part in &word.parts {
                add_word(&mut query_words, word, part, MatchKind::Part);
            }
        } else if let Some(corrected) = short.then(|| corrected(index, word)).flatten() {
            add_word(&mut query_words, word, &corrected, MatchKind::Slip);
        } else {
            add_word(&mut query_words, word, &word.term, MatchKind::Same);
        }
    }
    for pair in words.windows(2) {
        if let Some(joined) = joined(index, &pair[0], &pair[1]) {
            add_word(&mut query_words, &joined, &joined.term, MatchKind::Joined);
        }
    }
    query_words
}

/// Corrects the spelling of a word that is in no tool and in no table: of the words that are one slip away, returns
/// the most common one.
fn corrected(index: &Index, word: &Word) -> Option<String> {
    let term = &word.term;
    if term.len() < MIN_LENGTH_FOR_CORRECTION || !near(term).is_empty() {
        return None;
    }
    let known = index
        .terms
        .iter()
        .filter(|known| is_one_slip_away(&known.text, term));
    let best = known.max_by(|a, b| {
        let common = a.postings.len().cmp(&b.postings.len());
        // The order of the index depends on when servers were added, so the text decides.
        common.then_with(|| b.text.cmp(&a.text))
    });
    best.map(|known| known.text.to_string())
}

/// Joins two words that the index knows as one: "lemon squeezy" is also "lemonsqueezy".
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

fn add_word(query_words: &mut Vec<QueryWord>, word: &Word, term: &str, how: MatchKind) {
    if let Some(known) = query_words.iter_mut().find(|known| known.term == term) {
        known.count += 1.0;
    } else if query_words.len() < MAX_WORDS {
        query_words.push(QueryWord {
            text: word.text.clone(),
            term: term.to_owned(),
            how,
            count: 1.0,
            weak: is_weak_word(&word.text),
            is_action: Action::of_word(word).is_some(),
        });
    }
}

/// Returns the words of the index to search for: those of the query, and related ones.
fn search_terms(index: &Index, query_words: &[QueryWord]) -> Vec<SearchTerm> {
    let filler = filler(index, query_words);
    let mut search_terms: Vec<SearchTerm> = Vec::new();
    let mut sources = Vec::new();
    for (number, word) in query_words.iter().enumerate() {
        let term = index.term(&word.term);
        let source = ExpandableWord {
            number,
            weight: word.weight(index, filler),
            rarity: term.map(|term| rarity(index, term)),
        };
        search_terms.extend(term.zip(source.rarity).map(|(term, rarity)| SearchTerm {
            term,
            weight: source.weight * rarity,
            word: number,
            how: word.how,
            nearness: word.nearness(index),
        }));
        sources.push(source);
    }
    // Related words that the query has itself are skipped below: they already have their full weight.
    let said = search_terms.len();
    for source in sources {
        for (other, nearness) in near(&query_words[source.number].term) {
            let other = index
                .term(other)
                .filter(|term| search_terms[..said].iter().all(|own| own.term != *term));
            let Some(other) = other.map(|term| source.related_term(index, term, *nearness)) else {
                continue;
            };
            match search_terms[said..]
                .iter_mut()
                .find(|known| known.term == other.term)
            {
                // A word that is related to several words of the query counts once, with its best weight.
                Some(known) if known.weight < other.weight => *known = other,
                Some(_) => {}
                None => search_terms.push(other),
            }
        }
    }
    search_terms
}

/// Returns the weight of filler words: less, the more other words there are.
fn filler(index: &Index, query_words: &[QueryWord]) -> f32 {
    let weights = &index.weights;
    let strong = query_words.iter().filter(|word| !word.weak).count();
    #[expect(clippy::cast_precision_loss, reason = "there are few words")]
    let beyond = strong as f32 - weights.weak_from;
    (1.0 - weights.weak_slope * beyond).clamp(weights.weak_least, 1.0)
}

impl QueryWord {
    /// Returns the weight of the word, independent of rarity.
    fn weight(&self, index: &Index, filler: f32) -> f32 {
        let weights = &index.weights;
        let strength = if self.weak { filler } else { 1.0 };
        libm::powf(self.count, weights.repetition) * self.nearness(index) * strength
    }

    /// Returns the similarity of its stem to the word that was written.
    fn nearness(&self, index: &Index) -> f32 {
        match self.how {
            MatchKind::Same => 1.0,
            _ => index.weights.part,
        }
    }
}

/// A word of a query that related words can represent.
struct ExpandableWord {
    number: usize,
    weight: f32,
    /// The rarity of the word itself, if a tool contains it.
    rarity: Option<f32>,
}

impl ExpandableWord {
    /// Returns a related word of the index as a word to search for.
    fn related_term(&self, index: &Index, term: u32, nearness: Nearness) -> SearchTerm {
        let weights = &index.weights;
        let (factor, how) = match nearness {
            Nearness::Same => (weights.synonym, MatchKind::Synonym),
            Nearness::Broader => (weights.broader, MatchKind::Broader),
        };
        let rarity = rarity(index, term);
        let worth = match (self.rarity, nearness) {
            // A rare synonym of a common word must not weigh more than the common one.
            (Some(own), Nearness::Same) => own.min(rarity) * weights.known,
            (Some(_), Nearness::Broader) => rarity * weights.known,
            (None, _) => rarity,
        };
        SearchTerm {
            term,
            weight: self.weight * factor * worth,
            word: self.number,
            how,
            nearness: match self.rarity {
                Some(_) => factor * weights.known,
                None => factor,
            },
        }
    }
}

/// Returns the rarity of a word among the tools.
#[expect(clippy::cast_precision_loss, reason = "there are not so many tools")]
fn rarity(index: &Index, term: u32) -> f32 {
    let all = index.len() as f32;
    let having = index.terms[term as usize].postings.len() as f32;
    // `libm` gives the same bits on every system, so that the order of hits is the same too.
    // With the 1 the rarity of a word that most tools have stays above zero.
    let rarity = libm::logf(1.0 + (all - having + 0.5) / (having + 0.5));
    libm::powf(rarity, index.weights.rarity)
}
