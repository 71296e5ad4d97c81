//! The parameters of the ranking. They were tuned on the development sets; docs/search.md describes how.

use crate::Field;

/// The number of fields of a tool.
pub(crate) const FIELDS: usize = 6;

/// The weight of words in a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FieldWeight {
    /// The weight of one occurrence.
    pub weight: f32,
    /// The penalty for a long text: 0 for none, 1 for full.
    pub length: f32,
    /// The length, in words, without penalty. It is fixed, so that the impact of a word on one tool does not change
    /// with the other tools.
    pub usual: f32,
}

/// All parameters of the ranking.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    /// One weight per field, in the order of [`Field`].
    pub fields: [FieldWeight; FIELDS],
    /// The saturation: how soon more occurrences of a word stop counting.
    pub saturation: f32,
    /// The weight of a synonym.
    pub synonym: f32,
    /// The weight of the subject of a word.
    pub broader: f32,
    /// The factor on both if the index contains the word itself.
    pub known: f32,
    /// The weight of the parts of an unknown identifier, and of two words joined to one.
    pub part: f32,
    /// The exponent on the number of occurrences of a word in the query.
    pub repetition: f32,
    /// The exponent on the rarity of a word.
    pub rarity: f32,
    /// With more strong words than this, filler begins to count less.
    pub weak_from: f32,
    /// The loss of weight of filler for each strong word.
    pub weak_slope: f32,
    /// The minimum weight of filler.
    pub weak_least: f32,
    /// The gain of a tool whose action fits the query, as a share of its score.
    pub agreement: f32,
    /// The loss of a tool whose action differs, as a share of its score.
    pub difference: f32,
    /// The minimum share of the subject of a query that one of the first hits must have to be a good match.
    /// docs/search.md has the error rates at this value.
    pub floor: f32,
}

impl Weights {
    pub(crate) fn field(&self, field: Field) -> &FieldWeight {
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
