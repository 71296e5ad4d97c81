//! Places in a script.

use serde::{Deserialize, Serialize};

/// The name of the script in stack traces.
pub(crate) const FILE: &str = "code.js";

/// The number of characters of a source line that are shown.
const MAX_SHOWN: usize = 120;

/// A place in a script. Lines and columns begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Returns the place of the innermost frame of the script in a stack trace of the engine, which counts one line too many
/// (the one in front of the script) and columns in bytes.
pub(crate) fn in_stack(stack: &str, code: &str) -> Option<Position> {
    let mut frames = stack.lines();
    let frame = frames.find_map(|line| Some(line.split_once(FILE)?.1))?;
    let mut numbers = frame.strip_prefix(':')?.trim_end_matches(')').split(':');
    let line: u32 = numbers.next()?.parse().ok()?;
    // The line in front of the script stands for a place that the engine does not know.
    let line = line.checked_sub(1).filter(|line| *line > 0)?;
    let column: u32 = numbers.next()?.parse().ok()?;
    Some(Position {
        line,
        column: characters(code, line, column),
    })
}

/// Returns a column in characters, from one in bytes.
pub(crate) fn characters(code: &str, line: u32, column: u32) -> u32 {
    let bytes = column.saturating_sub(1) as usize;
    let line = code.lines().nth(line as usize - 1).unwrap_or_default();
    let before = line.char_indices().take_while(|(at, _)| *at < bytes);
    let wide = before.map(|(_, it)| it.len_utf8() - 1).sum::<usize>();
    column
        .saturating_sub(u32::try_from(wide).unwrap_or(u32::MAX))
        .max(1)
}

/// Returns the source line of a place, and a line with a caret under it. Of a long line only the part around the place is
/// shown.
pub fn excerpt(code: &str, at: Position) -> Option<String> {
    let line = code
        .lines()
        .nth(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(at.column).ok()?.saturating_sub(1);
    let begin = column.saturating_sub(MAX_SHOWN / 2);
    let shown: String = line.chars().skip(begin).take(MAX_SHOWN).collect();
    // A tab under the caret's line keeps the caret at its place.
    let pad = shown.chars().take(column - begin);
    let pad: String = pad.map(|it| if it == '\t' { '\t' } else { ' ' }).collect();
    Some(format!("{shown}\n{pad}^"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_frame_of_the_script_counts() {
        let code = "const a = 1;\nconst ä = 'é'; f();\n";
        let cases = [
            (
                "    at get (code.js:2:5)\n    at <anonymous> (code.js:4:39)\n",
                Some((1, 5)),
            ),
            (
                "    at request (prelude.js:9:1)\n    at <anonymous> (code.js:2:20)\n",
                Some((1, 20)),
            ),
            // Two characters in front of `f` have two bytes.
            ("    at code.js:3:18\n", Some((2, 16))),
            ("    at code.js:9:7\n", Some((8, 7))),
            ("    at <anonymous> (code.js:1:10)\n", None),
            ("    at native\n", None),
            ("code.js:x:y", None),
            ("", None),
        ];
        for (stack, expected) in cases {
            let at = in_stack(stack, code).map(|it| (it.line, it.column));
            assert_eq!(at, expected, "{stack}");
        }
    }

    #[test]
    fn an_excerpt_has_a_caret_under_the_place() {
        let code = "const a = 1;\n\treturn b;";
        let at = |line, column| Position { line, column };
        assert_eq!(excerpt(code, at(1, 7)).unwrap(), "const a = 1;\n      ^");
        assert_eq!(excerpt(code, at(2, 9)).unwrap(), "\treturn b;\n\t       ^");
        assert_eq!(excerpt(code, at(3, 1)), None);
        let long = "x".repeat(500);
        let shown = excerpt(&long, at(1, 300)).unwrap();
        assert!(shown.lines().all(|line| line.len() <= MAX_SHOWN), "{shown}");
    }
}
