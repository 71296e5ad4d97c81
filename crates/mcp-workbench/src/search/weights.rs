//! The numbers of the ranking. They were chosen on the development sets; docs/search.md says how.

use super::Field;

/// How many fields a tool has.
pub(super) const FIELDS: usize = 6;

/// How much a word counts in a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldWeight {
    /// How much one occurrence counts.
    pub weight: f32,
    /// How much a long text is held against it: 0 not at all, 1 in full.
    pub length: f32,
    /// The length that is neither long nor short, in words. It is fixed, so that what a word counts in one tool
    /// does not change with the other tools.
    pub usual: f32,
}

/// All numbers of the ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// One for each field, in the order of [`Field`].
    pub fields: [FieldWeight; FIELDS],
    /// How soon more of the same word stops to count.
    pub saturation: f32,
    /// How much a word of the same meaning counts.
    pub synonym: f32,
    /// How much a word of the same subject counts.
    pub related: f32,
    /// How much the parts of a compound count.
    pub part: f32,
    /// How much a tool gains that has all the words of a query.
    pub coverage: f32,
}

impl Weights {
    pub(super) fn field(&self, field: Field) -> &FieldWeight {
        &self.fields[field as usize]
    }
}

impl Default for Weights {
    fn default() -> Self {
        let field = |weight, length, usual| FieldWeight {
            weight,
            length,
            usual,
        };
        Self {
            fields: [
                field(3.0, 0.5, 3.0),
                field(1.5, 0.5, 3.0),
                field(1.0, 0.5, 15.0),
                field(0.5, 0.5, 5.0),
                field(0.3, 0.5, 20.0),
                field(0.5, 0.5, 20.0),
            ],
            saturation: 1.2,
            synonym: 0.5,
            related: 0.2,
            part: 0.6,
            coverage: 1.0,
        }
    }
}
