//! What has to be said of an entry that was taken over from a client. None of it quotes a value.

use std::fmt;

use crate::visible::visible;

/// Something that a person should know, or do, about an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// A variable has to be set, because the client got its value from elsewhere.
    SetVariable {
        variable: String,
        /// Where the client had it from.
        source: ValueSource,
    },
    /// The client passed `${VARIABLE}` on as it is; the workbench replaces it.
    NowReplaced { variable: String },
    /// A reference that the workbench does not have. It is imported as literal text, and the entry is disabled.
    Untranslatable {
        /// The key of the entry.
        key: String,
        reference: String,
    },
    /// A value that looks like a secret stands in the file as it is.
    LiteralSecret {
        /// The key of the entry.
        key: String,
    },
    /// The client signs in at the server by itself, and so has the workbench to.
    SignsIn,
    /// The entry comes from a file of a project. It is disabled, because whoever wrote the project wrote it.
    FromProject,
    /// The entry of a project wants variables of the user's environment. It does not get them.
    NotInherited {
        /// Their names, as written.
        variables: Vec<String>,
    },
    /// Two clients have the server and allow different tools. The entry allows those that both allow.
    StricterTools,
    /// The server works in this directory, because it did so there.
    WorksIn { directory: String },
}

/// Where a client has a value from that is not in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    Input,
    SecretStore,
}

impl Remark {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SetVariable { .. } => "set_variable",
            Self::NowReplaced { .. } => "now_replaced",
            Self::Untranslatable { .. } => "untranslatable",
            Self::LiteralSecret { .. } => "literal_secret",
            Self::SignsIn => "signs_in",
            Self::FromProject => "from_project",
            Self::NotInherited { .. } => "not_inherited",
            Self::StricterTools => "stricter_tools",
            Self::WorksIn { .. } => "works_in",
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetVariable { variable, source } => {
                let was = match source {
                    ValueSource::Input => "the client asked for it",
                    ValueSource::SecretStore => "the client keeps it among its secrets",
                };
                write!(f, "set the variable {} ({was})", visible(variable))
            }
            Self::NowReplaced { variable } => {
                let variable = visible(variable);
                write!(
                    f,
                    "${{{variable}}} is replaced by the value of {variable} now, which the client did not do"
                )
            }
            Self::Untranslatable { key, reference } => write!(
                f,
                "{}: `{}` means nothing to the workbench and is now literal text; the entry is disabled until you replace it",
                visible(key),
                visible(reference)
            ),
            Self::LiteralSecret { key } => write!(
                f,
                "{} holds a secret as it is; better put it into a variable and write ${{VARIABLE}}",
                visible(key)
            ),
            Self::SignsIn => write!(
                f,
                "the client signed in there by itself; here `mcp-workbench login TOOLBOX SERVER` does"
            ),
            Self::FromProject => write!(
                f,
                "it comes from a file of this directory; it is disabled until you enable it"
            ),
            Self::NotInherited { variables } => write!(
                f,
                "it wants these variables of your environment: {}; if it may have them, list them in its `inheritEnv`",
                visible(&variables.join(", "))
            ),
            Self::StricterTools => write!(
                f,
                "its entries allow different tools; only the tools that all of them allow are imported \
                 (`includeTools`, `disabledTools`)"
            ),
            Self::WorksIn { directory } => {
                write!(f, "it works in {}, as it did there", visible(directory))
            }
        }
    }
}
