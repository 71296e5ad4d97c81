//! The configuration as the rest of the program uses it: checked, expanded, in the order of the
//! file, without the servers that are disabled. It is immutable; a reload makes a new one.

use std::{
    borrow::Cow,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use indexmap::IndexMap;

use super::{
    audit::Audit, detail::Detail, filters::ToolFilters, meta_tools::MetaTool, oauth::OAuth,
    permissions::Permissions, secrets::Secrets, sources::MissingValue, written::Written,
};
use crate::{
    era::Era,
    ident::{ServerName, ToolboxName},
};

#[derive(Debug)]
pub struct Config {
    /// The file it came from, for messages.
    pub file: PathBuf,
    /// Whether commands find this file wherever they are run, without being told.
    pub is_usual: bool,
    /// What `tools/list` holds.
    pub tool_mode: ToolMode,
    /// The longest name under which dynamic mode registers a tool.
    pub tool_name_limit: usize,
    /// The folders that servers are told of which ask for roots, as URIs; nothing if the client is to
    /// be asked.
    pub roots: Option<Vec<String>>,
    /// Whether questions of servers name the server that asks; nothing if that depends on the mode.
    pub attribute_questions: Option<bool>,
    /// The toolboxes, in the order of the file.
    pub toolboxes: IndexMap<ToolboxName, Arc<Toolbox>>,
    /// Whether `use_tool` opens a toolbox that is not open.
    pub auto_open: bool,
    /// How long an open waits for the other servers of a toolbox once one of them is up.
    pub open_wait: Duration,
    /// The tools of our own that clients see, in the order of the file.
    pub meta_tools: Vec<MetaTool>,
    /// How much `open_toolbox` says of each tool if a call does not choose.
    pub open_detail: Detail,
    /// Whether changes of the file are taken up while the workbench runs.
    pub watch: bool,
    /// Where the workbench keeps what it could find out again, if there is such a place.
    pub cache: Option<PathBuf>,
    /// Where the workbench keeps what cannot be found out again, if there is such a place.
    pub state: Option<PathBuf>,
    /// Where calls are noted; nothing if they are not.
    pub audit: Option<Audit>,
    /// The lock file, which is there or may be made; nothing where the configuration is no file.
    pub lock: Option<PathBuf>,
    /// The `pin` of the file, for entries without one of their own.
    pub pin: PinMode,
    /// What servers are started for.
    pub purpose: Purpose,
}

/// What servers are started for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Use,
    /// To be looked at by `trust`, which shows what may not be offered.
    Review,
}

impl Config {
    /// Returns whether questions of servers name the server that asks. Native mode is transparent unless configured.
    pub fn names_asker(&self) -> bool {
        let is_native = matches!(self.tool_mode, ToolMode::Native(_));
        self.attribute_questions.unwrap_or(!is_native)
    }
}

/// How tools are shown to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolMode {
    Proxy,
    /// The meta-tools, and the tools of opened toolboxes under names of ours.
    Dynamic,
    /// Everything that the servers of this toolbox have, under its own names, and no meta-tools.
    Native(ToolboxName),
}

/// A named set of servers.
#[derive(Debug)]
pub struct Toolbox {
    pub name: ToolboxName,
    /// What it is for, in the user's words; empty if they have not said it.
    pub description: String,
    /// Its enabled servers, in the order of the file.
    pub servers: IndexMap<ServerName, Arc<Server>>,
    /// When its servers are started.
    pub connect: Connect,
    /// The servers that are switched off, which are otherwise as if they were not there.
    pub disabled: Vec<ServerName>,
}

/// When the servers of a toolbox are started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connect {
    #[default]
    OnOpen,
    /// At the first use of one of their tools, if these are known from an earlier start.
    OnUse,
}

/// One server of one toolbox.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    pub name: ServerName,
    /// How it is reached, or why it cannot be.
    pub transport: Transport,
    /// Which of its tools are offered.
    pub filters: ToolFilters,
    /// Which of them may be called.
    pub permissions: Permissions,
    /// The limits on its time.
    pub times: ServerTimes,
    /// How it speaks; nothing if that is to be found out.
    pub era: Option<Era>,
    /// The most characters of a result that a client is sent at once; nothing if results are sent whole.
    pub max_result_chars: Option<usize>,
    /// The bounds of its list of tools.
    pub list_bounds: ListBounds,
    /// Whether hidden characters in what it answers are shown.
    pub sanitize: bool,
    /// What is done when it is not what the lock file has.
    pub pin: PinMode,
    /// How it is reached, as the file has it.
    pub written: Written,
}

/// What is done when a server, or one of its tools, is not what the lock file has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PinMode {
    /// Nothing, and nothing is recorded.
    Off,
    /// The first contact is recorded; what changes later is taken up and told.
    #[default]
    Notice,
    /// Nothing is started or offered that was not approved.
    Enforce,
}

impl PinMode {
    /// Returns the word for it in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Notice => "notice",
            Self::Enforce => "enforce",
        }
    }
}

impl Server {
    /// The `envFile` of a program.
    pub fn env_file(&self) -> Option<&Path> {
        match &self.transport {
            Transport::Stdio(launch) => launch.environment.file.as_deref(),
            Transport::Remote(_) | Transport::Unset(_) => None,
        }
    }
}

/// The limits on a server's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTimes {
    /// From the start of the process to its list of tools.
    pub connect: Duration,
    /// How long a call may stay silent; progress starts it anew.
    pub call: Duration,
    /// How long a call may take in all.
    pub max_call: Duration,
    /// After how long without a call the server is stopped; `None` means never.
    pub idle: Option<Duration>,
}

/// The bounds of a list of a server. Reading stops at the first that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListBounds {
    pub tools: usize,
    /// The size of all pages, in bytes.
    pub bytes: usize,
}

impl Default for ListBounds {
    /// Twice as many tools as the largest servers have, in as many bytes as one message may have.
    fn default() -> Self {
        Self {
            tools: 10_000,
            bytes: 16 * 1024 * 1024,
        }
    }
}

/// How a server is reached.
#[derive(Debug, PartialEq, Eq)]
pub enum Transport {
    /// A child process that speaks over its stdin and stdout.
    Stdio(StdioLaunch),
    /// A server at a URL.
    Remote(RemoteEndpoint),
    /// An entry that refers to values which are not there: it fails alone when it is needed.
    Unset(Vec<Unset>),
}

/// What is needed to start a child process.
#[derive(PartialEq, Eq)]
pub struct StdioLaunch {
    /// The program: a bare name to be looked up in the child's PATH, or an absolute path.
    pub command: String,
    pub args: Vec<String>,
    /// Its arguments as the file has them, before variables were expanded.
    pub args_as_written: Vec<String>,
    /// The entry's `env` as the file has it, before variables were expanded.
    pub env_as_written: IndexMap<String, String>,
    /// The directory it runs in.
    pub cwd: PathBuf,
    /// Whether the entry names that directory; else it is the one that the workbench was started in.
    pub names_cwd: bool,
    pub environment: ChildEnvironment,
    /// Values that came from variables and must not appear in messages.
    pub secrets: Secrets,
}

/// The variables of a child, in the order in which they override each other.
#[derive(PartialEq, Eq, Clone)]
pub struct ChildEnvironment {
    /// What is passed on from our own environment: the safe set and `inheritEnv`.
    pub inherited: Vec<(OsString, OsString)>,
    /// The `envFile`, read at every start.
    pub file: Option<PathBuf>,
    /// The entry's `env`, which wins.
    pub own: IndexMap<String, String>,
}

/// What is needed to reach a remote server.
#[derive(PartialEq, Eq)]
pub struct RemoteEndpoint {
    pub url: String,
    /// The headers that every request carries.
    pub headers: IndexMap<String, String>,
    /// Whether and how the workbench signs in to it.
    pub oauth: OAuth,
    /// The transport that the entry asks for.
    pub protocol: RemoteProtocol,
    /// Values that came from variables and must not appear in messages.
    pub secrets: Secrets,
}

/// The transport of a remote server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteProtocol {
    /// Streamable HTTP, and HTTP+SSE where the server has nothing newer.
    Http,
    /// HTTP+SSE, because the entry says so.
    Sse,
}

/// A value without which an entry is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unset {
    /// What is not there.
    pub value: MissingValue,
    /// The place in the configuration that needs it, such as `toolboxes.y.mcpServers.x.env.TOKEN`.
    pub path: String,
}

impl fmt::Display for Unset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.value, self.path)
    }
}

impl fmt::Debug for StdioLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args: Vec<Cow<'_, str>> = self.args.iter().map(|it| self.secrets.redact(it)).collect();
        f.debug_struct("StdioLaunch")
            .field("command", &self.secrets.redact(&self.command))
            .field("args", &args)
            .field("cwd", &self.cwd)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

/// Shows the names of the variables only.
impl fmt::Debug for ChildEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inherited: Vec<&OsString> = self.inherited.iter().map(|(name, _)| name).collect();
        f.debug_struct("ChildEnvironment")
            .field("inherited", &inherited)
            .field("file", &self.file)
            .field("own", &self.own.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Shows the names of the headers only.
impl fmt::Debug for RemoteEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEndpoint")
            .field("url", &self.secrets.redact(&self.url))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("protocol", &self.protocol)
            .field("oauth", &self.oauth)
            .finish_non_exhaustive()
    }
}
