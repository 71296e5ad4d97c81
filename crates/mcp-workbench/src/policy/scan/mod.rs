//! The scanner that checks a definition before the tool is offered. It needs no network, no model and no list of
//! known servers, and takes time proportional to the text.
//!
//! A *hard* finding is something that no honest definition contains: the tool is withheld ([`hard`]). A *soft*
//! one may be harmless, and is only shown for review ([`scan`], [`instructions`], [`across`]).

mod across;
mod characters;
mod finding;
mod phrases;
mod schema;
mod texts;
mod tree;

pub(crate) use across::CrossFinding;
pub use across::{ServerTools, across};
pub use finding::Severity;
pub(crate) use finding::{Finding, Instruction, Problem};

use rawjson::RawJson;

use self::{
    characters::Strays,
    tree::{Content, Tree},
};
use crate::policy::clean;

/// The largest definition that is offered.
pub(crate) const MAX_DEFINITION_BYTES: usize = 256 * 1024;
/// The maximum depth of a schema, counted from the schema itself.
pub(crate) const MAX_SCHEMA_DEPTH: usize = 64;
/// The maximum number of objects in a schema.
pub(crate) const MAX_SUBSCHEMAS: usize = 10_000;
/// The maximum number of objects and arrays in a schema with its references expanded.
pub(crate) const MAX_EXPANDED: u64 = 1_000_000;
/// The length from which a text of a definition is a finding, in characters.
pub(crate) const LONG_TEXT: usize = 4_096;
/// The maximum number of findings per definition.
const MAX_FINDINGS: usize = 20;

/// Returns the first hard finding of a definition. For almost every definition a scan of its bytes suffices to
/// rule one out.
pub fn hard(definition: &RawJson) -> Option<Finding> {
    if let Some(too_large) = size(definition) {
        return Some(too_large);
    }
    // The same check as for results, so both agree on what is hidden.
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
        schema::check(&tree)
            .into_iter()
            .find(|finding| finding.severity() == Severity::Hard)
    })
}

/// Returns all findings of a definition, hard ones first.
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
            // Icons contain encoded data by design.
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

/// Returns all findings in a server's instructions.
pub fn instructions(text: &str) -> Vec<Finding> {
    let mut strays = Strays::default();
    let problems = characters::all(text, &mut strays, in_instructions)
        .into_iter()
        .chain(texts::of_text(text));
    // Instructions are addressed to a model by design.
    let problems = problems.filter(|it| {
        let kind = Instruction::Addressing;
        !matches!(it, Problem::Instruction { kind: found, .. } if *found == kind)
    });
    let findings = problems.map(|problem| Finding::at(in_instructions(), problem));
    finished(findings.chain(strays_in(strays)).collect())
}

/// Returns the first hard finding in a server's instructions.
pub(crate) fn hard_in_instructions(text: &str) -> Option<Finding> {
    let mut strays = Strays::default();
    let problem = characters::hard(text, &mut strays, in_instructions);
    let hidden = problem.map(|problem| Finding::at(in_instructions(), problem));
    hidden.or_else(|| strays_in(strays))
}

/// Returns the location of findings in a server's instructions.
fn in_instructions() -> String {
    "/instructions".to_owned()
}

/// Returns the finding of too many stray characters.
fn strays_in(strays: Strays) -> Option<Finding> {
    let (place, problem) = strays.too_many()?;
    Some(Finding::at(place, problem))
}

/// Sorts hard findings first, and limits their number.
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
