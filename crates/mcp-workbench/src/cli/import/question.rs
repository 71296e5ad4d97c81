//! What `import` asks the person at the terminal.

use std::io::BufRead;

use super::plan::Grouping;
use crate::visible::visible;

/// How servers should become toolboxes; `None` if it should be stopped. An empty answer takes the first way.
pub(super) fn grouping(
    clients: &[String],
    input: &mut impl BufRead,
    say: impl Fn(&str),
) -> Option<Grouping> {
    let names: Vec<_> = clients.iter().map(|it| visible(it)).collect();
    say(&format!(
        "Servers become toolboxes:\n  \
         1  one for each client ({})\n  \
         2  all in one\n  \
         q  stop\n",
        names.join(", ")
    ));
    loop {
        match answer("Which [1]: ", input, &say)?.as_str() {
            "" | "1" => return Some(Grouping::ByClient),
            "2" => break,
            "q" | "Q" => return None,
            _ => {}
        }
    }
    let name = answer("Name of the toolbox [tools]: ", input, &say)?;
    let name = if name.is_empty() {
        "tools".to_owned()
    } else {
        name
    };
    Some(Grouping::One(name))
}

/// Asks whether servers from files of this directory are imported. Only a clear yes counts.
pub(super) fn projects(input: &mut impl BufRead, say: impl Fn(&str)) -> bool {
    let question = "Import them? They stay disabled until you enable them [y/N]: ";
    let answer = answer(question, input, say);
    answer.is_some_and(|it| matches!(it.to_lowercase().as_str(), "y" | "yes"))
}

/// The answer to a question; `None` if the input has ended.
fn answer(question: &str, input: &mut impl BufRead, say: impl Fn(&str)) -> Option<String> {
    say(question);
    let mut line = String::new();
    let length = input.read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_a_project_need_a_clear_yes() {
        for (input, expected) in [
            ("y\n", true),
            (" YES \n", true),
            ("\n", false),
            ("", false),
            ("n\n", false),
            ("yeah\n", false),
        ] {
            assert_eq!(
                projects(&mut input.as_bytes(), |_| ()),
                expected,
                "{input:?}"
            );
        }
    }

    #[test]
    fn answers_are_understood() {
        let one = |name: &str| Some(Grouping::One(name.to_owned()));
        let cases = [
            ("\n", Some(Grouping::ByClient)),
            (" 1 \n", Some(Grouping::ByClient)),
            ("what\n1\n", Some(Grouping::ByClient)),
            ("2\n\n", one("tools")),
            ("2\nmy tools\n", one("my tools")),
            ("q\n", None),
            ("", None),
            ("2\n", None),
            ("what\n", None),
        ];
        for (input, expected) in cases {
            let answered = grouping(&["cursor".to_owned()], &mut input.as_bytes(), |_| ());
            assert_eq!(answered, expected, "{input:?}");
        }
    }
}
