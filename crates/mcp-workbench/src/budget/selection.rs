//! The part of a result that a filter reads, and the result with the filter's output in its place.

use rawjson::RawJson;

use super::{
    pages::{Pages, Syntax},
    reading::{MetaMember, Piece, Reading, StructuredPart, text_item},
};

/// A result that a filter can be applied to.
pub(crate) struct SelectableResult<'a> {
    reading: Reading<'a>,
    input: RawJson,
}

/// The reason why a filter cannot be applied to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSelectable {
    /// It is not the final result of a tool, or the tool failed.
    #[error("the call did not succeed")]
    NotFinal,
    #[error("the result has no structuredContent, and its text is not JSON")]
    NotJson,
}

impl<'a> SelectableResult<'a> {
    /// Finds the JSON value in a result: `structuredContent`, or else its text. Several texts that are all JSON are an
    /// array. A `structuredContent` that only wraps a text that is JSON counts as that JSON, which is what a model sees.
    pub(crate) fn of(result: &'a RawJson) -> Result<Self, NotSelectable> {
        let is_error = result.member("isError").is_some_and(|it| it.is_true());
        let reading = Reading::of(result)
            // The filter was written for the result of a success. An error is shown whole.
            .filter(|_| !is_error)
            .ok_or(NotSelectable::NotFinal)?;
        let in_texts = json_of_texts(&reading);
        let input = match &reading.structured {
            Some(structured) if !wraps(structured, &reading.text) => structured.clone(),
            Some(structured) => in_texts.unwrap_or_else(|| structured.clone()),
            None => in_texts.ok_or(NotSelectable::NotJson)?,
        };
        Ok(Self { reading, input })
    }

    pub(crate) fn input(&self) -> &RawJson {
        &self.input
    }

    /// Returns the number of characters of the whole result.
    pub(crate) fn characters(&self) -> usize {
        let structured = self
            .reading
            .structured
            .as_ref()
            .map_or(0, |it| it.as_str().chars().count());
        self.reading.text.chars().count() + structured
    }

    /// Returns true if the result has a `structuredContent`.
    pub(crate) fn is_structured(&self) -> bool {
        self.reading.structured.is_some()
    }

    /// Returns the text of the whole result: of its contents, or of `structuredContent` if there is none.
    pub(crate) fn text(&self) -> &str {
        match &self.reading.structured {
            Some(structured) if self.reading.text.is_empty() => structured.as_str(),
            _ => &self.reading.text,
        }
    }

    /// Returns the pages of that text.
    pub(crate) fn pages(&self, characters: usize) -> Pages {
        Pages::of(self.text(), characters, Syntax::Plain)
    }

    /// Returns the result with `texts` in the place of its texts and of `structuredContent`. Other contents stay.
    pub(crate) fn compose(&self, texts: &[&str]) -> RawJson {
        let mut content: Vec<RawJson> = texts.iter().map(|text| text_item(text)).collect();
        let others = self
            .reading
            .pieces
            .iter()
            .filter(|piece| piece.text().is_none());
        content.extend(others.map(Piece::whole));
        let content = RawJson::array(&content);
        self.reading
            .compose(&content, StructuredPart::LeftOut, None)
    }
}

/// Returns a result with one more text at its end, and `about` in its `_meta`. A result that is not understood is
/// returned unchanged.
pub(crate) fn with_remark(result: &RawJson, remark: &str, about: MetaMember<'_>) -> RawJson {
    let Some(reading) = Reading::of(result) else {
        return result.clone();
    };
    let items: Vec<RawJson> = reading
        .pieces
        .iter()
        .map(Piece::whole)
        .chain([text_item(remark)])
        .collect();
    reading.compose(&RawJson::array(&items), StructuredPart::Kept, Some(about))
}

/// Returns true if an object has one member, which is this text.
fn wraps(structured: &RawJson, text: &str) -> bool {
    match structured.members().as_deref() {
        Some([only]) => only.value.as_text().is_some_and(|it| it == text),
        _ => false,
    }
}

fn json_of_texts(reading: &Reading<'_>) -> Option<RawJson> {
    let texts = reading.pieces.iter().filter_map(Piece::text);
    let values: Option<Vec<RawJson>> = texts
        .map(|text| RawJson::parse(&text.into_owned().into()).ok())
        .collect();
    match &values?[..] {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(RawJson::array(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(&text.to_owned().into()).unwrap()
    }

    #[test]
    fn a_filter_reads_structured_content_or_text_that_is_json() {
        let cases = [
            (
                r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1.0}}"#,
                Ok(r#"{"a":1.0}"#),
            ),
            (
                r#"{"content":[{"type":"text","text":" [1,2]"}]}"#,
                Ok("[1,2]"),
            ),
            (
                r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"{}"}]}"#,
                Ok("[1,{}]"),
            ),
            (
                r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"content":"[1]"}}"#,
                Ok("[1]"),
            ),
            (
                r#"{"content":[{"type":"text","text":"words"}],"structuredContent":{"content":"words"}}"#,
                Ok(r#"{"content":"words"}"#),
            ),
            (
                r#"{"content":[{"type":"image","data":"","mimeType":"x"},{"type":"text","text":"1"}]}"#,
                Ok("1"),
            ),
            (
                r#"{"content":[{"type":"text","text":"1"},{"type":"text","text":"x"}]}"#,
                Err(NotSelectable::NotJson),
            ),
            (r#"{"content":[]}"#, Err(NotSelectable::NotJson)),
            (
                r#"{"content":[{"type":"text","text":"1"}],"isError":true}"#,
                Err(NotSelectable::NotFinal),
            ),
            (
                r#"{"resultType":"input_required","content":[{"type":"text","text":"1"}]}"#,
                Err(NotSelectable::NotFinal),
            ),
            (
                r#"{"structuredContent":1,"structuredContent":2}"#,
                Err(NotSelectable::NotFinal),
            ),
        ];
        for (result, expected) in cases {
            let result = json(result);
            let found = SelectableResult::of(&result).map(|it| it.input().as_str().to_owned());
            assert_eq!(found, expected.map(str::to_owned), "{}", result.as_str());
        }
    }

    #[test]
    fn other_contents_and_members_stay() {
        let result = json(
            r#"{"x":1e400,"content":[{"type":"text","text":"{}"},{"type":"image","data":"AA==","mimeType":"i"}],"structuredContent":{},"_meta":{"k":1}}"#,
        );
        let selection = SelectableResult::of(&result).unwrap();
        let value = json("2");
        let about = MetaMember {
            key: "about",
            value: &value,
        };
        assert_eq!(
            selection.compose(&["out"]).as_str(),
            r#"{"x":1e400,"content":[{"type":"text","text":"out"},{"type":"image","data":"AA==","mimeType":"i"}],"_meta":{"k":1}}"#
        );
        assert_eq!(
            with_remark(&result, "why", about).as_str(),
            r#"{"x":1e400,"content":[{"type":"text","text":"{}"},{"type":"image","data":"AA==","mimeType":"i"},{"type":"text","text":"why"}],"structuredContent":{},"_meta":{"k":1,"about":2}}"#
        );
    }
}
