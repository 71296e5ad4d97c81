//! The questions of `init`.

use std::io::{self, BufRead};

use super::template::{NewConfiguration, name_of};
use crate::visible::visible;

/// Asks for the content of a new file; returns `None` if the input ends early. An empty answer accepts the
/// default in brackets.
pub(super) fn ask(
    input: &mut impl BufRead,
    say: impl Fn(&str),
) -> io::Result<Option<NewConfiguration>> {
    let mut questions = Questions { input, say };
    let usual = NewConfiguration::default();
    let Some(toolbox) = questions.ask("Name of the first toolbox", &usual.toolbox)? else {
        return Ok(None);
    };
    let mut first = NewConfiguration::named(&toolbox);
    // The usual description fits only the usual name.
    if toolbox == usual.toolbox {
        first.description = usual.description;
    }
    let Some(description) =
        questions.ask("What is it for? Models choose by this", &first.description)?
    else {
        return Ok(None);
    };
    first.description = description;
    let Some(command) = questions.ask(
        "Command of a first server, such as `uvx mcp-server-time`",
        "",
    )?
    else {
        return Ok(None);
    };
    let words = words(&command);
    if !words.is_empty() {
        let Some(name) = questions.ask("Name of that server", &name_of(&words))? else {
            return Ok(None);
        };
        first.server = Some((name, words));
    }
    Ok(Some(first))
}

struct Questions<'i, I, S> {
    input: &'i mut I,
    say: S,
}

impl<I: BufRead, S: Fn(&str)> Questions<'_, I, S> {
    /// Returns the answer, or the default for an empty one.
    fn ask(&mut self, question: &str, usual: &str) -> io::Result<Option<String>> {
        let shown = match usual {
            "" => "none".into(),
            usual => visible(usual),
        };
        (self.say)(&format!("{question} [{shown}]: "));
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            (self.say)("\n");
            return Ok(None);
        }
        let answer = match line.trim() {
            "" => usual,
            answer => answer,
        };
        Ok(Some(answer.to_owned()))
    }
}

/// Splits a command line into words. Quotes group words; a backslash escapes a space, a quote or itself.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            _ if quote == Some(letter) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(letter);
                // Quotes without anything between them are a word too.
                word.get_or_insert_default();
            }
            '\\' if quote != Some('\'') => {
                // Other backslashes stay, as in a path of Windows.
                let escaped = letters.next_if(|next| matches!(next, ' ' | '"' | '\'' | '\\'));
                word.get_or_insert_default().push(escaped.unwrap_or(letter));
            }
            space if space.is_whitespace() && quote.is_none() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use pretty_assertions::assert_eq;

    use super::*;

    fn answered(input: &str) -> (Option<NewConfiguration>, String) {
        let said = RefCell::new(String::new());
        let first = ask(&mut input.as_bytes(), |text| {
            said.borrow_mut().push_str(text);
        });
        (first.expect("the input can be read"), said.into_inner())
    }

    #[test]
    fn empty_answers_accept_the_defaults() {
        let (first, said) = answered("\n\n\n");
        assert_eq!(first, Some(NewConfiguration::default()));
        assert_eq!(
            said,
            "Name of the first toolbox [main]: What is it for? Models choose by this [General tools]: \
             Command of a first server, such as `uvx mcp-server-time` [none]: "
        );
    }

    #[test]
    fn answers_replace_the_defaults() {
        let (first, said) = answered(" dev \nCode\nnpx -y 'my server' \n\n");
        let words = ["npx", "-y", "my server"].map(str::to_owned);
        assert_eq!(
            first,
            Some(NewConfiguration {
                toolbox: "dev".to_owned(),
                description: "Code".to_owned(),
                server: Some(("my server".to_owned(), words.to_vec())),
            })
        );
        assert!(
            said.contains("[Tools for dev]") && said.ends_with("[my server]: "),
            "{said}"
        );
    }

    #[test]
    fn the_end_of_input_gives_no_answers() {
        for input in ["", "dev\n", "dev\nCode\n", "dev\nCode\nuvx x\n"] {
            assert_eq!(answered(input).0, None, "{input:?}");
        }
    }

    #[test]
    fn lines_become_words() {
        let cases: [(&str, &[&str]); 7] = [
            ("", &[]),
            ("  a  b ", &["a", "b"]),
            ("'a b' \"c d\"e", &["a b", "c de"]),
            ("a\\ b \\\"", &["a b", "\""]),
            ("C:\\tools\\x '' ", &["C:\\tools\\x", ""]),
            ("'a\\b' \"it's\"", &["a\\b", "it's"]),
            ("'open", &["open"]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line), expected, "{line}");
        }
    }
}
