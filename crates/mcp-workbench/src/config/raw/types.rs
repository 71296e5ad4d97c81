//! The types of the file as written. Their doc comments are the descriptions in the JSON Schema, so they address the
//! person who writes the file.

use std::ops::RangeInclusive;

use indexmap::IndexMap;
#[cfg(test)]
use schemars::JsonSchema;

use super::{auth::RawAuth, limits::RawLimits, oauth::RawOAuth, seal::RawSeal};
use crate::config::{detail::Detail, meta_tools::MetaTool, problems::SourceLocation};

/// The bounds of `toolNameLimit`: room for a hash, and what the protocol allows.
pub(super) const NAME_LIMITS: RangeInclusive<u64> = 16..=128;

/// The bounds of `maxBytes` of `audit`.
pub(super) const AUDIT_BYTES: RangeInclusive<u64> = 65_536..=1_073_741_824;

/// The bounds of `files` of `audit`.
pub(super) const AUDIT_FILES: RangeInclusive<u64> = 1..=100;

/// The bounds of `openWaitMs`: an open waits for 45 s in all.
pub(super) const OPEN_WAITS: RangeInclusive<u64> = 1..=45_000;

/// The maximum number of milliseconds of a timeout: a year.
pub(super) const MAX_TIMEOUT_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// The bounds of `maxResultChars` if it is not 0: enough to show something, and more than any result has.
pub(super) const BUDGETS: RangeInclusive<u64> = 100..=100_000_000;

/// The bounds of `maxTools`.
pub(super) const TOOLS: RangeInclusive<u64> = 1..=100_000;

/// The bounds of `maxToolListBytes`: enough for a few tools, and as much as a process should hold of one server.
pub(super) const TOOL_LIST_BYTES: RangeInclusive<u64> = 1024..=1_073_741_824;

/// The configuration of MCP Workbench. Comments and trailing commas are allowed; keys that begin
/// with `_` are notes.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    title = "MCP Workbench configuration",
    rename = "Config",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false)
))]
#[expect(dead_code, reason = "`$schema` is for editors and read by nobody here")]
pub(in crate::config) struct RawConfig {
    /// The address of this schema, for editors.
    #[cfg_attr(test, schemars(rename = "$schema"))]
    pub(super) schema: Option<String>,
    /// The toolboxes by name, in the order in which they are shown.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "\\S"})))]
    pub(in crate::config) toolboxes: IndexMap<String, RawToolbox>,
    /// Clients by name, each with toolboxes, permissions and a budget of its own. A client gets its name by `--as NAME`, or
    /// by the token that it has over HTTP.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "\\S"})))]
    pub(in crate::config) clients: Option<IndexMap<String, RawClient>>,
    /// The limits of each user, or holder of a token, over HTTP.
    pub(in crate::config) limits: Option<RawLimits>,
    /// The authorization server whose tokens clients over HTTP need.
    pub(in crate::config) auth: Option<RawAuth>,
    /// The key that seals what clients and stores hold for the workbench, equal on all replicas. Without it, each process
    /// has a random one.
    pub(in crate::config) seal: Option<RawSeal>,
    /// The address at which the other replicas reach this one, such as `http://${POD_IP}:8700`; port 0 is the one that it listens on. Requests that belong to a call
    /// which is parked here are forwarded to it.
    pub(in crate::config) replica_address: Option<Text>,
    /// The Redis in which replicas share what they hold for clients, such as `redis://:${REDIS_PASSWORD}@redis:6379`,
    /// `redis+sentinel://HOST:26379,HOST:26379/PRIMARY` or `redis+cluster://HOST:6379,HOST:6379`; `rediss` for TLS.
    pub(in crate::config) store: Option<Text>,
    /// The way in which the client sees tools.
    #[cfg_attr(test, schemars(extend("default" = "proxy")))]
    pub(in crate::config) tool_mode: Option<RawToolMode>,
    /// The toolbox that is shown in native mode.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(in crate::config) native_toolbox: Option<Text>,
    /// The folders, as paths or `file://` URLs, for servers that ask for roots. Without it the client is asked.
    /// Variables are expanded.
    pub(in crate::config) roots: Option<Vec<Text>>,
    /// The maximum length of a name under which dynamic mode registers a tool.
    #[cfg_attr(test, schemars(range(min = 16, max = 128), extend("default" = 64)))]
    pub(in crate::config) tool_name_limit: Option<u64>,
    /// Let `use_tool` open a toolbox that is not open.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(in crate::config) auto_open: Option<bool>,
    /// The time, in milliseconds, that `open_toolbox` waits for the other servers of a toolbox once one of them is
    /// up. Servers that need longer keep starting in the background.
    #[cfg_attr(test, schemars(range(min = 1, max = 45_000), extend("default" = 15_000)))]
    pub(in crate::config) open_wait_ms: Option<u64>,
    /// The tools of the workbench itself that the client sees: `use_tool`, one or both of `open_toolbox` and
    /// `search_tools`, `read_result` if results are bounded by `maxResultChars`, and `run_code` for scripts. Native mode
    /// has none.
    #[cfg_attr(test, schemars(
        length(min = 2),
        extend("uniqueItems" = true, "default" = ["open_toolbox", "use_tool"])
    ))]
    pub(in crate::config) meta_tools: Option<Vec<MetaTool>>,
    /// The default `detail` of `open_toolbox`. `compact` has what a model needs for a call, `full` has everything that the
    /// servers send.
    #[cfg_attr(test, schemars(extend("default" = "full")))]
    pub(in crate::config) open_detail: Option<Detail>,
    /// The time at which servers start, for toolboxes without their own `connect`.
    #[cfg_attr(test, schemars(extend("default" = "on-open")))]
    pub(in crate::config) connect: Option<RawConnect>,
    /// Apply changes of this file while the workbench runs.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(in crate::config) watch: Option<bool>,
    /// Let all clients on this machine that use this file share one set of servers.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(in crate::config) shared: Option<bool>,
    /// The maximum number of characters of a result that a client is sent at once; the rest is read in pages. With 0,
    /// or without it, results are sent whole. A server may have its own.
    #[cfg_attr(test, schemars(extend("anyOf" = [{"const": 0}, {"minimum": 100, "maximum": 100_000_000}], "default" = 0)))]
    pub(in crate::config) max_result_chars: Option<u64>,
    /// Let callers of `use_tool` and `read_result` select a part of a result with a jq filter.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(in crate::config) select: Option<bool>,
    /// Show hidden characters in the output of servers (escape sequences, control characters, characters that change
    /// the direction of text, and the TAG block) by number, such as `⟦U+001B⟧`. A server may have its own.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(in crate::config) sanitize: Option<bool>,
    /// Learn the shapes of results, without values, and show them in the signatures of tools that declare no `outputSchema`.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(in crate::config) learn_shapes: Option<bool>,
    /// Begin the message of an elicitation with a line that names the server that asks. Without it, this is on in
    /// proxy and dynamic mode.
    pub(in crate::config) attribute_questions: Option<bool>,
    /// The reaction when a server, or one of its tools, differs from the lock file.
    #[cfg_attr(test, schemars(extend("default" = "notice")))]
    pub(in crate::config) pin: Option<RawPin>,
    /// The audit log of tool calls: `true`, or its settings.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(in crate::config) audit: Option<RawAudit>,
}

/// The part of the configuration that one client gets.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Client",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false)
))]
pub(in crate::config) struct RawClient {
    /// The users that it stands for over HTTP: the claims that their tokens must have, by name and value. A claim that
    /// is a list must contain the value, and a claim inside another is named with dots, such as `realm_access.roles`.
    pub(in crate::config) claims: Option<IndexMap<String, Text>>,
    /// The scopes that the tokens of these users must have.
    pub(in crate::config) scopes: Option<Vec<Text>>,
    /// The names of its toolboxes. Without it, all.
    pub(in crate::config) toolboxes: Option<Vec<Text>>,
    /// Rules for the tools of all of its servers, besides the rules of each server. The stricter counts.
    pub(in crate::config) permissions: Option<RawPermissions>,
    /// The maximum number of characters of a result that it is sent at once, in place of that of the servers.
    #[cfg_attr(test, schemars(extend("anyOf" = [{"const": 0}, {"minimum": 100, "maximum": 100_000_000}])))]
    pub(in crate::config) max_result_chars: Option<u64>,
    /// Its limits over HTTP. A key that is missing here counts as in the `limits` of the file.
    pub(in crate::config) limits: Option<RawLimits>,
}

/// Turns the audit log of tool calls on or off, or configures it.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Audit", untagged))]
pub(in crate::config) enum RawAudit {
    /// A log with the defaults (`true`), or none (`false`).
    Enabled(bool),
    /// A log with these settings.
    Details(RawAuditDetails),
}

/// The settings of the audit log.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "AuditDetails",
    rename_all = "camelCase",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false)
))]
pub(in crate::config) struct RawAuditDetails {
    /// The file, relative to the configuration's folder. Without it, `audit.jsonl` in your state directory.
    pub(in crate::config) file: Option<Text>,
    /// The size at which the file is rotated.
    #[cfg_attr(test, schemars(range(min = 65_536, max = 1_073_741_824), extend("default" = 10_485_760)))]
    pub(in crate::config) max_bytes: Option<u64>,
    /// The total number of files.
    #[cfg_attr(test, schemars(range(min = 1, max = 100), extend("default" = 5)))]
    pub(in crate::config) files: Option<u64>,
    /// The part of the arguments that is logged.
    #[cfg_attr(test, schemars(extend("default" = "shape")))]
    pub(in crate::config) arguments: Option<RawAuditArguments>,
}

/// The part of the arguments that is logged: `shape` is their names and types, `values` is everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "AuditArguments", rename_all = "camelCase"))]
pub(in crate::config) enum RawAuditArguments {
    Shape,
    Values,
}

/// The tools that may be called: `deny` is applied before `ask`, and `ask` before `allow`. An entry is a tool name in
/// which `*` matches any characters, or `@readOnly` or `@destructive`, which use the hints of the server.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Permissions",
    extend("patternProperties" = {"^_": true}, "additionalProperties" = false)
))]
pub(in crate::config) struct RawPermissions {
    /// Tools that run without asking. If this list exists, the user is asked about all others.
    pub(in crate::config) allow: Option<Vec<Text>>,
    /// Tools that the user is asked about before each call.
    pub(in crate::config) ask: Option<Vec<Text>>,
    /// Tools that are neither listed nor run.
    pub(in crate::config) deny: Option<Vec<Text>>,
    /// Tools that scripts of `run_code` may call. Without it, all that their server does not mark as destructive.
    pub(in crate::config) code: Option<Vec<Text>>,
}

/// The way in which the client sees tools: `proxy` shows only the meta-tools; `dynamic` also registers the tools of
/// open toolboxes under names of their own; `native` shows everything that the servers of `nativeToolbox` have, and
/// no meta-tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "ToolMode", rename_all = "camelCase"))]
pub(in crate::config) enum RawToolMode {
    Proxy,
    Dynamic,
    Native,
}

/// The time at which servers start: `on-open` when their toolbox is opened, `on-use` at the first use of one of their
/// tools, if these are known from an earlier start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Connect", rename_all = "kebab-case"))]
pub(in crate::config) enum RawConnect {
    OnOpen,
    OnUse,
}

/// The era of a server: `legacy` begins with `initialize` (the revisions up to 2025-11-25), in `modern` every request
/// is self-contained (2026-07-28), and `auto` detects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Era", rename_all = "camelCase"))]
pub(in crate::config) enum RawEra {
    Auto,
    Legacy,
    Modern,
}

/// The reaction when a server, or one of its tools, differs from the lock file beside this file: with `notice` the
/// change is accepted and reported; with `enforce` nothing is offered without approval by `mcp-workbench trust`;
/// `off` keeps no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Pin", rename_all = "camelCase"))]
pub(in crate::config) enum RawPin {
    Off,
    Notice,
    Enforce,
}

/// The clients that share a server, if the file is shared: with `auto` those for which everything that defines the
/// server is equal; with `machine` all clients, and with `project` those that were started in one folder, if the values
/// that the entry names are equal; with `client` none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Share", rename_all = "camelCase"))]
pub(in crate::config) enum RawShare {
    Auto,
    Machine,
    Project,
    Client,
}

/// A named set of servers.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(
    rename = "Toolbox",
    rename_all = "camelCase",
    extend("patternProperties" = {"^(_|\\$schema$)": true}, "additionalProperties" = false)
))]
pub(in crate::config) struct RawToolbox {
    /// The purpose of the toolbox, by which the model chooses. Variables are expanded. Without it the toolbox is
    /// listed by its name only.
    #[cfg_attr(test, schemars(extend("pattern" = "\\S")))]
    pub(in crate::config) description: Option<Text>,
    /// The servers by name, in the order in which they are shown.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "\\S"})))]
    pub(in crate::config) mcp_servers: IndexMap<String, RawServer>,
    /// The time at which the servers start. Without it, the `connect` of the file applies.
    pub(in crate::config) connect: Option<RawConnect>,
}

/// One server: a program (`command`) or a remote one (`url`). Variables are expanded in every
/// string. Entries from the configurations of other MCP clients work; their other keys are ignored.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Server", rename_all = "camelCase"))]
pub(in crate::config) struct RawServer {
    /// The program to start, or the program and its first arguments. A path with a slash is relative
    /// to the file's folder; a bare name is looked up in PATH.
    pub(in crate::config) command: Option<RawCommand>,
    /// The arguments of the program.
    pub(in crate::config) args: Option<Vec<Text>>,
    /// Variables for the program.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "\\S"})))]
    pub(in crate::config) env: Option<IndexMap<String, Text>>,
    /// The working directory of the program, relative to the file's folder. Without it, the directory in which the
    /// workbench was started.
    pub(in crate::config) cwd: Option<Text>,
    /// A file of `KEY=VALUE` lines, relative to the file's folder. `env` takes precedence.
    pub(in crate::config) env_file: Option<Text>,
    /// The variables of the workbench that the program gets besides a safe set: all (`true`), or those listed (`*`
    /// matches any characters).
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(in crate::config) inherit_env: Option<RawInheritEnv>,
    /// The URL of a remote server.
    pub(in crate::config) url: Option<Text>,
    /// The headers of every request to a remote server.
    pub(in crate::config) headers: Option<IndexMap<String, Text>>,
    /// `stdio` for a program; `http` or `sse` for a remote server. Usually not needed.
    #[cfg_attr(test, schemars(rename = "type"))]
    pub(in crate::config) kind: Option<Text>,
    /// Another name for `type`.
    pub(in crate::config) transport: Option<Text>,
    /// The tools that are offered: names, `*` for any characters, `!` to exclude tools. Without it, all; `[]` means
    /// none.
    pub(in crate::config) tool_filters: Option<Vec<Text>>,
    /// Exact names of the only tools that are offered.
    pub(in crate::config) include_tools: Option<Vec<Text>>,
    /// Exact names of tools that are not offered.
    pub(in crate::config) exclude_tools: Option<Vec<Text>>,
    /// Exact names of tools that are not offered.
    pub(in crate::config) disabled_tools: Option<Vec<Text>>,
    /// `true` disables the server.
    pub(in crate::config) disabled: Option<bool>,
    /// `false` disables the server.
    pub(in crate::config) enabled: Option<bool>,
    /// The tools that may be called, and those that the user is asked about. Without it, all may be called.
    pub(in crate::config) permissions: Option<RawPermissions>,
    /// The era of the server. It is detected at the first start and remembered; set it only if the detection is
    /// wrong.
    #[cfg_attr(test, schemars(extend("default" = "auto")))]
    pub(in crate::config) era: Option<RawEra>,
    /// The reaction when the server, or one of its tools, differs from the lock file. Without it, the `pin` of the
    /// file applies.
    pub(in crate::config) pin: Option<RawPin>,
    /// The clients that share the server, if the file is shared.
    #[cfg_attr(test, schemars(extend("default" = "auto")))]
    pub(in crate::config) share: Option<RawShare>,
    /// The time that the server may take to start, in milliseconds.
    #[cfg_attr(test, schemars(range(min = 1, max = 31_536_000_000_u64), extend("default" = 120_000)))]
    pub(in crate::config) connect_timeout_ms: Option<u64>,
    /// The time that a call may take without progress, in milliseconds. A progress notification resets it.
    #[cfg_attr(test, schemars(range(min = 1, max = 31_536_000_000_u64), extend("default" = 600_000)))]
    pub(in crate::config) call_timeout_ms: Option<u64>,
    /// The total time that a call may take, in milliseconds.
    #[cfg_attr(test, schemars(range(min = 1, max = 31_536_000_000_u64), extend("default" = 3_600_000)))]
    pub(in crate::config) max_call_ms: Option<u64>,
    /// The idle time, in milliseconds, after which the server is stopped until its next use. Without it, never.
    #[cfg_attr(test, schemars(range(min = 1, max = 31_536_000_000_u64)))]
    pub(in crate::config) idle_timeout_ms: Option<u64>,
    /// The maximum number of characters of a result of this server that a client is sent at once; 0 for all. Without
    /// it, the `maxResultChars` of the file applies.
    #[cfg_attr(test, schemars(extend("anyOf" = [{"const": 0}, {"minimum": 100, "maximum": 100_000_000}])))]
    pub(in crate::config) max_result_chars: Option<u64>,
    /// jq filters by tool name, for results of calls without a filter of their own. A client gets what they select; the
    /// whole result can be read for a while.
    #[cfg_attr(test, schemars(extend("propertyNames" = {"pattern": "\\S"})))]
    pub(in crate::config) result_select: Option<IndexMap<String, Text>>,
    /// The maximum number of tools of this server. Further ones are not listed, and `open_toolbox` reports this in
    /// `_errors`.
    #[cfg_attr(test, schemars(range(min = 1, max = 100_000), extend("default" = 10_000)))]
    pub(in crate::config) max_tools: Option<u64>,
    /// The maximum size of the tool list of this server, in bytes. Reading stops there: the tools that fit are
    /// listed, and `open_toolbox` reports this in `_errors`.
    #[cfg_attr(test, schemars(range(min = 1024, max = 1_073_741_824_u64), extend("default" = 16_777_216)))]
    pub(in crate::config) max_tool_list_bytes: Option<u64>,
    /// Show hidden characters in the output of this server by number. Without it, the `sanitize` of the file applies.
    pub(in crate::config) sanitize: Option<bool>,
    /// Sign-in to a remote server: `false` turns it off. Without it, the workbench signs in if the server asks for it
    /// and the entry has no credentials of its own.
    pub(in crate::config) oauth: Option<RawOAuth>,
    /// The place of the entry, and which of its decisive keys are present, valid or not.
    #[cfg_attr(test, schemars(skip))]
    pub(in crate::config) presence: Presence,
}

/// Facts about an entry that are known even if its values are wrong, so that one mistake is not reported as two.
#[derive(Debug, Clone)]
pub(in crate::config) struct Presence {
    pub(in crate::config) place: SourceLocation,
    pub(in crate::config) command: bool,
    pub(in crate::config) url: bool,
}

/// The program to start, or the program followed by its first arguments.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "Command", untagged))]
pub(in crate::config) enum RawCommand {
    /// The program.
    Program(#[cfg_attr(test, schemars(extend("pattern" = "\\S")))] Text),
    /// The program, followed by its first arguments.
    Line(#[cfg_attr(test, schemars(length(min = 1)))] Vec<Text>),
}

/// All variables or none, or the names of some.
#[derive(Debug)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(rename = "InheritEnv", untagged))]
pub(in crate::config) enum RawInheritEnv {
    /// All, or none but the safe set.
    All(bool),
    /// Names; `*` matches any characters.
    Names(Vec<Text>),
}

/// A string of the file, in which variables may be expanded, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Text {
    pub(in crate::config) written: String,
    pub(in crate::config) place: SourceLocation,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            place: SourceLocation::whole_file(),
            command: false,
            url: false,
        }
    }
}
