//! The scanner of definitions: what is looked for before a tool is offered. It needs no network, no model and no list of
//! known servers, and takes time in proportion to the text.
//!
//! A *hard* finding is something that no honest definition holds: the tool is withheld ([`hard`]). A *soft* one may be
//! honest, and is shown to the person who looks ([`scan`], [`instructions`], [`across`]); it is never in the way.

mod across;
mod characters;
mod finding;
mod phrases;
mod schema;
mod texts;
mod tree;

pub(crate) use across::CrossFinding;
pub use across::{Listed, across};
pub use finding::Severity;
pub(crate) use finding::{Finding, Instruction, Problem};

use self::{
    characters::Strays,
    tree::{Content, Tree},
};
use crate::{policy::clean, wire::RawJson};

/// The largest definition that is offered.
pub(crate) const MAX_DEFINITION_BYTES: usize = 256 * 1024;
/// The deepest schema, counted from the schema itself.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 64;
/// The most objects of one schema.
pub(crate) const MAX_SUBSCHEMAS: usize = 10_000;
/// The most objects and arrays that a schema may come to when its references are followed.
pub(crate) const MAX_EXPANDED: u64 = 1_000_000;
/// The longest text of a definition about which nothing is said, in characters.
pub(crate) const LONG_TEXT: usize = 4_096;
/// How many soft findings of one definition are told.
const MAX_FINDINGS: usize = 20;

/// The first hard finding of a definition. Almost every definition is seen to have none without being taken apart.
pub fn hard(definition: &RawJson) -> Option<Finding> {
    if let Some(too_large) = size(definition) {
        return Some(too_large);
    }
    let has_hidden = !clean::is_clean(definition);
    if !has_hidden && !schema::may_be_bomb(definition.as_str()) {
        return None;
    }
    let tree = Tree::of(definition);
    let mut strays = Strays::default();
    let hidden = tree.texts().find_map(|text| {
        let problem = characters::hard(text.text, &mut strays, || text.pointer())?;
        Some(Finding::at(text.pointer(), problem))
    });
    let hidden = hidden.or_else(|| strays_in(strays));
    hidden.or_else(|| {
        let problems = schema::check(&tree).into_iter();
        { problems }.find(|finding| finding.severity() == Severity::Hard)
    })
}

/// Everything that is found in a definition, what is hard first.
pub fn scan(definition: &RawJson) -> Vec<Finding> {
    if let Some(too_large) = size(definition) {
        return vec![too_large];
    }
    let tree = Tree::of(definition);
    let mut findings = schema::check(&tree);
    let mut strays = Strays::default();
    for text in tree.texts() {
        let problems = if text.is_key {
            texts::of_key(text.text)
        } else if text.is_icon() {
            // Data is at home there.
            Vec::new()
        } else {
            texts::of_text(text.text)
        };
        let unseen = characters::all(text.text, &mut strays, || text.pointer());
        let problems = unseen.into_iter().chain(problems);
        findings.extend(problems.map(|problem| Finding::at(text.pointer(), problem)));
    }
    findings.extend(strays_in(strays));
    if let Some(Content::Text(name)) = tree.member("name") {
        let problems = texts::of_name(name).into_iter();
        findings.extend(problems.map(|problem| Finding::at("/name".to_owned(), problem)));
    }
    finished(findings)
}

/// Everything that is found in what a server says of how it wants to be used.
pub fn instructions(text: &str) -> Vec<Finding> {
    let mut strays = Strays::default();
    let problems = characters::all(text, &mut strays, in_instructions).into_iter();
    let problems = problems.chain(texts::of_text(text));
    // A model is who they are for.
    let problems = problems.filter(|it| {
        let kind = Instruction::Addressing;
        !matches!(it, Problem::Instruction { kind: found, .. } if *found == kind)
    });
    let findings = problems.map(|problem| Finding::at(in_instructions(), problem));
    finished(findings.chain(strays_in(strays)).collect())
}

/// The first hard finding in what a server says of how it wants to be used.
pub(crate) fn hard_in_instructions(text: &str) -> Option<Finding> {
    let mut strays = Strays::default();
    let problem = characters::hard(text, &mut strays, in_instructions);
    let hidden = problem.map(|problem| Finding::at(in_instructions(), problem));
    hidden.or_else(|| strays_in(strays))
}

/// Returns the place of a server's instructions.
fn in_instructions() -> String {
    "/instructions".to_owned()
}

/// Returns the finding of too many stray characters.
fn strays_in(strays: Strays) -> Option<Finding> {
    let (place, problem) = strays.too_many()?;
    Some(Finding::at(place, problem))
}

/// What is hard first, and not more than anybody reads.
fn finished(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(Finding::severity);
    findings.truncate(MAX_FINDINGS);
    findings
}

fn size(definition: &RawJson) -> Option<Finding> {
    let bytes = definition.as_bytes().len();
    let too_large = bytes > MAX_DEFINITION_BYTES;
    too_large.then(|| Finding::at(String::new(), Problem::TooLarge))
}

#[cfg(test)]
mod tests;
