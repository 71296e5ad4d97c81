//! Explains the score of a tool, word by word.

use ident::ToolIdentifier;

use crate::{Field, Query, index::Index, key::Exact, query::Request, rank::named_as};

/// The parts of a tool's score.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The score that a search returns.
    pub score: f32,
    /// The factor on the score for the action of the tool.
    pub factor: f32,
    /// The way in which the query names the tool, if it does; then the tool comes first, whatever its score.
    pub exact: Option<Exact>,
    /// The words of the query that match the tool, in order.
    pub words: Vec<MatchedWord>,
    /// The words of the query that do not match the tool.
    pub missing: Vec<String>,
}

/// A word of a query that matches a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedWord {
    /// The word of the query.
    pub word: String,
    /// The matching word of the tool, as a stem.
    pub found: String,
    /// The relation between the two words.
    pub how: MatchKind,
    /// The fields of the tool that contain the word.
    pub fields: Vec<Field>,
    /// The part of the score for this word.
    pub score: f32,
}

/// The relation of a word of the index to a word of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    Same,
    /// It is a part of the word.
    Part,
    /// It is the word joined with the next one.
    Joined,
    /// It is the word with a spelling mistake corrected.
    Slip,
    Synonym,
    /// It is the subject of the word.
    Broader,
}

impl MatchKind {
    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Part => "part",
            Self::Joined => "joined",
            Self::Slip => "slip",
            Self::Synonym => "synonym",
            Self::Broader => "broader",
        }
    }
}

impl Index {
    /// Explains the score of a tool for a query; `None` if there is no such tool.
    pub fn explain(&self, query: &Query<'_>, tool: &ToolIdentifier) -> Option<Explanation> {
        let place = self.place(tool)?;
        let request = Request::new(self, query.text);
        let words: Vec<MatchedWord> = request
            .search_terms
            .iter()
            .filter_map(|search_term| {
                let term = &self.terms[search_term.term as usize];
                let posting = term.postings.iter().find(|posting| posting.tool == place)?;
                Some(MatchedWord {
                    word: request.query_words[search_term.word].text.clone(),
                    found: term.text.to_string(),
                    how: search_term.how,
                    fields: fields(posting.fields),
                    score: search_term.weight * posting.impact(),
                })
            })
            .collect();
        let query_words = request.query_words.iter().map(|word| word.text.clone());
        let missing = query_words.filter(|text| words.iter().all(|word| word.word != *text));
        let factor = self.factor(request.action, self.tool(place)?);
        Some(Explanation {
            factor,
            score: self.score_of(place, &request),
            exact: named_as(&self.named(query.text.trim()), place),
            missing: missing.collect(),
            words,
        })
    }
}

fn fields(bits: u8) -> Vec<Field> {
    let fields = Field::ALL.into_iter();
    fields
        .filter(|field| bits >> *field as u8 & 1 == 1)
        .collect()
}
