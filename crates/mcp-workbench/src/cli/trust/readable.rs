//! Definitions and launches as text that a person can compare, line by line, with nothing hidden in it.

use serde_json::Value;

use crate::lock::Launch;

/// A canonical definition as text: strings as they read, everything else as JSON.
pub(super) fn definition(canonical: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(canonical) else {
        return format!("{}\n", revealed(canonical));
    };
    let mut text = String::new();
    for (name, value) in &members {
        text.push_str(&member(name, value));
    }
    text
}

/// A launch as text.
pub(super) fn launch(launch: &Launch) -> String {
    let parts = launch.parts().iter();
    parts.map(|(name, part)| member(name, part)).collect()
}

fn member(name: &str, value: &Value) -> String {
    let name = revealed(name);
    match value {
        Value::String(text) if !text.contains('\n') => format!("{name}: {}\n", revealed(text)),
        Value::String(text) => {
            let lines = text
                .split('\n')
                .map(|line| format!("  {}\n", revealed(line)));
            format!("{name}:\n{}", lines.collect::<String>())
        }
        value => {
            let text = serde_json::to_string_pretty(value);
            format!("{name}: {}\n", revealed(&text.unwrap_or_default()))
        }
    }
}

/// The text with characters shown that have no width, or look like a plain space. Others that are hidden are shown
/// where the text is printed.
fn revealed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if has_no_look(character) {
            shown.push_str(&format!("\u{27E6}U+{:04X}\u{27E7}", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn has_no_look(character: char) -> bool {
    matches!(
        character,
        '\u{A0}' | '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{1680}'
            | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{2000}'..='\u{200F}'
            | '\u{2028}'..='\u{202F}' | '\u{205F}'..='\u{206F}' | '\u{2800}' | '\u{3000}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_definition_reads_line_by_line() {
        let canonical = "{\"annotations\":{\"readOnlyHint\":true},\"description\":\"one\\ntwo\u{200B}\u{202E}\",\"name\":\"a\"}";
        assert_eq!(
            definition(canonical),
            "annotations: {\n  \"readOnlyHint\": true\n}\ndescription:\n  one\n  two⟦U+200B⟧⟦U+202E⟧\nname: a\n"
        );
        assert_eq!(definition("[]"), "[]\n");
    }
}
