//! Texts of a script as texts of Rust. JavaScript cuts strings between the halves of a surrogate pair, which UTF-8 does not
//! have: a script that shortens a text with an emoji does so without noticing.

use rquickjs::{Ctx, Error, FromJs, Value};

/// A text of a script, in which a lone half of a surrogate pair is replaced by U+FFFD.
#[derive(Debug)]
pub(crate) struct Text(pub String);

impl<'js> FromJs<'js> for Text {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Self> {
        let kind = value.type_name();
        let not_text = || Error::new_from_js(kind, "string");
        let string = value.as_string().ok_or_else(not_text)?;
        if let Ok(text) = string.to_string() {
            return Ok(Self(text));
        }
        // JSON has escapes for the halves, and for no other characters above U+001F.
        let json = ctx.json_stringify(value)?.ok_or_else(not_text)?;
        let json = without_halves(json.to_string()?);
        let text = serde_json::from_str(&json).map_err(|_| not_text())?;
        Ok(Self(text))
    }
}

/// Replaces the escapes of halves of surrogate pairs in JSON that the engine wrote. Many readers of JSON refuse them.
pub(crate) fn without_halves(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        // The engine writes digits in lower case, and escapes no other characters of this range.
        let is_half = escape.starts_with("\\ud") && escape.len() >= 6;
        let length = if is_half { 6 } else { 2 };
        text.push_str(if is_half {
            "\u{fffd}"
        } else {
            &escape[..length]
        });
        rest = &escape[length..];
    }
    text.push_str(rest);
    text
}
