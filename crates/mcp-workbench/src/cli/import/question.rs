//! The questions of `import`.

use std::io::BufRead;

use super::plan::{CandidateKind, Grouping, ImportCandidate};
use crate::visible::visible;

/// The servers of a topic.
#[derive(Debug)]
pub(super) struct Group {
    topic: &'static str,
    /// The names of the servers.
    servers: Vec<String>,
}

/// Returns the new servers by topic, in the order in which they were found.
pub(super) fn groups(candidates: &[ImportCandidate]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for candidate in candidates {
        let CandidateKind::New(new) = &candidate.kind else {
            continue;
        };
        let (topic, server) = (new.topic.name, candidate.name.clone());
        match groups.iter_mut().find(|it| it.topic == topic) {
            Some(group) => group.servers.push(server),
            None => groups.push(Group {
                topic,
                servers: vec![server],
            }),
        }
    }
    groups
}

/// Shows the proposed toolboxes and asks for confirmation; returns `None` to stop the import.
pub(super) fn grouping(
    groups: &[Group],
    input: &mut impl BufRead,
    say: impl Fn(&str),
) -> Option<Grouping> {
    let width = groups.iter().map(|it| it.topic.len()).max().unwrap_or(0);
    say("Toolboxes by topic:\n");
    for group in groups {
        say(&format!("  {:<width$}  {}\n", group.topic, group.listed()));
    }
    say("Enter accepts, r renames, c creates one per client, a puts all into one, q stops.\n");
    loop {
        match answer("Choice [Enter]: ", input, &say)?.as_str() {
            "" => {
                let renamed = Vec::new();
                return Some(Grouping::ByTopic { renamed });
            }
            "r" | "R" => {
                let renamed = renamed(groups, input, &say)?;
                return Some(Grouping::ByTopic { renamed });
            }
            "c" | "C" => return Some(Grouping::ByClient),
            "a" | "A" => break,
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

/// Asks for the name of each toolbox. Toolboxes with the same name are merged.
fn renamed(
    groups: &[Group],
    input: &mut impl BufRead,
    say: &impl Fn(&str),
) -> Option<Vec<(&'static str, String)>> {
    let mut renamed = Vec::new();
    for group in groups {
        let question = format!("Name for {} [{}]: ", group.listed(), group.topic);
        let name = answer(&question, input, say)?;
        if !name.is_empty() {
            renamed.push((group.topic, name));
        }
    }
    Some(renamed)
}

impl Group {
    fn listed(&self) -> String {
        let names: Vec<_> = self.servers.iter().map(|it| visible(it)).collect();
        names.join(", ")
    }
}

/// Asks for consent to import servers from files of this directory. Only a clear yes counts.
pub(super) fn projects(input: &mut impl BufRead, say: impl Fn(&str)) -> bool {
    let question = "Import them? They stay disabled until you enable them [y/N]: ";
    let answer = answer(question, input, say);
    answer.is_some_and(|it| matches!(it.to_lowercase().as_str(), "y" | "yes"))
}

/// Returns the answer to a question; `None` if the input ended.
fn answer(question: &str, input: &mut impl BufRead, say: impl Fn(&str)) -> Option<String> {
    say(question);
    let mut line = String::new();
    let length = input.read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

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
        let groups =
            [("files", &["fs", "git"][..]), ("data", &["db"])].map(|(topic, servers)| Group {
                topic,
                servers: servers.iter().map(|it| (*it).to_owned()).collect(),
            });
        let one = |name: &str| Some(Grouping::One(name.to_owned()));
        let by_topic = |renamed: &[(&'static str, &str)]| {
            let renamed = renamed
                .iter()
                .map(|(topic, name)| (*topic, (*name).to_owned()));
            Some(Grouping::ByTopic {
                renamed: renamed.collect(),
            })
        };
        let cases = [
            ("\n", by_topic(&[])),
            ("what\n\n", by_topic(&[])),
            ("r\ncode\n\n", by_topic(&[("files", "code")])),
            ("r\n\nshop\n", by_topic(&[("data", "shop")])),
            ("r\ncode\n", None),
            (" c \n", Some(Grouping::ByClient)),
            ("a\n\n", one("tools")),
            ("a\nmy tools\n", one("my tools")),
            ("q\n", None),
            ("", None),
            ("a\n", None),
        ];
        for (input, expected) in cases {
            let said = RefCell::new(String::new());
            let answered = grouping(&groups, &mut input.as_bytes(), |text| {
                said.borrow_mut().push_str(text);
            });
            assert_eq!(answered, expected, "{input:?}");
            let said = said.into_inner();
            assert!(said.contains("  files  fs, git\n  data   db\n"), "{said}");
        }
    }
}
