//! Formats definitions and launches as lines for comparison, with hidden characters made visible.

use serde_json::Value;

use crate::{lock::Launch, visible::revealed_lines};

/// Formats a canonical definition: strings as text, everything else as JSON.
pub(super) fn definition(canonical: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(canonical) else {
        return format!("{}\n", revealed_lines(canonical));
    };
    let mut text = String::new();
    for (name, value) in &members {
        text.push_str(&member(name, value));
    }
    text
}

pub(super) fn launch(launch: &Launch) -> String {
    let parts = launch.parts().iter();
    parts.map(|(name, part)| member(name, part)).collect()
}

fn member(name: &str, value: &Value) -> String {
    let name = revealed_lines(name);
    match value {
        Value::String(text) if !text.contains('\n') => {
            format!("{name}: {}\n", revealed_lines(text))
        }
        Value::String(text) => {
            let lines = text
                .split('\n')
                .map(|line| format!("  {}\n", revealed_lines(line)));
            format!("{name}:\n{}", lines.collect::<String>())
        }
        value => {
            let text = serde_json::to_string_pretty(value);
            format!("{name}: {}\n", revealed_lines(&text.unwrap_or_default()))
        }
    }
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
