//! The merged type of JSON values: kinds, members and elements, and never a value.
//!
//! The names of members can be data too, as in an object with an entry per user. Such an object becomes a map, whose
//! names are forgotten: if a name does not read like an identifier, if its values are objects of one kind, or if it has
//! many names.

use rawjson::{Kind, RawJson};
use serde::{Deserialize, Serialize};

/// The depth to which values are read.
const MAX_DEPTH: usize = 6;
/// The members of an object; one with more is a map.
const MAX_MEMBERS: usize = 32;
/// The longest name of a member.
const MAX_NAME: usize = 40;
/// The elements of an array that are read.
const MAX_ELEMENTS: usize = 20;
/// The values of one result that are read.
const MAX_VALUES: usize = 2000;
/// The parts of a merged shape. One with more is not extended.
pub(super) const MAX_PARTS: usize = 300;
/// The names below which an object whose names vary is not taken for a map.
const FEW_NAMES: usize = 8;

/// The kinds of the values that have no parts, or whose parts were not read.
const KINDS: [(Kind, u8); 6] = [
    (Kind::Null, 1),
    (Kind::Boolean, 2),
    (Kind::Number, 4),
    (Kind::String, 8),
    (Kind::Array, 16),
    (Kind::Object, 32),
];

/// The shape of all values that were seen at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// The kinds of values without parts, as bits.
    #[serde(rename = "k", default, skip_serializing_if = "is_zero")]
    kinds: u8,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(super) object: Option<Box<ObjectShape>>,
    /// The elements of all arrays.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(super) element: Option<Box<Self>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectShape {
    #[serde(rename = "n")]
    objects: u64,
    /// The members, in the order in which they were seen first.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) members: Vec<MemberShape>,
    /// The values of a map.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(super) values: Option<Box<Shape>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberShape {
    #[serde(rename = "a")]
    pub(super) name: String,
    /// The number of objects that have it.
    #[serde(rename = "n")]
    objects: u64,
    /// The number of results that have it.
    #[serde(rename = "r")]
    pub(super) results: u64,
    #[serde(rename = "s")]
    pub(super) shape: Shape,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(kinds: &u8) -> bool {
    *kinds == 0
}

impl Shape {
    /// Returns the shape of one result.
    pub(super) fn of(value: &RawJson) -> Self {
        let mut shape = Self::read(value, MAX_DEPTH, &mut MAX_VALUES.clone());
        shape.count_result();
        shape
    }

    fn read(value: &RawJson, depth: usize, room: &mut usize) -> Self {
        let mut shape = Self::default();
        let kind = value.kind();
        *room = room.saturating_sub(1);
        if depth > 0 && *room > 0 {
            match kind {
                Kind::Object => {
                    shape.object = Some(Box::new(ObjectShape::read(value, depth, room)));
                    return shape;
                }
                Kind::Array => {
                    let mut element = Self::default();
                    for value in value
                        .elements()
                        .unwrap_or_default()
                        .iter()
                        .take(MAX_ELEMENTS)
                    {
                        element.merge(&Self::read(value, depth - 1, room));
                    }
                    shape.element = Some(Box::new(element));
                    return shape;
                }
                Kind::Null | Kind::Boolean | Kind::Number | Kind::String => {}
            }
        }
        // Beyond the depth or the room, a container counts as a value without parts.
        let bit = KINDS.iter().find(|(it, _)| *it == kind);
        shape.kinds = bit.map_or(0, |(_, bit)| *bit);
        shape
    }

    /// Adds the values of another shape.
    pub(super) fn merge(&mut self, other: &Self) {
        self.kinds |= other.kinds;
        match (&mut self.object, &other.object) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
        match (&mut self.element, &other.element) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
    }

    /// Returns the kinds of values without parts.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        let kinds = KINDS.into_iter();
        kinds.filter_map(|(kind, bit)| (self.kinds & bit != 0).then_some(kind))
    }

    /// Returns the number of parts.
    pub(super) fn parts(&self) -> usize {
        let object = self.object.as_ref().map_or(0, |object| {
            let members = object.members.iter().map(|it| it.shape.parts());
            members.sum::<usize>() + object.values.as_ref().map_or(0, |it| it.parts())
        });
        1 + object + self.element.as_ref().map_or(0, |it| it.parts())
    }

    /// Returns whether a shape that was read from a file keeps the bounds and rules.
    pub(super) fn is_valid(&self, depth: usize) -> bool {
        let object = self.object.as_ref().is_none_or(|object| {
            let mut members = object.members.iter();
            object.members.len() <= MAX_MEMBERS
                && members.all(|it| is_identifier(&it.name) && it.shape.is_valid(depth + 1))
                && object
                    .values
                    .as_ref()
                    .is_none_or(|it| it.is_valid(depth + 1))
        });
        let element = self.element.as_ref();
        depth <= MAX_DEPTH + 1 && object && element.is_none_or(|it| it.is_valid(depth + 1))
    }

    /// Records that every member was in one result.
    fn count_result(&mut self) {
        if let Some(object) = &mut self.object {
            for member in &mut object.members {
                member.results = 1;
                member.shape.count_result();
            }
            if let Some(values) = &mut object.values {
                values.count_result();
            }
        }
        if let Some(element) = &mut self.element {
            element.count_result();
        }
    }

    /// Returns whether two shapes are of objects, or of arrays of objects, that have at least half of their names in common.
    fn is_alike(&self, other: &Self) -> bool {
        match (&self.element, &other.element) {
            (Some(own), Some(other)) => return own.is_alike(other),
            (None, None) => {}
            _ => return false,
        }
        let (Some(own), Some(other)) = (&self.object, &other.object) else {
            return false;
        };
        let common = own
            .members
            .iter()
            .filter(|it| other.member(&it.name).is_some());
        let common = common.count();
        common > 0 && 2 * common >= own.members.len().max(other.members.len())
    }
}

impl ObjectShape {
    fn read(value: &RawJson, depth: usize, room: &mut usize) -> Self {
        let mut shape = Self {
            objects: 1,
            ..Self::default()
        };
        let members = value.members().unwrap_or_default();
        let is_map =
            members.len() > MAX_MEMBERS || members.iter().any(|it| !is_identifier(&it.key));
        for member in members.iter().take(MAX_MEMBERS) {
            let read = Shape::read(&member.value, depth - 1, room);
            match shape.members.iter_mut().find(|it| it.name == member.key) {
                Some(known) => known.shape.merge(&read),
                None => shape.members.push(MemberShape {
                    // The name of a map is never copied.
                    name: if is_map {
                        String::new()
                    } else {
                        member.key.clone().into_owned()
                    },
                    objects: 1,
                    results: 0,
                    shape: read,
                }),
            }
        }
        if is_map || shape.has_entries() {
            shape.forget_names();
        }
        shape
    }

    /// Returns whether all values are objects of one kind, as the entries of a map are.
    fn has_entries(&self) -> bool {
        let [first, others @ ..] = &self.members[..] else {
            return false;
        };
        !others.is_empty() && others.iter().all(|it| it.shape.is_alike(&first.shape))
    }

    fn merge(&mut self, other: &Self) {
        self.objects += other.objects;
        // The names of a map are gone, so only the values can be merged.
        if self.values.is_some() || other.values.is_some() {
            self.forget_names();
            let mut other = other.clone();
            other.forget_names();
            if let (Some(own), Some(other)) = (&mut self.values, &other.values) {
                own.merge(other);
            }
            return;
        }
        for member in &other.members {
            match self.members.iter_mut().find(|it| it.name == member.name) {
                Some(known) => {
                    known.objects += member.objects;
                    known.results += member.results;
                    known.shape.merge(&member.shape);
                }
                None => self.members.push(member.clone()),
            }
        }
        if self.has_many_names() {
            self.forget_names();
        }
    }

    /// Returns whether objects have so many different names that these are probably data.
    fn has_many_names(&self) -> bool {
        let names = self.members.len();
        // If an object usually has few of the names that all objects have, the names are data.
        let in_all: u64 = self.members.iter().map(|it| it.objects).sum();
        let usual = in_all / self.objects.max(1);
        let is_varied = u64::try_from(names).is_ok_and(|names| names > 3 * usual.max(1));
        names > MAX_MEMBERS || (names > FEW_NAMES && is_varied)
    }

    /// Makes the object a map.
    fn forget_names(&mut self) {
        let values = self.values.get_or_insert_default();
        for member in self.members.drain(..) {
            values.merge(&member.shape);
        }
    }

    fn member(&self, name: &str) -> Option<&MemberShape> {
        self.members.iter().find(|it| it.name == name)
    }

    /// Returns whether some objects lack a member.
    pub(super) fn is_optional(&self, member: &MemberShape) -> bool {
        member.objects < self.objects
    }
}

/// Returns whether a name reads like one that a programmer chose: a short word, without many digits.
fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_' || it == '$');
    let is_word = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'$');
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    // Such a name is an id or a hash.
    let is_hexadecimal =
        name.len() >= 8 && digits > 0 && name.bytes().all(|it| it.is_ascii_hexdigit());
    begins && name.len() <= MAX_NAME && name.bytes().all(is_word) && digits <= 3 && !is_hexadecimal
}
