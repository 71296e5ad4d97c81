//! Cuts a result that is over its budget.

use std::ops::Range;

use rawjson::RawJson;

use super::{
    pages::{Pages, Syntax, head_end, tail_start},
    reading::{MetaMember, Piece, Reading, StructuredPart, text_item},
};

/// The tail is one part in this many of the shown text. Errors are often reported at the end.
const TAIL_SHARE: usize = 4;
/// `structuredContent` may take one part in this many of the budget beside the text.
const STRUCTURED_SHARE: usize = 4;
/// Texts get at least one part in this many of the budget if `structuredContent` has to stay.
const TEXT_SHARE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structured {
    /// It is left out if it does not fit.
    MayGo,
    /// It stays: the client was shown an `outputSchema`, and rejects a result without it.
    Stays,
}

/// A result that is over its budget, with the places where it is cut.
pub(crate) struct Cut<'a> {
    reading: Reading<'a>,
    /// The number of characters of the whole result.
    pub characters: usize,
    /// The number of characters shown from the beginning of the text.
    pub head: usize,
    /// The number of characters shown from the end of the text.
    pub tail: usize,
    /// The number of characters of `structuredContent` that are left out; 0 if it stays.
    pub(crate) structured: usize,
    /// The end of the head, in bytes of the text.
    head_end: usize,
    tail_start: usize,
}

impl<'a> Cut<'a> {
    /// Computes where a result has to be cut. Returns `None` if it fits, or if nothing of it can be left out.
    pub(crate) fn of(result: &'a RawJson, budget: usize, structured: Structured) -> Option<Self> {
        // A character takes at least one byte, in JSON as well.
        if result.as_bytes().len() <= budget {
            return None;
        }
        // The budget is for the characters that a model reads: the texts, and `structuredContent` as JSON beside
        // them. What is over it is cut out of the joined text, between a head of three quarters of the room and a
        // tail of one. `structuredContent` is shown whole or not at all, because a part of it would be no JSON.
        let mut reading = Reading::of(result)?;
        let beside = reading
            .structured
            .as_ref()
            .map_or(0, |it| characters(it.as_str()));
        let texts = characters(&reading.text);
        let characters_in_all = texts + beside;
        if characters_in_all <= budget {
            return None;
        }
        // A small structured content stays, because removing it would save little.
        let stays = structured == Structured::Stays || beside <= budget / STRUCTURED_SHARE;
        // The part that has to stay may be larger than the whole budget. The text still gets its part, since it may be
        // all that a model sees.
        let room = if stays {
            budget.saturating_sub(beside).max(budget / TEXT_SHARE)
        } else {
            budget
        };
        if !stays
            && texts < beside / 2
            && let Some(structured) = reading.structured.clone()
        {
            // The texts are too short to repeat the structured content, so it would not be seen at all.
            reading.add_text(structured.as_str());
        }
        let text = &reading.text;
        let (head_end, tail_start) = if characters(text) <= room {
            (text.len(), text.len())
        } else {
            let tail = room / TAIL_SHARE;
            (head_end(text, room - tail), tail_start(text, tail))
        };
        // Nothing can be left out: the text fits, and the structured content has to stay.
        if head_end == tail_start && stays {
            return None;
        }
        Some(Self {
            characters: characters_in_all,
            head: characters(&text[..head_end]),
            tail: characters(&text[tail_start..]),
            structured: if stays { 0 } else { beside },
            head_end,
            tail_start,
            reading,
        })
    }

    /// Returns the whole text, of which head and tail are parts.
    pub(crate) fn text(&self) -> &str {
        &self.reading.text
    }

    /// Returns the pages of the text, of at most `characters` each. The shown head is the first page, so that a
    /// reader continues with the second.
    pub(crate) fn pages(&self, characters: usize) -> Pages {
        let text = &self.reading.text;
        if self.cuts_text() {
            Pages::after(text, self.head_end, characters, Syntax::Plain)
        } else {
            Pages::of(text, characters, Syntax::Plain)
        }
    }

    /// Returns whether a part of the text is left out.
    pub(crate) fn cuts_text(&self) -> bool {
        self.head_end < self.tail_start
    }

    /// Returns the result without the parts that are over the budget. `notice` replaces the removed text, `link` is
    /// appended to the contents, and `about` is added to `_meta`.
    pub(crate) fn compose(
        &self,
        notice: &str,
        link: Option<&RawJson>,
        about: MetaMember<'_>,
    ) -> RawJson {
        let content = self.content(notice, link);
        let structured = if self.structured > 0 {
            StructuredPart::LeftOut
        } else {
            StructuredPart::Kept
        };
        self.reading.compose(&content, structured, Some(about))
    }

    fn content(&self, notice: &str, link: Option<&RawJson>) -> RawJson {
        let mut content = Vec::with_capacity(self.reading.pieces.len() + 2);
        let mut notice = Some(text_item(notice));
        for piece in &self.reading.pieces {
            // An image and the like: it does not count, and always stays.
            let Some(span) = &piece.span else {
                content.push(piece.whole());
                continue;
            };
            if span.end <= self.head_end {
                content.push(piece.whole());
                continue;
            }
            // The head ends in this piece, or before it. `part` returns `None` for an empty range, so pieces between
            // head and tail disappear, and so does one that can only be shown whole.
            let head = span.start..self.head_end;
            content.extend(self.part(piece, head));
            content.extend(notice.take());
            if span.start >= self.tail_start {
                content.push(piece.whole());
            } else {
                content.extend(self.part(piece, self.tail_start..span.end));
            }
        }
        content.extend(notice);
        content.extend(link.cloned());
        RawJson::array(&content)
    }

    /// Returns a content with only a part of its text, if that part is not empty.
    fn part(&self, piece: &Piece, part: Range<usize>) -> Option<RawJson> {
        (!part.is_empty()).then(|| piece.part(&self.reading.text[part]))?
    }
}

fn characters(text: &str) -> usize {
    text.chars().count()
}
