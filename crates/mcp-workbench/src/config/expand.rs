//! References in a text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:PATH}`,
//! `${keyring:NAME}`, `${userHome}`,
//! `${workspaceFolder}`, and `$${` for a literal `${`. Anything else, a lone `$` or `$VAR` included,
//! is text.

use std::{borrow::Cow, collections::BTreeSet, ffi::OsStr, fmt};

use super::{
    problems::ReferenceFault,
    sources::{MissingValue, Sources},
};

/// A text with its references replaced.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expanded {
    /// The text. A reference to a missing value stays as it was written.
    pub(super) text: String,
    /// The missing values without a default, without duplicates.
    pub(super) missing: Vec<MissingValue>,
    /// The variables that are set to an empty value and have no default, without duplicates.
    pub(super) empty: Vec<String>,
    /// The values in the text, each with its origin.
    pub(super) used: Vec<(UsedFrom, String)>,
}

/// The origin of a value in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsedFrom {
    /// The variable of this name.
    Variable(String),
    File,
    Keyring,
}

impl fmt::Display for UsedFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::File => f.write_str("a file"),
            Self::Keyring => f.write_str("the keyring"),
        }
    }
}

/// A parsed reference, the part between `${` and `}`.
#[derive(Debug, Clone, Copy)]
struct Reference<'a> {
    source: Source<'a>,
    default: Option<&'a str>,
}

/// The source of a reference's value.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Variable(&'a str),
    File(&'a str),
    Keyring(&'a str),
    UserHome,
    WorkspaceFolder,
}

/// Returns `text` with every `${` escaped, so that it expands to itself. Only a whole value may be escaped: a `$` at the
/// end of one piece and a `{` at the start of the next would form a reference.
pub(crate) fn escape_references(text: &str) -> String {
    text.replace("${", "$${")
}

/// Replaces the references in `text`, or returns everything that is wrong with them.
pub(super) fn expand(text: &str, sources: &Sources<'_>) -> Result<Expanded, Vec<ReferenceFault>> {
    let mut expanded = Expanded::default();
    let mut faults = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        // `$${` is a literal `${`.
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
            Ok(reference) => expanded.insert(reference, &rest[at..=at + 2 + length], sources),
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

/// Returns the names of the variables that a whole file refers to, in comments too.
pub(super) fn variables_in(text: &str) -> BTreeSet<String> {
    let inside = text.match_indices("${").filter_map(|(at, opened)| {
        let inside = &text[at + opened.len()..];
        Some(&inside[..inside.find('}')?])
    });
    let names = inside.filter_map(|inside| match Reference::parse(inside).ok()?.source {
        Source::Variable(name) => Some(name.to_owned()),
        Source::File(_) | Source::Keyring(_) | Source::UserHome | Source::WorkspaceFolder => None,
    });
    names.collect()
}

impl<'a> Reference<'a> {
    fn parse(inside: &'a str) -> Result<Self, ReferenceFault> {
        if inside.contains("${") {
            return Err(ReferenceFault::Nested);
        }
        // The first `:-` counts, so that a default may contain another one.
        let (subject, default) = match inside.split_once(":-") {
            Some((subject, default)) => (subject, Some(default)),
            None => (inside, None),
        };
        let source = match subject {
            "userHome" => Source::UserHome,
            "workspaceFolder" => Source::WorkspaceFolder,
            _ => match subject.split_once(':') {
                Some(("file", path)) => Source::File(path),
                Some(("keyring", name)) => Source::Keyring(name),
                Some(("env", name)) => Source::Variable(name),
                // References of other clients, such as `${input:token}`, become names with a colon, which are refused
                // below.
                _ => Source::Variable(subject),
            },
        };
        match source {
            Source::File("") | Source::Keyring("") => Err(ReferenceFault::Malformed {
                name: subject.into(),
            }),
            Source::Variable(name) if !is_name(name) => Err(ReferenceFault::Malformed {
                name: subject.into(),
            }),
            _ => Ok(Self { source, default }),
        }
    }

    fn value<'s>(&self, sources: &Sources<'s>) -> Result<Cow<'s, str>, MissingValue> {
        let environment = sources.environment;
        let (name, value) = match self.source {
            Source::File(path) => return sources.file(path).map(Cow::Owned),
            Source::Keyring(name) => return Sources::keyring(name).map(Cow::Owned),
            Source::Variable(name) => (name, environment.variable(name)),
            Source::UserHome => ("userHome", environment.home().map(AsRef::as_ref)),
            Source::WorkspaceFolder => (
                "workspaceFolder",
                Some(environment.start_directory().as_os_str()),
            ),
        };
        let value = value.map(OsStr::to_string_lossy);
        value.ok_or_else(|| MissingValue::Variable(name.into()))
    }
}

impl Expanded {
    fn insert(&mut self, reference: Reference<'_>, written: &str, sources: &Sources<'_>) {
        match (reference.value(sources), reference.default) {
            (Ok(value), _) => {
                self.text.push_str(&value);
                match reference.source {
                    Source::Variable(name) => {
                        // An empty value is usually a mistake, unless the reference has a default.
                        let is_required = reference.default.is_none();
                        if value.is_empty()
                            && is_required
                            && !self.empty.iter().any(|it| it == name)
                        {
                            self.empty.push(name.into());
                        }
                        let from = UsedFrom::Variable(name.into());
                        self.used.push((from, value.into_owned()));
                    }
                    Source::File(_) => self.used.push((UsedFrom::File, value.into_owned())),
                    Source::Keyring(_) => self.used.push((UsedFrom::Keyring, value.into_owned())),
                    Source::UserHome | Source::WorkspaceFolder => {}
                }
            }
            (Err(_), Some(default)) => self.text.push_str(default),
            (Err(missing), None) => {
                // Messages then show the reference. A server with it is never started.
                self.text.push_str(written);
                if !self.missing.contains(&missing) {
                    self.missing.push(missing);
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
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::config::environment::Environment;

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

    fn expanded(written: &str, environment: &Environment) -> Result<Expanded, Vec<ReferenceFault>> {
        let sources = Sources {
            environment,
            folder: Path::new("/nowhere"),
        };
        expand(written, &sources)
    }

    fn text(written: &str) -> String {
        let expanded = expanded(written, &environment()).expect("the text is well formed");
        assert_eq!(expanded.missing, [], "{written}");
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
            ("${file:absent:-other}", "other"),
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
        let expanded = expanded("${X}${A}${env:Y}${X}", &environment()).expect("well formed");
        let variable = |name: &str| MissingValue::Variable(name.into());
        assert_eq!(expanded.missing, [variable("X"), variable("Y")]);
        assert_eq!(expanded.text, "${X}one${env:Y}${X}");
    }

    #[test]
    fn empty_variables_are_named_unless_they_have_a_default() {
        let written = "${EMPTY}${A}${env:EMPTY} ${EMPTY:-} ${EMPTY:-other}";
        let expanded = expanded(written, &environment()).expect("well formed");
        assert_eq!(expanded.empty, ["EMPTY"]);
        assert_eq!(expanded.missing, []);
    }

    #[test]
    fn the_text_of_a_file_is_a_value_that_is_secret() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hunter2\n").unwrap();
        let sources = Sources {
            environment: &environment(),
            folder: folder.path(),
        };
        let expanded = expand("Bearer ${file:token} ${file:gone}", &sources).expect("well formed");
        assert_eq!(expanded.text, "Bearer hunter2 ${file:gone}");
        assert_eq!(expanded.used, [(UsedFrom::File, "hunter2".into())]);
        let names: Vec<&str> = expanded.missing.iter().map(MissingValue::name).collect();
        assert_eq!(names, ["gone"]);
    }

    #[test]
    fn without_a_home_directory_user_home_is_not_set() {
        let environment = Environment::new([], "/start".into(), None);
        let expanded = expanded("${userHome}", &environment).expect("well formed");
        assert_eq!(
            expanded.missing,
            [MissingValue::Variable("userHome".into())]
        );
    }

    #[test]
    fn only_values_of_variables_count_as_used() {
        let written = "${A} ${NO:-default} ${userHome} ${workspaceFolder}";
        let expanded = expanded(written, &environment()).expect("well formed");
        let from = UsedFrom::Variable("A".into());
        assert_eq!(expanded.used, [(from, "one".into())]);
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
            ("${file:}", malformed("file:")),
            ("${keyring:}", malformed("keyring:")),
            ("${input:token}", malformed("input:token")),
            ("${Ä}", malformed("Ä")),
            ("${A:-${B_2}}", ReferenceFault::Nested),
            ("${${A}}", ReferenceFault::Nested),
        ];
        for (written, expected) in cases {
            assert_eq!(
                expanded(written, &environment()),
                Err(vec![expected]),
                "{written}"
            );
        }
    }

    #[test]
    fn every_malformed_reference_is_named() {
        assert_eq!(
            expanded("${} ${A} ${A", &environment()),
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
        fn an_escaped_text_expands_to_itself(written in r"[ab${}:\-]{0,20}") {
            prop_assert_eq!(text(&escape_references(&written)), written);
        }

        #[test]
        fn no_text_makes_it_panic(written in r"([ab${}:\-ä]|\$\{|env:){0,20}") {
            let _ = expanded(&written, &environment());
        }
    }
}
