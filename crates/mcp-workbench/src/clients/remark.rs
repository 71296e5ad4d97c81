//! Remarks about an imported entry. None of them quotes a value.

use std::fmt;

use crate::visible::visible;

/// A remark for the user about an imported entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// A variable must be set, because the client got its value from elsewhere.
    SetVariable {
        variable: String,
        /// The client's source of the value.
        source: ValueSource,
    },
    /// The client passed `${VARIABLE}` on unchanged; the workbench expands it.
    NowReplaced { variable: String },
    /// A reference that the workbench does not support. It becomes literal text, and the entry is disabled.
    Untranslatable { key: String, reference: String },
    /// The file contains a value that looks like a secret.
    LiteralSecret { key: String },
    /// The client signed in to the server with OAuth, so the workbench needs a sign-in too.
    SignsIn,
    /// The entry comes from a project file. It is disabled, because the author of the project wrote it, not the
    /// user.
    FromProject,
    /// The project's entry asks for variables of the user's environment. It does not get them.
    NotInherited { variables: Vec<String> },
    /// Two clients allow different tools of this server. The entry allows those that both allow.
    StricterTools,
    /// The server is in the configuration already, and this client allows fewer tools of it.
    FewerToolsIn { client: &'static str },
    /// The working directory is set, because the server used it in the client.
    WorksIn { directory: String },
}

/// The source of a value that is not in the client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    Input,
    SecretStore,
}

impl Remark {
    /// Returns the stable code for programs.
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
            Self::FewerToolsIn { .. } => "fewer_tools_in_client",
            Self::WorksIn { .. } => "works_in",
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetVariable { variable, source } => {
                let was = match source {
                    ValueSource::Input => "the client prompted for it",
                    ValueSource::SecretStore => "the client has it in its secret store",
                };
                write!(f, "set the variable {} ({was})", visible(variable))
            }
            Self::NowReplaced { variable } => {
                let variable = visible(variable);
                write!(
                    f,
                    "${{{variable}}} is now replaced by the value of {variable}; the client did not replace it"
                )
            }
            Self::Untranslatable { key, reference } => write!(
                f,
                "{}: `{}` is not supported by the workbench and is now literal text; the entry is disabled until you replace it",
                visible(key),
                visible(reference)
            ),
            Self::LiteralSecret { key } => write!(
                f,
                "{} contains a secret in plain text; put it into a variable and write ${{VARIABLE}} instead",
                visible(key)
            ),
            Self::SignsIn => write!(
                f,
                "the client signed in to this server; run `mcp-workbench login TOOLBOX SERVER` to sign in here"
            ),
            Self::FromProject => write!(
                f,
                "it comes from a project file in this directory; it is disabled until you enable it"
            ),
            Self::NotInherited { variables } => write!(
                f,
                "it asks for these variables of your environment: {}; to allow that, list them in its `inheritEnv`",
                visible(&variables.join(", "))
            ),
            Self::StricterTools => write!(
                f,
                "its entries allow different tools; only the tools that all of them allow are imported \
                 (`includeTools`, `disabledTools`)"
            ),
            Self::FewerToolsIn { client } => write!(
                f,
                "{client} allows fewer tools of it than the configuration, which stays as it is; copy `includeTools` and \
                 `disabledTools` from there to keep that"
            ),
            Self::WorksIn { directory } => {
                write!(
                    f,
                    "its working directory is {}, as in the client",
                    visible(directory)
                )
            }
        }
    }
}
