//! The configuration as the rest of the program uses it: checked, expanded, in the order of the file, without
//! disabled servers. It is immutable; a reload creates a new one.

use std::{
    borrow::Cow,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ident::{ClientName, ServerName, ToolboxName};
use indexmap::IndexMap;
use url::Url;

use super::{
    as_client::ConfiguredClient, audit::Audit, auth::Auth, detail::Detail, filters::ToolFilters,
    limits::Limits, meta_tools::MetaTool, oauth::OAuth, permissions::Permissions, secrets::Secrets,
    sources::MissingValue, store::StoreAddress, written_entry::WrittenEntry,
};
use crate::{era::Era, jq::Filter, near::nearest, seal::SealKeys, visible::visible};

#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "keys of the file, each by itself"
)]
pub struct Config {
    /// The file, for messages.
    pub file: PathBuf,
    /// True if commands find this file from any directory without `--config`.
    pub is_default_file: bool,
    /// The tools in `tools/list`.
    pub tool_mode: ToolMode,
    /// The maximum length of a name under which dynamic mode registers a tool.
    pub tool_name_limit: usize,
    /// The folders, as URIs, for servers that ask for roots; `None` to ask the client.
    pub roots: Option<Vec<String>>,
    /// True if questions of servers name the server that asks; `None` if the mode decides.
    pub attribute_questions: Option<bool>,
    /// The toolboxes, in the order of the file.
    pub toolboxes: IndexMap<ToolboxName, Arc<Toolbox>>,
    /// The clients with toolboxes, permissions and a budget of their own.
    pub clients: IndexMap<ClientName, ConfiguredClient>,
    /// The limits of each principal over HTTP.
    pub limits: Limits,
    /// The authorization server whose tokens clients over HTTP need.
    pub auth: Option<Auth>,
    /// The keys of seals; `None` for a random one.
    pub(crate) seal: Option<SealKeys>,
    /// The address at which the other replicas reach this one.
    pub replica_address: Option<Url>,
    /// The store that replicas share.
    pub store: Option<StoreAddress>,
    /// The client that this configuration was made for; `None` for every other.
    pub client: Option<ClientName>,
    /// All toolboxes of the file, if `toolboxes` are those of a client.
    pub whole: Option<IndexMap<ToolboxName, Arc<Toolbox>>>,
    /// True if `use_tool` opens a toolbox that is not open.
    pub auto_open: bool,
    /// The time that an open waits for the other servers of a toolbox once one of them is up.
    pub open_wait: Duration,
    /// The enabled meta-tools, in the order of the file.
    pub meta_tools: Vec<MetaTool>,
    /// The default `detail` of `open_toolbox`.
    pub open_detail: Detail,
    pub select: Selecting,
    /// True if changes of the file are applied while the workbench runs.
    pub watch: bool,
    /// True if the clients of this machine share the servers.
    pub shared: bool,
    /// The folder in which the client was started.
    pub start_directory: PathBuf,
    /// The directory for files that can be recreated, if there is one.
    pub cache: Option<PathBuf>,
    /// The directory for files that cannot be recreated, if there is one.
    pub state: Option<PathBuf>,
    /// The audit log; `None` if it is off.
    pub audit: Option<Audit>,
    /// The lock file, which may not exist yet; `None` if the configuration is not a file.
    pub lock: Option<PathBuf>,
    /// The `pin` of the file, for entries without one.
    pub pin: PinMode,
    pub purpose: Purpose,
}

/// The right of callers to select a part of a result with a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selecting {
    Off,
    On,
}

/// The reason for starting servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Use,
    /// A call from a shell, which declares fewer capabilities than clients do. Servers may list fewer tools to it.
    Call,
    /// A review by `trust`, which also shows tools that may not be offered.
    Review,
}

impl Config {
    /// Returns whether questions of servers name the server that asks. Native mode is transparent unless configured.
    pub fn names_asker(&self) -> bool {
        let is_native = matches!(self.tool_mode, ToolMode::Native(_));
        self.attribute_questions.unwrap_or(!is_native)
    }

    /// Returns whether users have credentials of their own at one of the servers.
    pub(crate) fn has_user_credentials(&self) -> bool {
        let mut servers = self.toolboxes.values().flat_map(|it| it.servers.values());
        servers.any(|server| server.is_per_user())
    }

    /// Returns the toolboxes of the whole file, also those that the client does not get. Pins and secrets belong to the file.
    pub(crate) fn all_toolboxes(&self) -> impl Iterator<Item = &Toolbox> {
        let all = self.whole.as_ref().unwrap_or(&self.toolboxes);
        all.values().map(AsRef::as_ref)
    }
}

/// The way in which clients see tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolMode {
    Proxy,
    /// The meta-tools, and the tools of open toolboxes under names that we create.
    Dynamic,
    /// Everything that the servers of this toolbox have, under its own names, and no meta-tools.
    Native(ToolboxName),
}

/// A named set of servers.
#[derive(Debug, Clone)]
pub struct Toolbox {
    pub name: ToolboxName,
    /// The purpose, in the user's words; empty if there is no description.
    pub description: String,
    /// Its enabled servers, in the order of the file.
    pub servers: IndexMap<ServerName, Arc<Server>>,
    pub connect: Connect,
    /// The disabled servers, which are otherwise treated as missing.
    pub disabled: Vec<ServerName>,
}

/// The time at which the servers of a toolbox start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connect {
    #[default]
    OnOpen,
    /// At the first use of one of their tools, if these are known from an earlier start.
    OnUse,
}

/// A filter under `resultSelect` for a tool that the server does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownSelect<'a> {
    tool: &'a str,
    near: Option<&'a str>,
}

impl fmt::Display for UnknownSelect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = visible(self.tool);
        write!(
            f,
            "`resultSelect` has a filter for '{tool}', which is not a tool of the server"
        )?;
        match self.near {
            Some(near) => write!(f, " (did you mean '{}'?)", visible(near)),
            None => Ok(()),
        }
    }
}

/// One server of one toolbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: ServerName,
    /// The transport, or the reason why there is none.
    pub transport: Transport,
    /// The tools that are offered.
    pub filters: ToolFilters,
    /// The tools that may be called.
    pub permissions: Permissions,
    pub times: ServerTimes,
    /// The era; `None` if it is to be detected.
    pub era: Option<Era>,
    /// The maximum length of a result that is sent to a client at once; `None` to send results whole.
    pub max_result_chars: Option<usize>,
    /// The filters for results of calls without their own, by tool.
    pub(crate) result_select: IndexMap<String, Filter>,
    /// The bounds of its list of tools.
    pub list_bounds: ListBounds,
    /// True if hidden characters in its output are shown by number.
    pub sanitize: bool,
    /// The reaction to differences from the lock file.
    pub pin: PinMode,
    /// The clients that share it, if the file is shared.
    pub share: Share,
    /// True if the shapes of its results are learned.
    pub learn_shapes: bool,
    /// The entry as it is written in the file.
    pub written: WrittenEntry,
}

/// The clients that share a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Share {
    /// Those for which everything that defines the server is equal.
    #[default]
    Auto,
    /// All, if the values that the entry names are equal.
    Machine,
    /// Those that were started in one folder, if the values that the entry names are equal.
    Project,
    /// No other client.
    Client,
}

/// The reaction when a server, or one of its tools, differs from the lock file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PinMode {
    /// No reaction, and nothing is recorded.
    Off,
    /// The first contact is recorded; later changes are accepted and reported.
    #[default]
    Notice,
    /// Nothing is started or offered without approval.
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
    /// Returns the filters under `resultSelect` for tools that are not among these.
    pub(crate) fn unknown_selects<'a>(
        &'a self,
        tools: &'a [&'a str],
    ) -> impl Iterator<Item = UnknownSelect<'a>> {
        let filters = self.result_select.keys().map(String::as_str);
        let unknown = filters.filter(|name| !tools.contains(name));
        unknown.map(|tool| UnknownSelect {
            near: nearest(tool, tools.iter().copied()),
            tool,
        })
    }

    /// Returns whether every user has credentials of their own at the server.
    pub(crate) fn is_per_user(&self) -> bool {
        matches!(&self.transport, Transport::Remote(endpoint) if endpoint.oauth.is_per_user())
    }

    /// Returns the `envFile` of a program.
    pub fn env_file(&self) -> Option<&Path> {
        match &self.transport {
            Transport::Stdio(launch) => launch.environment.file.as_deref(),
            Transport::Remote(_) | Transport::Unset(_) => None,
        }
    }
}

/// The timeouts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerTimes {
    /// The time from the start of the process to its list of tools.
    pub connect: Duration,
    /// The time that a call may take without progress. A progress notification resets it.
    pub call: Duration,
    /// The total time that a call may take.
    pub max_call: Duration,
    /// The idle time after which the server is stopped; `None` means never.
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

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process that communicates over its stdin and stdout.
    Stdio(StdioLaunch),
    /// A server at a URL.
    Remote(RemoteEndpoint),
    /// An entry that refers to missing values. It fails alone when it is needed.
    Unset(Vec<Unset>),
}

/// The settings for starting a child process.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioLaunch {
    /// The program: a bare name to look up in the child's PATH, or an absolute path.
    pub command: String,
    pub args: Vec<String>,
    /// Its arguments as written, before variables were expanded.
    pub args_as_written: Vec<String>,
    /// The entry's `env` as written, before variables were expanded.
    pub env_as_written: IndexMap<String, String>,
    pub cwd: PathBuf,
    /// True if the entry names that directory; otherwise it is the one in which the workbench was started.
    pub names_cwd: bool,
    pub environment: ChildEnvironment,
    /// Values that came from variables and must not appear in messages.
    pub secrets: Secrets,
}

/// The variables of a child, in the order in which they override each other.
#[derive(PartialEq, Eq, Clone)]
pub struct ChildEnvironment {
    /// The variables that are passed on from our own environment: the safe set and `inheritEnv`.
    pub inherited: Vec<(OsString, OsString)>,
    /// The `envFile`, read at every start.
    pub file: Option<PathBuf>,
    /// The entry's `env`, which takes precedence.
    pub own: IndexMap<String, String>,
}

/// The settings for connecting to a remote server.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteEndpoint {
    pub url: String,
    /// The headers of every request.
    pub headers: IndexMap<String, String>,
    pub oauth: OAuth,
    /// The transport that the entry requests.
    pub protocol: RemoteProtocol,
    /// Values that came from variables and must not appear in messages.
    pub secrets: Secrets,
}

/// The transport of a remote server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteProtocol {
    /// Streamable HTTP, with a fallback to HTTP+SSE.
    Http,
    /// HTTP+SSE, because the entry requests it.
    Sse,
}

/// A missing value without which an entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unset {
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

/// Shows only the names of the variables.
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

/// Shows only the names of the headers.
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
