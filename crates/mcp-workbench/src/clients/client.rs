//! What can be said of an MCP client: where its files are, how they are written, and how its entries
//! are spelt. The clients themselves are in `table.rs`, what they can take in `limits.rs`.

use clap::ValueEnum;

/// A known client, by the word that names it on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
#[expect(missing_docs, reason = "the titles are in the table")]
pub enum ClientName {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
    CopilotCli,
    Windsurf,
    Zed,
    #[value(name = "gemini-cli", alias = "gemini")]
    Gemini,
    Antigravity,
    Codex,
    #[value(name = "opencode")]
    OpenCode,
    Cline,
    Roo,
    Continue,
    Goose,
    Amp,
    LmStudio,
    Kiro,
    Trae,
    Qoder,
    Factory,
    Kimi,
    MistralVibe,
}

/// What is known of a client.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Its word.
    pub name: ClientName,
    /// What people call it.
    pub title: &'static str,
    /// Its files, the one that is written to first. All that exist are read.
    pub files: &'static [ClientFile],
    /// How the files are written.
    pub format: Format,
    /// The keys that lead to the servers.
    pub key: &'static [&'static str],
    /// How the servers stand under that key.
    pub listing: Listing,
    /// How an entry of ours is spelt.
    pub spelling: Spelling,
    /// How a variable is written in an entry.
    pub interpolation: Interpolation,
    /// The link that makes the client add a server.
    pub link: Option<Link>,
}

/// A file of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFile {
    /// Whom it is for.
    pub scope: Scope,
    /// The systems on which it is there.
    pub systems: &'static [System],
    /// The folder that its path is seen from.
    pub base: Base,
    /// Its path, with `/`.
    pub path: &'static str,
}

/// Whom a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything that a user does.
    User,
    /// The work in one directory.
    Project,
}

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are known")]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// The one that this program was made for; what is neither Windows nor macOS is like Linux.
    pub const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// A folder that paths are seen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The home directory.
    Home,
    /// The folder that a variable names, or else the home directory with this path.
    Variable {
        /// The variable.
        name: &'static str,
        /// What stands for it in the home directory.
        otherwise: &'static str,
    },
    /// `$XDG_CONFIG_HOME`, or `.config` in the home directory, on every system.
    Config,
    /// Where desktop programs keep their data: `$XDG_CONFIG_HOME` or `~/.config`,
    /// `~/Library/Application Support`, `%APPDATA%`.
    AppData,
    /// The directory in which the workbench was started.
    Project,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are taken.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// How servers stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// A map from names to entries.
    Map,
    /// The same, and once more for each project under `projects`.
    MapAndProjects,
    /// A list of entries with a `name`.
    List,
}

/// How an entry of ours is spelt for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    /// How program and arguments are given.
    pub command: CommandSpelling,
    /// The key of the variables.
    pub env: &'static str,
    /// More keys, with the values that they always have.
    pub always: &'static [(&'static str, Constant)],
}

/// How program and arguments are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandSpelling {
    /// `command` and `args`.
    CommandAndArgs,
    /// `cmd` and `args`.
    CmdAndArgs,
    /// `command` holds both.
    Line,
}

/// A value that an entry always has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// The name of the server.
    Name,
    /// A text.
    Text(&'static str),
    /// `true`.
    True,
    /// A list of texts.
    Texts(&'static [&'static str]),
}

/// How a variable is written in an entry, so that the client replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpolation {
    /// Not at all.
    None,
    /// `${VAR}`.
    Braces,
    /// `${env:VAR}`.
    EnvPrefix,
    /// `$VAR`, and `${VAR}`.
    Dollar,
    /// `{env:VAR}`.
    Curly,
    /// `${{ secrets.VAR }}`.
    Template,
    /// By name in a list under this key: the client passes these variables on.
    NamesIn(&'static str),
}

/// A link that makes a client add a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Cursor,
    VsCode,
}

impl Client {
    /// Whether the workbench can write into a file of this client.
    pub fn can_be_written(&self) -> bool {
        self.name != ClientName::Roo
    }

    /// The word of the command line.
    pub fn word(&self) -> String {
        self.name.word()
    }
}

impl ClientName {
    /// The word of the command line.
    pub fn word(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .expect("no client is hidden")
    }
}
