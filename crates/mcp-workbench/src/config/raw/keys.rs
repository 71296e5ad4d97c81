//! The keys of the file, as tables: ours, the spellings of other MCP clients, and the keys of other clients that have
//! no meaning here.

/// The keys of the whole file.
pub(super) const FILE_KEYS: &[&str] = &[
    "toolboxes",
    "clients",
    "limits",
    "auth",
    "seal",
    "replicaAddress",
    "store",
    "toolMode",
    "nativeToolbox",
    "toolNameLimit",
    "roots",
    "autoOpen",
    "openWaitMs",
    "metaTools",
    "openDetail",
    "connect",
    "watch",
    "shared",
    "maxResultChars",
    "select",
    "sanitize",
    "learnShapes",
    "attributeQuestions",
    "pin",
    "audit",
    "$schema",
];

/// The keys of a toolbox.
pub(super) const TOOLBOX_KEYS: &[&str] = &["description", "mcpServers", "connect"];

/// The keys that every toolbox should have. A toolbox without a description works, with a warning.
pub(super) const NEEDED_TOOLBOX_KEYS: &[&str] = &["description", "mcpServers"];

/// The keys of a client.
pub(super) const CLIENT_KEYS: &[&str] = &[
    "claims",
    "scopes",
    "toolboxes",
    "permissions",
    "maxResultChars",
    "limits",
];

pub(super) const LIMIT_KEYS: &[&str] = &[
    "requestsInFlight",
    "requestsPerSecond",
    "requestBurst",
    "bytesPerMinute",
];

pub(super) const AUTH_KEYS: &[&str] = &[
    "issuer",
    "audience",
    "resource",
    "algorithms",
    "scopes",
    "clientId",
    "clientSecret",
    "introspection",
];

pub(super) const INTROSPECTION_KEYS: &[&str] = &["clientId", "clientSecret"];

pub(super) const SEAL_KEYS: &[&str] = &["key", "previousKey"];

pub(super) const PERMISSION_KEYS: &[&str] = &["allow", "ask", "deny", "code"];

pub(super) const AUDIT_KEYS: &[&str] = &["file", "maxBytes", "files", "arguments"];

pub(super) const OAUTH_KEYS: &[&str] = &[
    "clientId",
    "clientSecret",
    "scopes",
    "callbackPort",
    "clientMetadataUrl",
    "account",
    "issuer",
    "grant",
    "per",
    "exchange",
    "privateKey",
    "signingAlgorithm",
];

pub(super) const EXCHANGE_KEYS: &[&str] = &["audience"];

/// Keys of other clients in `oauth` that we determine ourselves.
pub(super) const IGNORED_OAUTH_KEYS: &[&str] = &[
    "audiences",
    "authServerMetadataUrl",
    "authorizationUrl",
    "redirectUri",
    "registrationUrl",
    "tokenParamName",
    "tokenUrl",
];

/// A known key of a server entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKey {
    Command,
    Args,
    Env,
    Cwd,
    EnvFile,
    InheritEnv,
    Url,
    Headers,
    Type,
    Transport,
    ToolFilters,
    IncludeTools,
    ExcludeTools,
    DisabledTools,
    Permissions,
    Disabled,
    Enabled,
    Era,
    Pin,
    Share,
    ConnectTimeoutMs,
    CallTimeoutMs,
    MaxCallMs,
    IdleTimeoutMs,
    MaxResultChars,
    ResultSelect,
    MaxTools,
    MaxToolListBytes,
    Sanitize,
    OAuth,
}

/// The spellings of the known keys. If an entry has several spellings of one key, the first one of this list counts.
pub(super) const SPELLINGS: &[(ServerKey, &[&str])] = &[
    (ServerKey::Command, &["command", "cmd"]),
    (ServerKey::Args, &["args"]),
    (ServerKey::Env, &["env", "environment", "envs"]),
    (ServerKey::Cwd, &["cwd"]),
    (ServerKey::EnvFile, &["envFile"]),
    (ServerKey::InheritEnv, &["inheritEnv"]),
    (ServerKey::Url, &["httpUrl", "serverUrl", "url", "uri"]),
    (ServerKey::Headers, &["headers", "http_headers"]),
    (ServerKey::Type, &["type"]),
    (ServerKey::Transport, &["transport", "transportType"]),
    (ServerKey::ToolFilters, &["toolFilters"]),
    (
        ServerKey::IncludeTools,
        &["includeTools", "enabledTools", "enabled_tools"],
    ),
    (ServerKey::ExcludeTools, &["excludeTools"]),
    (
        ServerKey::DisabledTools,
        &["disabledTools", "disabled_tools"],
    ),
    (ServerKey::Permissions, &["permissions"]),
    (ServerKey::Disabled, &["disabled"]),
    (ServerKey::Enabled, &["enabled"]),
    (ServerKey::Era, &["era"]),
    (ServerKey::Pin, &["pin"]),
    (ServerKey::Share, &["share"]),
    (ServerKey::ConnectTimeoutMs, &["connectTimeoutMs"]),
    (ServerKey::CallTimeoutMs, &["callTimeoutMs"]),
    (ServerKey::MaxCallMs, &["maxCallMs"]),
    (ServerKey::IdleTimeoutMs, &["idleTimeoutMs"]),
    (ServerKey::MaxResultChars, &["maxResultChars"]),
    (ServerKey::ResultSelect, &["resultSelect"]),
    (ServerKey::MaxTools, &["maxTools"]),
    (ServerKey::MaxToolListBytes, &["maxToolListBytes"]),
    (ServerKey::Sanitize, &["sanitize"]),
    (ServerKey::OAuth, &["oauth"]),
];

/// Keys of popular clients that have no meaning here: approval and trust are the client's business, the units of
/// their timeouts differ, and the rest is for display.
pub(super) const IGNORED: &[&str] = &[
    "$schema",
    "alwaysAllow",
    "alwaysLoad",
    "approval",
    "auth",
    "authProviderType",
    "authorization_token",
    "autoApprove",
    "autoStart",
    "available_tools",
    "bearer_token_env_var",
    "bundled",
    "debug",
    "default_tools_approval_mode",
    "deferTools",
    "description",
    "dev",
    "displayName",
    "display_name",
    "env_http_headers",
    "env_keys",
    "env_vars",
    "extension",
    "filterMapping",
    "fromGalleryId",
    "gallery",
    "headersHelper",
    "icon",
    "id",
    "initTimeout",
    "initializationOptions",
    "isActive",
    "isDefaultServer",
    "label",
    "metadata",
    "name",
    "networkTimeout",
    "note",
    "oauthClientId",
    "oauthPublicClient",
    "oauth_resource",
    "provider",
    "remote",
    "requestInit",
    "requestOptions",
    "required",
    "sandbox",
    "sandboxEnabled",
    "scopes",
    "settings",
    "source",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "supports_parallel_tool_calls",
    "tags",
    "targetAudience",
    "targetServiceAccount",
    "timeout",
    "title",
    "tool_timeout_sec",
    "tools",
    "trust",
    "version",
    "watchPaths",
];

/// The meaning of a key of a server entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKeyMeaning {
    /// A known key; the number is the rank of its spelling, 0 being the best.
    Understood(ServerKey, usize),
    /// A note, or a key of another client.
    Ignored,
    Unknown,
}

/// Returns the meaning of a key of a server entry.
pub(super) fn meaning(key: &str) -> ServerKeyMeaning {
    for (understood, spellings) in SPELLINGS {
        if let Some(rank) = spellings.iter().position(|spelling| *spelling == key) {
            return ServerKeyMeaning::Understood(*understood, rank);
        }
    }
    if is_note(key) || IGNORED.contains(&key) {
        ServerKeyMeaning::Ignored
    } else {
        ServerKeyMeaning::Unknown
    }
}

/// Returns whether a key is a note of the user.
pub(super) fn is_note(key: &str) -> bool {
    key.starts_with('_')
}

/// Returns the keys of a server entry that a misspelled one may mean.
pub(super) fn understood() -> impl Iterator<Item = &'static str> {
    SPELLINGS
        .iter()
        .flat_map(|(_, spellings)| spellings.iter().copied())
}
