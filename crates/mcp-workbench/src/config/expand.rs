//! References to variables in a text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${userHome}`,
//! `${workspaceFolder}`, and `$${` for a literal `${`. Anything else, a lone `$` or `$VAR` included,
//! is text.

use std::{ffi::OsStr, path::Path};

use super::{environment::Environment, problems::ReferenceFault};

/// A text with its references replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expanded {
    /// The text; a reference to a variable that is not set stays as it was written.
    pub(super) text: String,
    /// The variables that are not set and have no default, each once.
    pub(super) unset: Vec<String>,
    /// The variables whose values went into the text, with these values.
    pub(super) used: Vec<(String, String)>,
}

/// What stands between `${` and `}`.
#[derive(Debug, Clone, Copy)]
struct Reference<'a> {
    source: Source<'a>,
    default: Option<&'a str>,
}

/// Where the value of a reference comes from.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Variable(&'a str),
    UserHome,
    WorkspaceFolder,
}

/// Replaces the references in `text`, or says everything that is wrong with them.
pub(super) fn expand(
    text: &str,
    environment: &Environment,
) -> Result<Expanded, Vec<ReferenceFault>> {
    let mut expanded = Expanded::default();
    let mut faults = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            expanded.text.push_str(&rest[..at - 1]);
            expanded.text.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        expanded.text.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(length) = inside.find('}') else {
            faults.push(ReferenceFault::Unclosed);
            break;
        };
        match Reference::parse(&inside[..length]) {
            Ok(reference) => expanded.insert(reference, &rest[at..=at + 2 + length], environment),
            Err(fault) => faults.push(fault),
        }
        rest = &inside[length + 1..];
    }
    if faults.is_empty() {
        expanded.text.push_str(rest);
        Ok(expanded)
    } else {
        Err(faults)
    }
}

impl<'a> Reference<'a> {
    fn parse(inside: &'a str) -> Result<Self, ReferenceFault> {
        if inside.contains("${") {
            return Err(ReferenceFault::Nested);
        }
        let (subject, default) = match inside.split_once(":-") {
            Some((subject, default)) => (subject, Some(default)),
            None => (inside, None),
        };
        let source = match subject {
            "userHome" => Source::UserHome,
            "workspaceFolder" => Source::WorkspaceFolder,
            _ => Source::Variable(subject.strip_prefix("env:").unwrap_or(subject)),
        };
        match source {
            Source::Variable(name) if !is_name(name) => Err(ReferenceFault::Malformed {
                name: subject.into(),
            }),
            _ => Ok(Self { source, default }),
        }
    }
}

impl Expanded {
    fn insert(&mut self, reference: Reference<'_>, written: &str, environment: &Environment) {
        let (name, value) = match reference.source {
            Source::Variable(name) => (name, environment.variable(name)),
            Source::UserHome => ("userHome", environment.home().map(Path::as_os_str)),
            Source::WorkspaceFolder => (
                "workspaceFolder",
                Some(environment.start_directory().as_os_str()),
            ),
        };
        match (value.map(OsStr::to_string_lossy), reference.default) {
            (Some(value), _) => {
                self.text.push_str(&value);
                if matches!(reference.source, Source::Variable(_)) {
                    self.used.push((name.into(), value.into_owned()));
                }
            }
            (None, Some(default)) => self.text.push_str(default),
            (None, None) => {
                self.text.push_str(written);
                if !self.unset.iter().any(|known| known == name) {
                    self.unset.push(name.into());
                }
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment() -> Environment {
        let variables = [
            ("A", "one"),
            ("B_2", "two"),
            ("EMPTY", ""),
            ("userHome", "a variable"),
        ];
        Environment::new(
            variables.map(|(name, value)| (name.into(), value.into())),
            "/start".into(),
            Some("/home/me".into()),
        )
    }

    fn text(written: &str) -> String {
        let expanded = expand(written, &environment()).expect("the text is well formed");
        assert_eq!(expanded.unset, Vec::<String>::new(), "{written}");
        expanded.text
    }

    #[test]
    fn references_become_values() {
        let cases = [
            ("${A}", "one"),
            ("x${A}y${B_2}z", "xoneytwoz"),
            ("${A:-other}", "one"),
            ("${env:A}", "one"),
            ("${env:A:-other}", "one"),
            ("${NO:-other}", "other"),
            ("${env:NO:-other}", "other"),
            ("${NO:-}", ""),
            ("${NO:-a:-b}", "a:-b"),
            ("${NO:-$A \"*\"}", "$A \"*\""),
            ("${NO:-https://x/y?z}", "https://x/y?z"),
            ("${EMPTY}", ""),
            ("${EMPTY:-other}", ""),
            ("${userHome}/x", "/home/me/x"),
            ("${workspaceFolder}", "/start"),
            ("${env:userHome}", "a variable"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("a$${", "a${"),
            ("$${A} ${A}", "${A} one"),
            ("$", "$"),
            ("$A $$ $ {A} }", "$A $$ $ {A} }"),
            ("", ""),
            ("äöü ${A} →", "äöü one →"),
        ];
        for (written, expected) in cases {
            assert_eq!(text(written), expected, "{written}");
        }
    }

    #[test]
    fn unset_variables_are_all_named_and_stay_as_written() {
        let expanded = expand("${X}${A}${env:Y}${X}", &environment()).expect("well formed");
        assert_eq!(expanded.unset, ["X", "Y"]);
        assert_eq!(expanded.text, "${X}one${env:Y}${X}");
    }

    #[test]
    fn without_a_home_directory_user_home_is_not_set() {
        let environment = Environment::new([], "/start".into(), None);
        let expanded = expand("${userHome}", &environment).expect("well formed");
        assert_eq!(expanded.unset, ["userHome"]);
    }

    #[test]
    fn only_values_of_variables_count_as_used() {
        let written = "${A} ${NO:-default} ${userHome} ${workspaceFolder}";
        let expanded = expand(written, &environment()).expect("well formed");
        assert_eq!(expanded.used, [("A".into(), "one".into())]);
    }

    #[test]
    fn malformed_references_are_refused() {
        let malformed = |name: &str| ReferenceFault::Malformed { name: name.into() };
        let cases = [
            ("${A", ReferenceFault::Unclosed),
            ("${", ReferenceFault::Unclosed),
            ("x ${A ${A", ReferenceFault::Unclosed),
            ("${}", malformed("")),
            ("${1A}", malformed("1A")),
            ("${A B}", malformed("A B")),
            ("${ A}", malformed(" A")),
            ("${A-x}", malformed("A-x")),
            ("${A:x}", malformed("A:x")),
            ("${:-x}", malformed("")),
            ("${env:}", malformed("env:")),
            ("${input:token}", malformed("input:token")),
            ("${Ä}", malformed("Ä")),
            ("${A:-${B_2}}", ReferenceFault::Nested),
            ("${${A}}", ReferenceFault::Nested),
        ];
        for (written, expected) in cases {
            assert_eq!(
                expand(written, &environment()),
                Err(vec![expected]),
                "{written}"
            );
        }
    }

    #[test]
    fn every_fault_of_a_text_is_named() {
        assert_eq!(
            expand("${} ${A} ${A", &environment()),
            Err(vec![
                ReferenceFault::Malformed {
                    name: String::new()
                },
                ReferenceFault::Unclosed
            ])
        );
    }

    proptest! {
        #[test]
        fn a_text_without_references_is_unchanged(written in r"[ -~äß$}\n]{0,40}") {
            prop_assume!(!written.contains("${"));
            prop_assert_eq!(text(&written), written);
        }

        #[test]
        fn escaping_gives_the_text_back(written in r"[ab${}:\-]{0,20}") {
            prop_assert_eq!(text(&written.replace("${", "$${")), written);
        }

        #[test]
        fn no_text_makes_it_panic(written in r"([ab${}:\-ä]|\$\{|env:){0,20}") {
            let _ = expand(&written, &environment());
        }
    }
}
