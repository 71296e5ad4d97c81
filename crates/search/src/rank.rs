//! Ranking: the score of each tool for a query, and the best tools in order.

use std::{cell::RefCell, cmp::Ordering};

use ident::{ToolIdentifier, ToolboxName};

use crate::{
    Hit, Query, SearchOutcome,
    action::Action,
    index::{Index, Tool},
    key::{Exact, exact, folded},
    query::{Request, SearchTerm},
};

/// The number of first hits that are checked for a good match: as many as are usually shown.
const FIRST_HITS: usize = 5;

/// A query with more separators is a sentence, not a toolbox, server and tool.
const MAX_SEPARATORS: usize = 4;

thread_local! {
    /// The scores of all tools by position, reused from query to query.
    static SCORES: RefCell<Vec<f32>> = RefCell::default();
}

/// A tool that may become a hit.
struct Candidate<'a> {
    exact: Option<Exact>,
    score: f32,
    place: u32,
    tool: &'a Tool,
}

impl Candidate<'_> {
    /// Orders candidates, better ones first. Equal ones are ordered by name, so that the order never depends on when
    /// a server was added.
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

/// The best candidates so far, and their total number.
struct BestCandidates<'a> {
    candidates: Vec<Candidate<'a>>,
    most: usize,
    /// The score below which a candidate is not among the best.
    least: f32,
    seen: usize,
}

impl<'a> BestCandidates<'a> {
    fn new(most: usize) -> Self {
        Self {
            candidates: Vec::new(),
            most,
            least: 0.0,
            seen: 0,
        }
    }

    fn push(&mut self, candidate: Candidate<'a>) {
        self.seen += 1;
        if candidate.exact.is_none() && candidate.score < self.least {
            return;
        }
        self.candidates.push(candidate);
        // Cut at twice the number, so that a cut costs little for each candidate.
        if self.candidates.len() >= self.most.saturating_mul(2) {
            let last = self.most - 1;
            self.candidates
                .select_nth_unstable_by(last, Candidate::order);
            self.candidates.truncate(self.most);
            self.least = self.candidates[last].score;
        }
    }

    fn finish(mut self) -> Self {
        self.candidates.sort_unstable_by(Candidate::order);
        self
    }
}

impl Index {
    /// Returns the tools that fit a query best.
    pub fn search(&self, query: &Query<'_>) -> SearchOutcome {
        let request = Request::new(self, query.text);
        SCORES.with_borrow_mut(|scores| {
            add_up(self, &request.search_terms, scores);
            let best = self.best(
                query,
                &request,
                scores,
                // Some candidates are folded into others, so more are needed than the limit.
                query.limit.saturating_mul(2).max(16),
            );
            let is_good = self.has_good_match(&request, &best.candidates);
            let hits = self.fold(query, &best.candidates);
            if hits.len() == query.limit || best.seen <= best.candidates.len() {
                return SearchOutcome {
                    hits,
                    matches: best.seen,
                    is_good,
                };
            }
            // So many tools have the same texts that more hits are needed from further down.
            let best = self.best(query, &request, scores, usize::MAX);
            SearchOutcome {
                hits: self.fold(query, &best.candidates),
                matches: best.seen,
                is_good,
            }
        })
    }

    /// Returns whether one of the first candidates is named by the query, or is about its subject.
    ///
    /// Scores cannot be compared with a fixed threshold, because they grow with the number of words and of tools. The
    /// share of the subject that a tool matches does not: "make coffee" finds every tool that makes something, and
    /// none of them is about coffee.
    fn has_good_match(&self, request: &Request, candidates: &[Candidate<'_>]) -> bool {
        candidates.iter().take(FIRST_HITS).any(|candidate| {
            candidate.exact.is_some() || self.is_about_subject(request, candidate.place)
        })
    }

    fn is_about_subject(&self, request: &Request, place: u32) -> bool {
        let mut support = 0.0;
        request.subject().any(|search_term| {
            let postings = &self.terms[search_term.term as usize].postings;
            let posting = postings.iter().find(|posting| posting.tool == place);
            support += posting.map_or(0.0, |posting| search_term.nearness * posting.impact());
            support >= self.weights.floor
        })
    }

    /// Returns the best tools, those that the query names first.
    fn best(
        &self,
        query: &Query<'_>,
        request: &Request,
        scores: &[f32],
        most: usize,
    ) -> BestCandidates<'_> {
        let mut best = BestCandidates::new(most);
        let most_factor = 1.0 + self.weights.agreement;
        let named = self.named(query.text.trim());
        for (place, score) in (0..).zip(scores) {
            let exact = named_as(&named, place);
            if *score <= 0.0 && exact.is_none() {
                continue;
            }
            // Most tools cannot be among the best even with the highest factor, so they are skipped without a closer
            // look.
            // Not if a toolbox is given, whose tools alone are counted, or if tools are named, which come first with
            // any score.
            if named.is_empty() && query.toolbox.is_none() && score * most_factor < best.least {
                best.seen += 1;
                continue;
            }
            let Some(tool) = self.tool(place).filter(|tool| is_in(tool, query.toolbox)) else {
                continue;
            };
            best.push(Candidate {
                exact,
                score: score * self.factor(request.action, tool),
                place,
                tool,
            });
        }
        best.finish()
    }

    /// Returns the tools that a text names, each with the way in which it does.
    pub(crate) fn named(&self, text: &str) -> Vec<(u32, Exact)> {
        let mut named: Vec<(u32, Exact)> = self.named_alone(text).collect();
        let separators: Vec<_> = text
            .match_indices(['/', ' '])
            .take(MAX_SEPARATORS + 1)
            .collect();
        if separators.len() > MAX_SEPARATORS {
            return named;
        }
        // A toolbox may precede server and tool. Its name may contain separators too, so every one is tried as its
        // end.
        for (at, sign) in separators {
            let (toolbox, rest) = (&text[..at], &text[at + sign.len()..]);
            let whole = self.named_alone(rest).filter(|(place, exact)| {
                matches!(exact, Exact::Full | Exact::FullFolded) && { self.tool(*place) }
                    .is_some_and(|tool| tool.identifier.toolbox.as_str() == toolbox)
            });
            named.extend(whole.map(|(place, _)| (place, Exact::Identifier)));
        }
        named
    }

    /// Returns the tools that a text names without their toolbox.
    fn named_alone(&self, text: &str) -> impl Iterator<Item = (u32, Exact)> {
        let key = folded([text]);
        let places = self.named.range((key, 0)..=(key, u32::MAX));
        places.filter_map(move |(_, place)| {
            let tool = self.tool(*place)?;
            let (server, name) = (&tool.identifier.server, &tool.identifier.tool);
            let exact = exact(text, key, tool.keys, server.as_str(), name.as_str())?;
            Some((*place, exact))
        })
    }

    /// Returns the first candidates as hits, each with the tools that have the same texts.
    fn fold(&self, query: &Query<'_>, candidates: &[Candidate<'_>]) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        let mut fingerprints: Vec<u64> = Vec::new();
        for candidate in candidates {
            let tool = candidate.tool;
            if hits.len() == query.limit {
                break;
            }
            if fingerprints.contains(&tool.fingerprint) {
                continue;
            }
            fingerprints.push(tool.fingerprint);
            hits.push(Hit {
                tool: tool.identifier.clone(),
                score: candidate.score,
                alike: self.alike(query, tool),
            });
        }
        hits
    }

    /// Returns the other tools with the same texts.
    fn alike(&self, query: &Query<'_>, tool: &Tool) -> Vec<ToolIdentifier> {
        let same = self
            .prints
            .range((tool.fingerprint, 0)..=(tool.fingerprint, u32::MAX))
            .filter_map(|(_, place)| self.tool(*place));
        let others = same.filter(|it| is_in(it, query.toolbox) && it.identifier != tool.identifier);
        let mut alike: Vec<ToolIdentifier> = others.map(|it| it.identifier.clone()).collect();
        // The index is ordered by position, which depends on when a server was added.
        alike.sort_unstable_by(|a, b| names(a).cmp(&names(b)));
        alike
    }

    /// Returns the score of a tool for a query, as [`Index::search`] computes it.
    pub(crate) fn score_of(&self, place: u32, request: &Request) -> f32 {
        let factor = self
            .tool(place)
            .map_or(1.0, |tool| self.factor(request.action, tool));
        SCORES.with_borrow_mut(|scores| {
            add_up(self, &request.search_terms, scores);
            scores[place as usize] * factor
        })
    }

    /// Returns the factor on the score of a tool for its action.
    pub(crate) fn factor(&self, asked: Action, tool: &Tool) -> f32 {
        match tool.action {
            None => 1.0,
            Some(action) if action == asked => 1.0 + self.weights.agreement,
            Some(_) => 1.0 - self.weights.difference,
        }
    }
}

/// Returns the most certain way in which a tool is named, if it is.
pub(crate) fn named_as(named: &[(u32, Exact)], tool: u32) -> Option<Exact> {
    let ways = named.iter().filter(|(named, _)| *named == tool);
    ways.map(|(_, exact)| *exact).max()
}

/// Adds up the scores of all tools for the words to search for.
fn add_up(index: &Index, search_terms: &[SearchTerm], scores: &mut Vec<f32>) {
    scores.clear();
    scores.resize(index.tools.len(), 0.0);
    for search_term in search_terms {
        for posting in &index.terms[search_term.term as usize].postings {
            scores[posting.tool as usize] += search_term.weight * posting.impact();
        }
    }
}

fn is_in(tool: &Tool, toolbox: Option<&ToolboxName>) -> bool {
    toolbox.is_none_or(|toolbox| tool.identifier.toolbox == *toolbox)
}
