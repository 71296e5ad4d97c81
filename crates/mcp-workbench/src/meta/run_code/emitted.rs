//! The content that a script hands to the client besides its value: images, sounds, files and links of the results that it
//! got. A script sees only their descriptions, so it names a part by its reference.

use std::collections::HashMap;

use rawjson::RawJson;
use script::Failure;

use super::{inner_call::invalid, value::Part};

/// The number of parts that a run hands to its client.
const MAX_PARTS: usize = 20;
/// Their size together.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The parts of the results of a run.
#[derive(Default)]
pub(super) struct Parts {
    known: HashMap<String, RawJson>,
    emitted: Vec<RawJson>,
}

impl Parts {
    /// Adds the parts of a result.
    pub(super) fn add(&mut self, parts: Vec<Part>) {
        let parts = parts.into_iter().map(|it| (it.reference, it.block));
        self.known.extend(parts);
    }

    /// Emits the part of this reference.
    pub(super) fn emit(&mut self, reference: &str) -> Result<(), Failure> {
        let part = self.known.get(reference).ok_or_else(|| {
            invalid(
                "emit takes a part of a result of this run: an object with \"ref\", such as an image in its content. Return anything \
                 else",
            )
        })?;
        // Counted each time, since there are at most 20.
        let bytes: usize = self.emitted.iter().map(|it| it.as_bytes().len()).sum();
        if self.emitted.len() >= MAX_PARTS || bytes + part.as_bytes().len() > MAX_BYTES {
            return Err(invalid(&format!(
                "a run emits at most {MAX_PARTS} parts of {} MiB together",
                MAX_BYTES / (1024 * 1024)
            )));
        }
        self.emitted.push(part.clone());
        Ok(())
    }

    /// Returns what the script has emitted, in its order.
    pub(super) fn into_emitted(self) -> Vec<RawJson> {
        self.emitted
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn part(reference: &str, bytes: usize) -> Part {
        Part {
            reference: reference.to_owned(),
            block: RawJson::of(&"x".repeat(bytes - 2)),
        }
    }

    fn emit(parts: &mut Parts, reference: &str) -> Result<(), String> {
        parts.emit(reference).map_err(|it| it.code)
    }

    #[test]
    fn parts_are_emitted_by_their_references_within_bounds() {
        let refused = Err("invalid_arguments".to_owned());
        let mut parts = Parts::default();
        parts.add(vec![part("1.1", 10), part("1.2", MAX_BYTES)]);
        assert_eq!(emit(&mut parts, "1.3"), refused);
        assert_eq!(emit(&mut parts, "1.1"), Ok(()));
        assert_eq!(
            emit(&mut parts, "1.2"),
            refused,
            "too large beside the first"
        );
        for _ in 1..MAX_PARTS {
            assert_eq!(emit(&mut parts, "1.1"), Ok(()));
        }
        assert_eq!(emit(&mut parts, "1.1"), refused, "too many");
        assert_eq!(parts.into_emitted().len(), MAX_PARTS);
    }
}
