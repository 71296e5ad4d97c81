//! Problems of a configuration file: faults with their places, collected over the whole file, sorted, and shown as
//! one block each.

use std::{error::Error, fmt, path::Path, sync::Arc};

pub(crate) use super::faults::{
    Fault, KeyFault, KeyScope, PerUserFault, ReferenceFault, SealKeyFault, TransportFault,
    ValueFault,
};

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// A variable is not set: its server cannot be used, but everything else can.
    Unset,
    /// Everything works, but probably not as intended.
    Warning,
}

/// Things whose names the user chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Toolbox,
    Server,
    /// A variable in `env`.
    Variable,
    Header,
    /// A tool in `resultSelect`.
    Tool,
    Client,
    /// A claim of a client.
    Claim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

/// A place in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The path, such as `toolboxes.dev.mcpServers.db.args[1]`; empty for the whole file.
    pub path: String,
}

/// A fault at one place of a configuration file. It is displayed as `FILE:LINE:COLUMN: PATH: fault`, followed by the
/// remedy on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: Arc<Path>,
    pub place: SourceLocation,
    pub fault: Fault,
}

/// The problems that make a configuration unusable: at least one, sorted by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// The problems found in a file so far.
#[derive(Debug)]
pub(super) struct Findings {
    file: Arc<Path>,
    errors: Vec<Problem>,
    unset: Vec<Problem>,
    warnings: Vec<Problem>,
}

/// The remarks about a usable configuration.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// Variables that are not set.
    pub(super) unset: Vec<Problem>,
    /// Probable mistakes.
    pub(super) warnings: Vec<Problem>,
}

impl SourceLocation {
    /// Returns the place of the file as a whole.
    pub(super) fn whole_file() -> Self {
        Self {
            line: 1,
            column: 1,
            path: String::new(),
        }
    }

    /// Returns the place of a byte of a text.
    pub(super) fn of_byte(text: &str, at: usize, path: &str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            path: path.into(),
        }
    }
}

impl Problem {
    /// Returns whether this is a key that looks misspelled.
    fn is_misspelt_key(&self) -> bool {
        matches!(
            &self.fault,
            Fault::Key(KeyFault::Unknown { near: Some(_), .. })
        )
    }

    pub fn severity(&self) -> Severity {
        self.fault.severity()
    }

    /// Returns the next step for the user.
    pub fn remedy(&self) -> String {
        self.fault.remedy()
    }
}

impl Problems {
    /// Returns the problems, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Problem> {
        self.0.iter()
    }
}

impl Findings {
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.into(),
            errors: Vec::new(),
            unset: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Records a fault at a place.
    pub(super) fn add(&mut self, place: SourceLocation, fault: impl Into<Fault>) {
        let fault = fault.into();
        let list = match fault.severity() {
            Severity::Error => &mut self.errors,
            Severity::Unset => &mut self.unset,
            Severity::Warning => &mut self.warnings,
        };
        list.push(Problem {
            file: Arc::clone(&self.file),
            place,
            fault,
        });
    }

    /// Returns the remarks, or the problems if there is an error. Every list is in the order of the file. A key that
    /// is probably misspelled is often the cause of an error, so it is reported with the errors.
    pub(super) fn finish(self) -> Result<Remarks, Problems> {
        if self.errors.is_empty() {
            Ok(Remarks {
                unset: sorted(self.unset),
                warnings: sorted(self.warnings),
            })
        } else {
            let misspelt = self.warnings.into_iter().filter(Problem::is_misspelt_key);
            Err(Problems(sorted(
                self.errors.into_iter().chain(misspelt).collect(),
            )))
        }
    }
}

fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by(|a, b| a.place.cmp(&b.place));
    problems
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Toolbox => "toolbox",
            Self::Server => "server",
            Self::Variable => "variable",
            Self::Header => "header",
            Self::Tool => "tool",
            Self::Client => "client",
            Self::Claim => "claim",
        })
    }
}

impl fmt::Display for JsonType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourceLocation { line, column, path } = &self.place;
        write!(f, "{}:{line}:{column}: ", self.file.display())?;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        write!(f, "{}\n  hint: {}", self.fault, self.remedy())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sources::MissingValue;

    fn place(line: usize, path: &str) -> SourceLocation {
        SourceLocation {
            line,
            column: 3,
            path: path.into(),
        }
    }

    #[test]
    fn each_problem_is_a_block_with_its_location_and_a_hint() {
        let mut findings = Findings::new(Path::new("box.json"));
        let empty = ValueFault::Empty {
            what: "description",
        };
        findings.add(place(9, "toolboxes.dev.description"), empty);
        findings.add(place(1, ""), KeyFault::Missing { key: "toolboxes" });
        let problems = findings.finish().expect_err("there are errors");
        assert_eq!(
            problems.to_string(),
            "box.json:1:3: `toolboxes` is missing\n  \
               hint: add `\"toolboxes\": {}`\n\
             box.json:9:3: toolboxes.dev.description: the description is empty\n  \
               hint: write a description here"
        );
    }

    #[test]
    fn warnings_and_unset_variables_are_not_errors() {
        let mut findings = Findings::new(Path::new("box.json"));
        let unset =
            |variable: &str| ReferenceFault::Missing(MissingValue::Variable(variable.into()));
        findings.add(place(7, "b"), unset("B"));
        findings.add(place(2, "a"), unset("A"));
        let spelt_twice = KeyFault::SpeltTwice {
            kept: "url".into(),
            ignored: "uri".into(),
        };
        findings.add(place(3, "c"), spelt_twice);
        let remarks = findings.finish().expect("no errors");
        let paths = |problems: &[Problem]| -> Vec<String> {
            problems.iter().map(|it| it.place.path.clone()).collect()
        };
        assert_eq!(paths(&remarks.unset), ["a", "b"]);
        assert_eq!(paths(&remarks.warnings), ["c"]);
    }
}
