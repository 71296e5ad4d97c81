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
    /// How much the subject of a word counts.
    pub broader: f32,
    /// How much less both count where the tools have the word itself.
    pub known: f32,
    /// How much the parts of an identifier count that is not known itself, and two words taken as one.
    pub part: f32,
    /// How much more a word counts that is said again: the power of how often.
    pub repetition: f32,
    /// How much it counts that a word is rare: a power.
    pub rarity: f32,
    /// With more strong words than this, filler begins to count less.
    pub weak_from: f32,
    /// How much less filler counts for each strong word.
    pub weak_slope: f32,
    /// What filler counts at least.
    pub weak_least: f32,
    /// What a tool gains that does what is asked for, as a share of its score.
    pub agreement: f32,
    /// What a tool loses that does something else, as a share of its score.
    pub difference: f32,
    /// The least that one of the first hits must have of the subject of a query to be a good match. docs/search.md has
    /// the error rates at this value.
    pub floor: f32,
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
                field(2.0, 0.36, 3.0),
                field(3.0, 0.2, 3.0),
                field(0.6, 0.24, 15.0),
                field(0.25, 0.96, 5.0),
                field(0.25, 0.3, 20.0),
                field(0.7, 0.7, 20.0),
            ],
            saturation: 1.3,
            synonym: 0.6,
            broader: 0.6,
            known: 0.4,
            part: 0.6,
            repetition: 0.15,
            rarity: 0.6,
            weak_from: 3.0,
            weak_slope: 0.15,
            weak_least: 0.3,
            agreement: 0.1,
            difference: 0.1,
            floor: 0.36,
        }
    }
}
