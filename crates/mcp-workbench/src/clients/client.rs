//! Descriptions of MCP clients: their files, formats and the spelling of their entries. The clients themselves
//! are in `table.rs`, their limits in `limits.rs`.

use clap::ValueEnum;

/// A known client, with its name on the command line.
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

/// The description of a client.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    pub name: ClientName,
    pub title: &'static str,
    /// Its files, the one to write first. All that exist are read.
    pub files: &'static [ClientFile],
    /// The format of the files.
    pub format: Format,
    /// The path of keys to the servers.
    pub key: &'static [&'static str],
    /// The layout of the servers under that key.
    pub listing: ServerLayout,
    /// The spelling of our entry.
    pub spelling: Spelling,
    /// The syntax of references to variables.
    pub interpolation: Interpolation,
    /// The kind of link that makes the client add a server.
    pub link: Option<Link>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFile {
    pub scope: Scope,
    /// The systems that have it.
    pub systems: &'static [System],
    /// The folder that the path is relative to.
    pub base: Base,
    /// The path, with `/` as separator.
    pub path: &'static str,
}

/// The scope of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All work of a user.
    User,
    /// Work in one directory.
    Project,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are known")]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// The system that this program was built for. Everything but Windows and macOS counts as Linux.
    pub const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// The folder that a path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    Home,
    /// The folder of a variable, or else this path in the home directory.
    Variable {
        name: &'static str,
        /// The path in the home directory.
        otherwise: &'static str,
    },
    /// `$XDG_CONFIG_HOME`, or `.config` in the home directory, on every system.
    Config,
    /// The application data folder: `$XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application Support`,
    /// `%APPDATA%`.
    AppData,
    /// The directory in which the workbench was started.
    Project,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// The layout of the servers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerLayout {
    /// A map from names to entries.
    Map,
    /// The same, and once more per project under `projects`.
    MapAndProjects,
    /// A list of entries with a `name`.
    List,
}

/// The spelling of our entry in a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    /// The keys of program and arguments.
    pub command: CommandSpelling,
    /// The key of the environment variables.
    pub env: &'static str,
    /// Further keys with constant values.
    pub always: &'static [(&'static str, Constant)],
}

/// The keys of program and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandSpelling {
    CommandAndArgs,
    CmdAndArgs,
    /// `command` is a list of both.
    Line,
}

/// A constant value of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// The name of the server.
    Name,
    Text(&'static str),
    True,
    Texts(&'static [&'static str]),
}

/// The syntax of a reference to a variable that the client expands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpolation {
    /// The client expands no variables.
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
    /// Names in a list under this key; the client passes these variables on.
    NamesIn(&'static str),
}

/// A link that makes a client add a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Cursor,
    VsCode,
}

impl Client {
    /// Returns true if the workbench can write a file of this client.
    pub fn can_be_written(&self) -> bool {
        self.name != ClientName::Roo
    }

    /// Returns the name on the command line.
    pub fn word(&self) -> String {
        self.name.word()
    }
}

impl ClientName {
    /// Returns the name on the command line.
    pub fn word(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .expect("no client is hidden")
    }
}
