//! The format of an `envFile`: lines of `KEY=VALUE`, optionally after `export `, with `#` comments.
//! In single quotes everything is literal; in double quotes `\n`, `\r`, `\t`, `\"`, `\\` and `\$` are
//! escapes; quoted values may span lines. Nothing is expanded.

use std::str::Chars;

/// A problem with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("expected `KEY=VALUE`")]
    NoAssignment,
    /// The name is not a valid variable name.
    #[error("expected the name of a variable before `=`")]
    BadName,
    /// A quote is not closed before the end of the file.
    #[error("the quote is never closed")]
    UnclosedQuote,
    #[error("unexpected text after the closing quote")]
    TextAfterQuote,
    #[error("a NUL character")]
    NulCharacter,
}

/// Parses the variables of a file in order. An error has the line at which it stopped.
pub(super) fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, LineFault)> {
    // Some editors begin a file with a byte order mark.
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    let mut line = 1;
    while !rest.is_empty() {
        let (variable, after) = assignment(rest).map_err(|fault| (line, fault))?;
        // A quoted value may have several lines.
        line += rest[..rest.len() - after.len()].matches('\n').count();
        variables.extend(variable);
        rest = after;
    }
    Ok(variables)
}

/// A variable and its value.
type Variable = (String, String);

/// Parses one line, or several if a quoted value spans them. Also returns the remaining text.
fn assignment(text: &str) -> Result<(Option<Variable>, &str), LineFault> {
    let (line, after) = first_line(text);
    let content = line.trim_start();
    if content.is_empty() || content.starts_with('#') {
        return Ok((None, after));
    }
    let (before, _) = content.split_once('=').ok_or(LineFault::NoAssignment)?;
    let name = match before.trim().strip_prefix("export") {
        // `exported=1` is a variable whose name only begins with the word.
        Some(name) if name.starts_with(char::is_whitespace) => name.trim(),
        _ => before.trim(),
    };
    if !is_name(name) {
        return Err(LineFault::BadName);
    }
    // The value is read from the whole text and not from this line, since a quoted one may continue after it.
    let start = line.len() - content.len() + before.len() + 1;
    let (value, after) = value(&text[start..])?;
    if value.contains('\0') {
        return Err(LineFault::NulCharacter);
    }
    Ok((Some((name.into(), value)), after))
}

fn value(text: &str) -> Result<(String, &str), LineFault> {
    let (line, after) = first_line(text);
    let content = line.trim_start();
    let Some(quote @ ('"' | '\'')) = content.chars().next() else {
        return Ok((unquoted(line).into(), after));
    };
    let mut characters = text[line.len() - content.len() + 1..].chars();
    let value = quoted(&mut characters, quote)?;
    let (tail, after) = first_line(characters.as_str());
    match tail.trim() {
        "" => Ok((value, after)),
        comment if comment.starts_with('#') => Ok((value, after)),
        _ => Err(LineFault::TextAfterQuote),
    }
}

fn quoted(characters: &mut Chars<'_>, quote: char) -> Result<String, LineFault> {
    let mut value = String::new();
    while let Some(character) = characters.next() {
        match character {
            _ if character == quote => return Ok(value),
            '\\' if quote == '"' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\' | '$')) => value.push(escaped),
                // Other backslashes stay, such as those of a Windows path.
                Some(other) => value.extend(['\\', other]),
                None => return Err(LineFault::UnclosedQuote),
            },
            _ => value.push(character),
        }
    }
    Err(LineFault::UnclosedQuote)
}

/// Returns a value without quotes, which ends at the end of the line or at a `#` after white space.
fn unquoted(line: &str) -> &str {
    // A `#` inside of a word belongs to it, as in a URL with a fragment.
    let comment = line
        .match_indices('#')
        .find(|(at, _)| line[..*at].ends_with(char::is_whitespace));
    line[..comment.map_or(line.len(), |(at, _)| at)].trim()
}

/// Returns the text up to a line break, and the text after it. A carriage return counts as white space and is trimmed
/// as such.
fn first_line(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_parsed() {
        let cases = [
            ("A=1", "1"),
            ("A=", ""),
            ("A = spaced ", "spaced"),
            ("export A=1", "1"),
            ("  export\tA=1\r\n", "1"),
            ("A=a=b", "a=b"),
            ("A=one two # comment", "one two"),
            ("A=#no", "#no"),
            ("A= # comment only", ""),
            ("A=a#b", "a#b"),
            ("A='single # $X \\n'", "single # $X \\n"),
            (
                "A=\"double \\\"q\\\" \\n \\\\ \\$ \\x\" # c",
                "double \"q\" \n \\ $ \\x",
            ),
            ("A=\"two\nlines\"", "two\nlines"),
            ("A=${B}", "${B}"),
            ("\u{feff}A=1", "1"),
            ("A=ä→", "ä→"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse(text),
                Ok(vec![("A".into(), expected.into())]),
                "{text}"
            );
        }
    }

    #[test]
    fn order_comments_and_blank_lines() {
        let text = "# first\n\nB=1\r\n  # indented\r\nA='x\ny'\nC=3";
        let expected = [("B", "1"), ("A", "x\ny"), ("C", "3")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), Ok(expected.to_vec()));
    }

    #[test]
    fn malformed_lines_are_named() {
        let cases = [
            ("A=1\nnonsense", 2, LineFault::NoAssignment),
            ("=1", 1, LineFault::BadName),
            ("1A=1", 1, LineFault::BadName),
            ("A B=1", 1, LineFault::BadName),
            ("A='x\ny'\nB=\"open\n\n", 3, LineFault::UnclosedQuote),
            ("A='x'y", 1, LineFault::TextAfterQuote),
            ("A=\0", 1, LineFault::NulCharacter),
        ];
        for (text, line, fault) in cases {
            assert_eq!(parse(text), Err((line, fault)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_value_survives_double_quotes(value in r"[ -~äß\n\t]{0,30}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(
                parse(&format!("A=\"{escaped}\"\nB=1")),
                Ok(vec![("A".to_owned(), value), ("B".to_owned(), "1".to_owned())])
            );
        }

        #[test]
        fn no_text_makes_it_panic(text in r#"[A='"\\# \r\nä]{0,30}"#) {
            let _ = parse(&text);
        }
    }
}
