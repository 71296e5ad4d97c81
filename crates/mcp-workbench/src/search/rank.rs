//! Ranking: what each tool gets for a query, and the best of them in order.

use std::{cell::RefCell, cmp::Ordering};

use crate::ident::{ToolIdentifier, ToolboxName};

use super::{
    Found, Hit, Query,
    index::{Index, Tool},
    key::{Exact, exact, folded},
    query::{Concept, concepts},
};

/// What a tool has got so far in the query that is run.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    /// For all concepts so far.
    total: f32,
    /// For the last concept that it has.
    last: f32,
    /// How rare all its concepts are together.
    covered: f32,
    /// Which concept was the last, counted from 1.
    concept: u32,
}

/// What is reused from query to query.
#[derive(Debug, Default)]
struct Scratch {
    scores: Vec<Score>,
    /// The tools that have a score.
    touched: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A tool that may be a hit.
struct Candidate<'a> {
    exact: Option<Exact>,
    score: f32,
    tool: &'a Tool,
}

impl Candidate<'_> {
    /// Better ones first; equal ones by name, so that the order never depends on when a server was put in.
    fn order(&self, other: &Self) -> Ordering {
        let better = other
            .exact
            .cmp(&self.exact)
            .then(other.score.total_cmp(&self.score));
        better.then_with(|| names(&self.tool.identifier).cmp(&names(&other.tool.identifier)))
    }
}

fn names(tool: &ToolIdentifier) -> (&str, &str, &str) {
    (
        tool.toolbox.as_str(),
        tool.server.as_str(),
        tool.tool.as_str(),
    )
}

impl Index {
    /// The tools that fit a query best.
    pub fn search(&self, query: &Query<'_>) -> Found {
        let concepts = concepts(self, query.text);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.add_up(self, &concepts);
            let mut candidates = self.exact_candidates(query);
            self.score_candidates(query, &concepts, scratch, &mut candidates);
            scratch.clear();
            let matches = candidates.len();
            candidates.sort_unstable_by(Candidate::order);
            Found {
                hits: fold(&candidates, query.limit),
                matches,
            }
        })
    }

    /// The tools that the query names in full.
    fn exact_candidates(&self, query: &Query<'_>) -> Vec<Candidate<'_>> {
        let text = query.text.trim();
        let key = folded([text]);
        let tools = self.tools.iter().flatten();
        let named = tools.filter_map(|tool| {
            let identifier = &tool.identifier;
            let exact = exact(
                text,
                key,
                tool.keys,
                identifier.server.as_str(),
                identifier.tool.as_str(),
            )?;
            is_in(tool, query.toolbox).then_some(Candidate {
                exact: Some(exact),
                score: 0.0,
                tool,
            })
        });
        named.collect()
    }

    /// Gives the tools that are named their scores, and adds all others that have one.
    fn score_candidates<'a>(
        &'a self,
        query: &Query<'_>,
        concepts: &[Concept],
        scratch: &mut Scratch,
        candidates: &mut Vec<Candidate<'a>>,
    ) {
        let all: f32 = concepts.iter().map(|concept| concept.rarity).sum();
        for candidate in candidates.iter_mut() {
            let place = self.place(&candidate.tool.identifier);
            if let Some(score) = place.map(|place| &mut scratch.scores[place as usize]) {
                candidate.score = self.total(*score, all);
                *score = Score::default();
            }
        }
        for place in &scratch.touched {
            let score = scratch.scores[*place as usize];
            if score.concept == 0 {
                continue;
            }
            let Some(tool) = self.tool(*place).filter(|tool| is_in(tool, query.toolbox)) else {
                continue;
            };
            candidates.push(Candidate {
                exact: None,
                score: self.total(score, all),
                tool,
            });
        }
    }

    /// What a tool gets in the end: more, the more of the query it has.
    fn total(&self, score: Score, all: f32) -> f32 {
        let share = if all > 0.0 { score.covered / all } else { 0.0 };
        score.total * (1.0 + self.weights.coverage * share)
    }

    /// What a tool gets for a query, as [`Index::search`] counts it.
    pub(super) fn score_of(&self, place: u32, concepts: &[Concept]) -> f32 {
        let all: f32 = concepts.iter().map(|concept| concept.rarity).sum();
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.add_up(self, concepts);
            let score = scratch.scores[place as usize];
            scratch.clear();
            self.total(score, all)
        })
    }
}

impl Scratch {
    /// Adds up what every tool gets for the concepts.
    fn add_up(&mut self, index: &Index, concepts: &[Concept]) {
        self.scores
            .resize(index.tools.len().max(self.scores.len()), Score::default());
        for (number, concept) in (1..).zip(concepts) {
            for variant in &concept.variants {
                for posting in &index.terms[variant.term as usize].postings {
                    let gain = variant.weight * posting.impact();
                    let score = &mut self.scores[posting.tool as usize];
                    if score.concept == number {
                        // Another word for what it has already: the better one counts.
                        let more = (gain - score.last).max(0.0);
                        score.total += more;
                        score.last += more;
                        continue;
                    }
                    if score.concept == 0 {
                        self.touched.push(posting.tool);
                    }
                    score.total += gain;
                    score.last = gain;
                    score.covered += concept.rarity.min(variant.weight);
                    score.concept = number;
                }
            }
        }
    }

    fn clear(&mut self) {
        for place in self.touched.drain(..) {
            self.scores[place as usize] = Score::default();
        }
    }
}

fn is_in(tool: &Tool, toolbox: Option<&ToolboxName>) -> bool {
    toolbox.is_none_or(|toolbox| tool.identifier.toolbox == *toolbox)
}

/// The first candidates as hits, each with those that say the same of themselves.
fn fold(candidates: &[Candidate<'_>], limit: usize) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    let mut fingerprints: Vec<u64> = Vec::new();
    for candidate in candidates {
        let known = fingerprints
            .iter()
            .position(|it| *it == candidate.tool.fingerprint);
        if let Some(at) = known {
            hits[at].alike.push(candidate.tool.identifier.clone());
        } else if hits.len() < limit {
            fingerprints.push(candidate.tool.fingerprint);
            hits.push(Hit {
                tool: candidate.tool.identifier.clone(),
                score: candidate.score,
                alike: Vec::new(),
            });
        }
    }
    hits
}
