//! Findings, their severity and their messages. Messages name a character by its number and a location by its
//! pointer, and quote little, because models read them too.

use std::fmt;

use super::{LONG_TEXT, MAX_DEFINITION_BYTES, MAX_EXPANDED, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};
use crate::visible::{revealed, with_lookalikes_numbered};

/// The number of characters of a location that are shown.
const PLACE_LENGTH: usize = 120;
/// The number of characters of a text that are shown.
const EXCERPT_LENGTH: usize = 80;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No honest definition contains it: the tool is withheld.
    Hard,
    /// It may be harmless: it is shown for review.
    Soft,
}

/// A finding in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The JSON pointer of the string, key or schema.
    pub place: String,
    pub problem: Problem,
}

/// The problems that a definition can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A character of the TAG block, which repeats ASCII invisibly.
    Tag(char),
    /// A bidirectional embedding, override or isolate.
    Bidi(char),
    /// The start of a terminal escape sequence.
    Escape(char),
    Control(char),
    /// A private-use character, which has no agreed meaning.
    PrivateUse(char),
    /// Another character without a visible form, in a place where no language and no emoji needs it.
    Invisible(char),
    /// More stray characters without a visible form than accidents explain.
    Strays {
        character: char,
        count: usize,
    },
    /// The definition is too large.
    TooLarge,
    /// A schema nests too deeply.
    TooDeep,
    /// A schema has too many parts.
    TooManySubschemas,
    /// A schema that grows beyond the limit when its references are expanded.
    Expansion,
    /// A schema that refers to itself in place in several ways: validation never ends.
    Endless,
    /// A schema refers to itself in place.
    SelfReference,
    /// A schema with a reference to something outside of it.
    NonLocalReference {
        reference: String,
    },
    /// A stray character without a visible form.
    ZeroWidth {
        character: char,
        count: usize,
    },
    /// Text that tells the model what to do.
    Instruction {
        kind: Instruction,
        text: String,
    },
    /// The path of a file that contains secrets.
    SecretPath {
        path: String,
    },
    /// A long run of what looks like encoded data.
    Blob {
        length: usize,
    },
    /// A URL that runs or contains something, or an image that is fetched.
    Address {
        address: String,
    },
    /// A shell command that runs what it downloads.
    Command {
        text: String,
    },
    /// A comment that is invisible in rendered text.
    Comment,
    /// A long run of blanks that pushes text out of sight.
    Padding,
    /// A text that is too long to be read.
    Long {
        length: usize,
    },
    /// A word with letters of another alphabet that look the same.
    MixedScripts {
        word: String,
    },
    /// The name of a meta-tool.
    ReservedName,
}

/// The kinds of instructions to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// To hide something from the user.
    Secrecy,
    /// To ignore its instructions.
    Override,
    /// To prefer this tool to others.
    Precedence,
    /// To disclose data that it knows or can read.
    Disclosure,
    /// To act without the user's consent.
    Consent,
    /// To treat a text as more than a description.
    Impersonation,
    /// To treat a text as addressed to it.
    Addressing,
    /// To change the calls of other tools.
    Tampering,
    /// To ask the user for a secret.
    Credentials,
    /// To approve a change itself.
    Approval,
}

impl Finding {
    pub(super) fn at(place: String, problem: Problem) -> Self {
        Self { place, problem }
    }

    pub fn severity(&self) -> Severity {
        match self.problem {
            Problem::Tag(_)
            | Problem::Bidi(_)
            | Problem::Escape(_)
            | Problem::Control(_)
            | Problem::PrivateUse(_)
            | Problem::Invisible(_)
            | Problem::Strays { .. }
            | Problem::TooLarge
            | Problem::TooDeep
            | Problem::TooManySubschemas
            | Problem::Expansion
            | Problem::Endless => Severity::Hard,
            _ => Severity::Soft,
        }
    }

    /// Returns true if a user may approve a tool with this hard finding. A definition that is too large cannot be
    /// approved.
    pub fn can_be_approved(&self) -> bool {
        self.problem != Problem::TooLarge
    }

    /// Returns the stable code for programs.
    pub fn code(&self) -> &'static str {
        match self.problem {
            Problem::Tag(_)
            | Problem::Bidi(_)
            | Problem::Escape(_)
            | Problem::Control(_)
            | Problem::PrivateUse(_)
            | Problem::Invisible(_)
            | Problem::Strays { .. } => "hidden_character",
            Problem::TooLarge => "definition_too_large",
            Problem::TooDeep
            | Problem::TooManySubschemas
            | Problem::Expansion
            | Problem::Endless => "schema_bomb",
            Problem::SelfReference => "schema_self_reference",
            Problem::NonLocalReference { .. } => "schema_reference",
            Problem::ZeroWidth { .. } => "zero_width_character",
            Problem::Instruction { .. } => "instruction_to_model",
            Problem::SecretPath { .. } => "secret_path",
            Problem::Blob { .. } => "encoded_data",
            Problem::Address { .. } => "suspicious_address",
            Problem::Command { .. } => "shell_command",
            Problem::Comment | Problem::Padding => "out_of_sight",
            Problem::Long { .. } => "long_text",
            Problem::MixedScripts { .. } => "lookalike_letters",
            Problem::ReservedName => "reserved_name",
        }
    }
}

/// Formats the problem and its location.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)?;
        if !self.place.is_empty() {
            write!(f, " in {}", excerpt(&revealed(&self.place), PLACE_LENGTH))?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let character = |it: char| format!("the hidden character U+{:04X}", u32::from(it));
        match self {
            Self::Tag(it) => write!(f, "{} (TAG block)", character(*it)),
            Self::Bidi(it) => write!(f, "{} (changes the direction of text)", character(*it)),
            Self::Escape(it) => write!(f, "{} (escape sequence)", character(*it)),
            Self::Control(it) => write!(f, "{} (control character)", character(*it)),
            Self::PrivateUse(it) => write!(f, "{} (private use)", character(*it)),
            Self::Invisible(it) => write!(f, "{} (invisible)", character(*it)),
            Self::Strays {
                character: it,
                count,
            } => write!(
                f,
                "{count} invisible characters, the first is U+{:04X}",
                u32::from(*it)
            ),
            Self::TooLarge => write!(
                f,
                "the definition is larger than {} KiB",
                MAX_DEFINITION_BYTES / 1024
            ),
            Self::TooDeep => write!(f, "a schema deeper than {MAX_SCHEMA_DEPTH} levels"),
            Self::TooManySubschemas => {
                write!(f, "a schema of more than {MAX_SUBSCHEMAS} objects")
            }
            Self::Expansion => write!(f, "a schema that expands to more than {MAX_EXPANDED} parts"),
            Self::Endless => f.write_str("a schema that refers to itself without end"),
            Self::SelfReference => f.write_str("a schema that only refers to itself"),
            Self::NonLocalReference { reference } => write!(
                f,
                "a schema that refers to '{}', which is not part of it",
                excerpt(&revealed(reference), EXCERPT_LENGTH)
            ),
            Self::ZeroWidth { character, count } => {
                let number = u32::from(*character);
                write!(f, "an invisible character, U+{number:04X}")?;
                match count {
                    0 | 1 => Ok(()),
                    _ => write!(f, ", and {} more", count - 1),
                }
            }
            Self::Instruction { kind, text } => {
                let text = excerpt(&revealed(text), EXCERPT_LENGTH);
                write!(f, "text that tells a model {}: \"{text}\"", kind.words())
            }
            Self::SecretPath { path } => {
                write!(f, "a path that contains secrets, '{}'", revealed(path))
            }
            Self::Blob { length } => {
                write!(f, "{length} characters that look like encoded data")
            }
            Self::Address { address } => write!(
                f,
                "a URL that runs, contains or fetches something, '{}'",
                excerpt(&revealed(address), EXCERPT_LENGTH)
            ),
            Self::Command { text } => write!(
                f,
                "a command that runs a download, '{}'",
                excerpt(&revealed(text), EXCERPT_LENGTH)
            ),
            Self::Comment => f.write_str("a comment that is invisible in rendered text"),
            Self::Padding => f.write_str("blanks that push text out of sight"),
            Self::Long { length } => {
                write!(f, "a text of {length} characters (more than {LONG_TEXT})")
            }
            Self::MixedScripts { word } => write!(
                f,
                "letters of another alphabet that look the same, '{}'",
                excerpt(&with_lookalikes_numbered(word), EXCERPT_LENGTH)
            ),
            Self::ReservedName => f.write_str("the name of a meta-tool of the workbench"),
        }
    }
}

impl Instruction {
    fn words(self) -> &'static str {
        match self {
            Self::Secrecy => "to hide something from the user",
            Self::Override => "to ignore its instructions",
            Self::Precedence => "to prefer this tool to others",
            Self::Disclosure => "to disclose data",
            Self::Consent => "to act without the user's consent",
            Self::Impersonation | Self::Addressing => "to treat it as more than a description",
            Self::Tampering => "how to call other tools",
            Self::Credentials => "to ask the user for a secret",
            Self::Approval => "to approve a change",
        }
    }
}

/// Cuts a text to `length` characters.
pub(super) fn excerpt(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
