//! The parts of a result that a reader sees: its contents, and the text that they form together.

use std::{borrow::Cow, ops::Range};

use rawjson::{Kind, Member, ObjectText, RawJson};

use crate::era::{ResultType, result_type};

/// The separator between the texts of two contents.
const SEPARATOR: char = '\n';

/// The member that has the contents.
const CONTENT: &str = "content";
const STRUCTURED: &str = "structuredContent";
/// The member for metadata of a message.
const META: &str = "_meta";
/// The member of a content that has its text.
const TEXT: &str = "text";
/// The member of a content that has a resource.
const RESOURCE: &str = "resource";

/// A member that is added to `_meta` of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetaMember<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a RawJson,
}

pub(super) struct Reading<'a> {
    pub(super) members: Vec<Member<'a>>,
    pub(super) pieces: Vec<Piece>,
    pub(super) structured: Option<RawJson>,
    /// The texts of the contents, joined by line ends.
    pub(super) text: String,
}

/// The treatment of `structuredContent` in a composed result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StructuredPart {
    Kept,
    LeftOut,
}

pub(super) struct Piece {
    item: RawJson,
    shape: ShownPart,
    /// The range of its text in the joined text; `None` if it has none.
    pub(super) span: Option<Range<usize>>,
}

/// The part of a content that can be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownPart {
    /// A part of its text.
    Text,
    /// A part of the text of its resource.
    Resource,
    Whole,
}

impl<'a> Reading<'a> {
    /// Parses a result. Returns `None` if it is not the result of a tool, or if it has a duplicate member, because
    /// readers could use either one.
    pub(super) fn of(result: &'a RawJson) -> Option<Self> {
        // Questions and tasks decide how the call continues, so nothing of them is left out.
        if result_type(result) != ResultType::Complete {
            return None;
        }
        let members = result.members()?;
        let (mut content, mut structured) = (None, None);
        for member in &members {
            let slot = match member.key.as_ref() {
                CONTENT => &mut content,
                STRUCTURED => &mut structured,
                _ => continue,
            };
            if slot.replace(member.value.clone()).is_some() {
                return None;
            }
        }
        let items = match &content {
            Some(content) => content.elements()?,
            // `content` is required, but some servers leave it out next to structured content.
            None if structured.is_some() => Vec::new(),
            None => return None,
        };
        let mut reading = Self {
            members,
            pieces: Vec::with_capacity(items.len()),
            structured,
            text: String::new(),
        };
        for item in items {
            reading.add(item);
        }
        Some(reading)
    }

    /// Returns the result with other contents. `about`, if there is one, is added to `_meta`.
    pub(super) fn compose(
        &self,
        content: &RawJson,
        structured: StructuredPart,
        about: Option<MetaMember<'_>>,
    ) -> RawJson {
        let mut text = ObjectText::with_room(content.as_bytes().len());
        let (mut has_content, mut has_meta) = (false, false);
        for member in &self.members {
            text = match member.key.as_ref() {
                CONTENT => {
                    has_content = true;
                    text.raw(CONTENT, content)
                }
                STRUCTURED if structured == StructuredPart::LeftOut => text,
                META => {
                    let is_object = member.value.kind() == Kind::Object;
                    match about.filter(|_| is_object && !has_meta) {
                        Some(MetaMember { key, value }) => {
                            has_meta = true;
                            text.raw(META, &member.value.with_member(key, value))
                        }
                        // A `_meta` that is not an object, or a duplicate, is relayed as it is.
                        None => {
                            has_meta = true;
                            text.relay(member)
                        }
                    }
                }
                _ => text.relay(member),
            };
        }
        if !has_content {
            text = text.raw(CONTENT, content);
        }
        if let Some(MetaMember { key, value }) = about.filter(|_| !has_meta) {
            text = text.raw(META, &ObjectText::new().raw(key, value).finish());
        }
        text.finish()
    }

    /// Adds a text that belongs to no content.
    pub(super) fn add_text(&mut self, text: &str) {
        self.add(text_item(text));
    }

    fn add(&mut self, item: RawJson) {
        let kind = item.member("type");
        let kind = kind.as_ref().and_then(RawJson::as_text);
        let shape = match kind.as_deref() {
            Some("text") => Some(ShownPart::Text),
            Some("image" | "audio") => None,
            Some(RESOURCE) => resource_shape(&item),
            _ => Some(ShownPart::Whole),
        };
        let text = match shape {
            Some(ShownPart::Text) => text_of(item.member(TEXT)),
            Some(ShownPart::Resource) => {
                text_of(item.member(RESOURCE).and_then(|it| it.member(TEXT)))
            }
            Some(ShownPart::Whole) | None => None,
        };
        let shape = match (shape, &text) {
            // A text content without text has no part to show.
            (Some(ShownPart::Text | ShownPart::Resource), None) => Some(ShownPart::Whole),
            (shape, _) => shape,
        };
        let span = shape.map(|_| {
            let text = text.map_or(Cow::Borrowed(item.as_str()), Cow::Owned);
            // Not `text.is_empty()`: the text after an empty one is separated too.
            if self.pieces.iter().any(|piece| piece.span.is_some()) {
                self.text.push(SEPARATOR);
            }
            let start = self.text.len();
            self.text.push_str(&text);
            start..self.text.len()
        });
        let shape = shape.unwrap_or(ShownPart::Whole);
        self.pieces.push(Piece { item, shape, span });
    }
}

impl Piece {
    /// Returns the text, if the content is a text.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        let text = self
            .item
            .member(TEXT)
            .filter(|_| self.shape == ShownPart::Text)?;
        Some(Cow::Owned(text.as_text()?.into_owned()))
    }

    pub(super) fn whole(&self) -> RawJson {
        self.item.clone()
    }

    /// Returns the content with only a part of its text; `None` if it cannot be shown in part.
    pub(super) fn part(&self, text: &str) -> Option<RawJson> {
        let text = RawJson::of(&text);
        match self.shape {
            ShownPart::Text => Some(self.item.with_member(TEXT, &text)),
            ShownPart::Resource => {
                let resource = self.item.member(RESOURCE)?.with_member(TEXT, &text);
                Some(self.item.with_member(RESOURCE, &resource))
            }
            ShownPart::Whole => None,
        }
    }
}

pub(super) fn text_item(text: &str) -> RawJson {
    ObjectText::with_room(text.len())
        .member("type", TEXT)
        .member(TEXT, text)
        .finish()
}

/// Returns the part of an embedded resource that can be shown; `None` if it is binary data.
fn resource_shape(item: &RawJson) -> Option<ShownPart> {
    let resource = item.member(RESOURCE);
    let has = |name: &str| {
        resource
            .as_ref()
            .is_some_and(|it| it.member(name).is_some())
    };
    match (has(TEXT), has("blob")) {
        (_, true) => None,
        (true, false) => Some(ShownPart::Resource),
        (false, false) => Some(ShownPart::Whole),
    }
}

fn text_of(value: Option<RawJson>) -> Option<String> {
    Some(value?.as_text()?.into_owned())
}
