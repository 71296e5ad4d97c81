//! Shared by all commands that edit the configuration: read it, validate the edited text, show the difference,
//! and write it.

mod diff;

pub(super) use diff::unified;

use std::path::{Path, PathBuf};

use clap::Args;
use thiserror::Error;

use super::{
    PROGRAM,
    configuration::{ConfigurationError, read_configuration},
    output,
};
use crate::config::{
    ConfigText, EditError, Environment, Problem, WriteError, create_new, escape_references,
    literal_values, parse, replace_unchanged,
};

/// Options of all editing commands.
#[derive(Args)]
pub(super) struct EditArguments {
    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,
}

/// Reasons why a configuration was not edited. The file is unchanged.
#[derive(Debug, Error)]
pub(super) enum EditingError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The file cannot be parsed.
    #[error("{}:{error}", file.display())]
    Unusable {
        file: PathBuf,
        error: Box<EditError>,
    },
    /// The edit is not possible.
    #[error(transparent)]
    Edit(Box<EditError>),
    /// The edited file would be invalid.
    #[error("this would make the configuration invalid\n{}", listed(.0))]
    Invalid(Vec<Problem>),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The result of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditOutcome {
    Written,
    /// The difference was shown because of `--dry-run`.
    Shown,
    /// There was nothing to change.
    Same,
}

/// A configuration file that is being edited.
pub(super) struct Editing {
    pub(super) file: PathBuf,
    /// Its text, with the edits so far.
    pub(super) text: ConfigText,
    before: String,
}

impl Editing {
    /// Reads the configuration file; `flag` is the value of `--config`.
    pub(super) fn open(
        flag: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, EditingError> {
        let (file, before) = read_configuration(flag, environment)?;
        match ConfigText::parse(&before) {
            Ok(text) => Ok(Self { file, text, before }),
            Err(error) => Err(EditingError::Unusable {
                file,
                error: error.into(),
            }),
        }
    }

    /// Converts an error of an edit, with the file name if the error has a position in it.
    pub(super) fn refused(&self, error: EditError) -> EditingError {
        match error {
            EditError::Unusable { .. } => EditingError::Unusable {
                file: self.file.clone(),
                error: error.into(),
            },
            error => EditingError::Edit(error.into()),
        }
    }

    /// Writes the changes, unless they add errors. Prints `done` and new warnings.
    pub(super) fn finish(
        self,
        arguments: &EditArguments,
        environment: &Environment,
        done: &str,
    ) -> Result<EditOutcome, EditingError> {
        let after = self.text.finish();
        if after == self.before {
            return Ok(EditOutcome::Same);
        }
        let all = Findings::of(&after, &self.file, environment);
        let has_errors = !all.errors.is_empty();
        // Old errors do not block an edit: it may be the one that fixes them.
        let findings = all.new_since(&Findings::of(&self.before, &self.file, environment));
        if !findings.errors.is_empty() {
            return Err(EditingError::Invalid(findings.errors));
        }
        if arguments.dry_run {
            output::data(&difference(&self.file, &self.before, &after));
            return Ok(EditOutcome::Shown);
        }
        // Fails if the file was changed since it was read, so that no other edit is lost.
        replace_unchanged(&self.file, &self.before, &after)?;
        output::remark(&format!("{done} in {}", self.file.display()));
        for problem in findings.remarks {
            output::remark(&problem.to_string());
        }
        if has_errors {
            output::remark(&format!(
                "the file still contains errors that it had before\n  hint: `{PROGRAM} check` lists them"
            ));
        }
        Ok(EditOutcome::Written)
    }
}

/// Writes a new configuration file, unless it has errors.
pub(super) fn write_new(
    file: &Path,
    text: &str,
    arguments: &EditArguments,
    environment: &Environment,
) -> Result<EditOutcome, EditingError> {
    let findings = Findings::of(text, file, environment);
    if !findings.errors.is_empty() {
        return Err(EditingError::Invalid(findings.errors));
    }
    if arguments.dry_run {
        output::data(&difference(file, "", text));
        return Ok(EditOutcome::Shown);
    }
    create_new(file, text)?;
    for problem in findings.remarks {
        output::remark(&problem.to_string());
    }
    Ok(EditOutcome::Written)
}

/// Returns the difference of two texts without values that look like secrets.
fn difference(file: &Path, before: &str, after: &str) -> String {
    let difference = diff::unified(file, before, after);
    let secrets = literal_values(&[before, after]);
    secrets.redact(&difference).into_owned()
}

/// Returns the default description of a toolbox.
pub(super) fn usual_description(toolbox: &str) -> String {
    // A description, unlike a name, may contain references to variables.
    format!("Tools for {}", escape_references(toolbox))
}

/// The problems that the loader finds in a text.
struct Findings {
    errors: Vec<Problem>,
    /// Warnings and unset variables. They are unknown if the text has errors.
    remarks: Vec<Problem>,
}

impl Findings {
    fn of(text: &str, file: &Path, environment: &Environment) -> Self {
        match parse(text, file, environment) {
            Ok(loaded) => Self {
                errors: Vec::new(),
                remarks: [loaded.warnings, loaded.unset].concat(),
            },
            Err(problems) => Self {
                errors: problems.iter().cloned().collect(),
                remarks: Vec::new(),
            },
        }
    }

    /// Removes problems that existed before. They are compared by path, because lines may have moved.
    fn new_since(mut self, before: &Self) -> Self {
        let known = |problem: &Problem, list: &[Problem]| {
            let mut list = list.iter();
            list.any(|it| it.place.path == problem.place.path && it.remedy() == problem.remedy())
        };
        self.errors.retain(|it| !known(it, &before.errors));
        self.remarks.retain(|it| !known(it, &before.remarks));
        self
    }
}

fn listed(problems: &[Problem]) -> String {
    let problems: Vec<String> = problems.iter().map(Problem::to_string).collect();
    problems.join("\n")
}
