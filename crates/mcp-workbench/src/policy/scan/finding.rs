//! What can be found, how bad it is, and the words for it. The words name a character by its number and a place by its
//! pointer, because they are read by models too: what is found is not repeated there.

use std::fmt;

use super::{LONG_TEXT, MAX_DEFINITION_BYTES, MAX_EXPANDED, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};
use crate::visible::{revealed, told_apart};

/// How much of a place is told.
const PLACE_LENGTH: usize = 120;
/// How much of a text is told.
const EXCERPT_LENGTH: usize = 80;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No honest definition has it: the tool is withheld.
    Hard,
    /// It may be honest: it is shown to whoever looks.
    Soft,
}

/// Something that was found in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The JSON pointer of the string, key or schema.
    pub place: String,
    pub problem: Problem,
}

/// What can be found in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A character of the TAG block, which repeats ASCII without a look.
    Tag(char),
    /// A bidirectional embedding, override or isolate.
    Bidi(char),
    /// The beginning of an escape sequence for a terminal.
    Escape(char),
    Control(char),
    /// A character of private use, which means nothing that others know.
    PrivateUse(char),
    /// Another character without a visible form, where no language and no emoji needs it.
    Invisible(char),
    /// More stray characters without a visible form than get into a definition by accident.
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
    /// A schema grows beyond measure when its references are followed.
    Expansion,
    /// A schema refers to itself in place in several ways: checking a value against it never ends.
    Endless,
    /// A schema refers to itself in place.
    SelfReference,
    /// A schema refers to something that is not part of it.
    NonLocalReference {
        reference: String,
    },
    /// A character without a look, where no language and no emoji needs it.
    ZeroWidth {
        character: char,
        count: usize,
    },
    /// Text that tells the model what to do.
    Instruction {
        kind: Instruction,
        text: String,
    },
    /// A file in which secrets are kept.
    SecretPath {
        /// Its path as it is written.
        path: String,
    },
    /// A long run of what looks like encoded data.
    Blob {
        /// How many characters it has.
        length: usize,
    },
    /// An address that runs or holds something, or an image that is fetched.
    Address {
        address: String,
    },
    /// A shell command that runs what it fetches.
    Command {
        text: String,
    },
    /// A comment that a reader of the rendered text does not see.
    Comment,
    /// A long stretch of blanks, behind which text is out of sight.
    Padding,
    /// A text that is longer than anybody reads.
    Long {
        /// How many characters it has.
        length: usize,
    },
    /// A word of letters that only look like those of one alphabet.
    MixedScripts {
        word: String,
    },
    /// The name of a tool of the workbench.
    ReservedName,
}

/// What a text tells the model to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// To keep something from the user.
    Secrecy,
    /// To forget what it was told.
    Override,
    /// To use this tool before or in place of others.
    Precedence,
    /// To hand over what it knows or can read.
    Disclosure,
    /// To do something without the user's consent.
    Consent,
    /// To take a text for more than it is.
    Impersonation,
    /// To take a text for one that is meant for it.
    Addressing,
    /// To change what other tools are called with.
    Tampering,
    /// To ask the user for a secret.
    Credentials,
    /// To approve a change by itself.
    Approval,
}

impl Finding {
    /// A finding at a place.
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

    /// Whether somebody may approve a tool with this hard finding. What is too large is not offered by anybody's word.
    pub fn can_be_approved(&self) -> bool {
        self.problem != Problem::TooLarge
    }

    /// The stable word for programs.
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

/// What was found, and where.
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
            Self::Invisible(it) => write!(f, "{} (no visible form)", character(*it)),
            Self::Strays {
                character: it,
                count,
            } => write!(
                f,
                "{count} characters without a visible form, the first of them U+{:04X}",
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
            Self::Expansion => write!(
                f,
                "a schema whose references come to more than {MAX_EXPANDED} parts"
            ),
            Self::Endless => f.write_str("a schema that refers to itself without end"),
            Self::SelfReference => f.write_str("a schema that only refers to itself"),
            Self::NonLocalReference { reference } => write!(
                f,
                "a schema that refers to '{}', which is not part of it",
                excerpt(&revealed(reference), EXCERPT_LENGTH)
            ),
            Self::ZeroWidth { character, count } => {
                let number = u32::from(*character);
                write!(f, "a character without a look, U+{number:04X}")?;
                match count {
                    0 | 1 => Ok(()),
                    _ => write!(f, ", and {} more such", count - 1),
                }
            }
            Self::Instruction { kind, text } => {
                let text = excerpt(&revealed(text), EXCERPT_LENGTH);
                write!(f, "words that tell a model {}: \"{text}\"", kind.words())
            }
            Self::SecretPath { path } => {
                write!(f, "a place where secrets are kept, '{}'", revealed(path))
            }
            Self::Blob { length } => {
                write!(f, "{length} characters that look like encoded data")
            }
            Self::Address { address } => write!(
                f,
                "an address that runs, holds or fetches something, '{}'",
                excerpt(&revealed(address), EXCERPT_LENGTH)
            ),
            Self::Command { text } => write!(
                f,
                "a command that runs what it fetches, '{}'",
                excerpt(&revealed(text), EXCERPT_LENGTH)
            ),
            Self::Comment => f.write_str("a comment that is not seen where text is rendered"),
            Self::Padding => f.write_str("blanks that push text out of sight"),
            Self::Long { length } => {
                write!(f, "a text of {length} characters (more than {LONG_TEXT})")
            }
            Self::MixedScripts { word } => write!(
                f,
                "letters that only look like others, '{}'",
                excerpt(&told_apart(word), EXCERPT_LENGTH)
            ),
            Self::ReservedName => f.write_str("the name of a tool of the workbench"),
        }
    }
}

impl Instruction {
    fn words(self) -> &'static str {
        match self {
            Self::Secrecy => "to keep something from the user",
            Self::Override => "to forget what it was told",
            Self::Precedence => "to use this before other tools",
            Self::Disclosure => "to hand over what it can read",
            Self::Consent => "to act without the user's consent",
            Self::Impersonation | Self::Addressing => "to take them for more than a description",
            Self::Tampering => "how to call other tools",
            Self::Credentials => "to ask the user for a secret",
            Self::Approval => "to approve a change",
        }
    }
}

/// At most so many characters of a text.
pub(super) fn excerpt(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
