//! Why a tool is found, and why not better: word by word.

use crate::ident::ToolIdentifier;

use super::{Field, Query, index::Index, key::Exact, query::Request, rank::named_as};

/// Why a tool has its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The score, as a search gives it.
    pub score: f32,
    /// What the score was multiplied by, because the tool does what is asked for or something else.
    pub factor: f32,
    /// How the query names the tool, if it does; then it stands in front whatever its score is.
    pub exact: Option<Exact>,
    /// The words of the query that the tool has, in their order.
    pub words: Vec<MatchedWord>,
    /// The words of the query that it does not have.
    pub missing: Vec<String>,
}

/// A word of a query that a tool has.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedWord {
    /// The word of the query.
    pub word: String,
    /// The word of the tool, as a stem.
    pub found: String,
    /// Why the one stands for the other.
    pub how: How,
    /// The fields of the tool that have it.
    pub fields: Vec<Field>,
    /// What the tool gets for it.
    pub score: f32,
}

/// Why a word of the index stands for a word of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Same,
    /// It is a part of the word.
    Part,
    /// It is the word and the next one.
    Joined,
    /// It is the word without a slip.
    Slip,
    Synonym,
    /// It is the subject of the word.
    Broader,
}

impl How {
    /// What a person calls it.
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
    /// Why a tool has its score for a query; `None` if there is no such tool.
    pub fn explain(&self, query: &Query<'_>, tool: &ToolIdentifier) -> Option<Explanation> {
        let place = self.place(tool)?;
        let request = Request::new(self, query.text);
        let words: Vec<MatchedWord> = request
            .wanted
            .iter()
            .filter_map(|wanted| {
                let term = &self.terms[wanted.term as usize];
                let posting = term.postings.iter().find(|posting| posting.tool == place)?;
                Some(MatchedWord {
                    word: request.asked[wanted.word].text.clone(),
                    found: term.text.to_string(),
                    how: wanted.how,
                    fields: fields(posting.fields),
                    score: wanted.weight * posting.impact(),
                })
            })
            .collect();
        let asked = request.asked.iter().map(|asked| asked.text.clone());
        let missing = asked.filter(|asked| words.iter().all(|word| word.word != *asked));
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
