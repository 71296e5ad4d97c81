//! The keys of the file, as tables: ours, the other spellings that MCP clients have for them, and
//! what those clients write that means nothing here.

/// The keys of the whole file.
pub(super) const FILE_KEYS: &[&str] = &[
    "toolboxes",
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
    "maxResultChars",
    "sanitize",
    "attributeQuestions",
    "pin",
    "audit",
    "$schema",
];

/// The keys of a toolbox.
pub(super) const TOOLBOX_KEYS: &[&str] = &["description", "mcpServers", "connect"];

/// Those that every toolbox should have. Without a description it works, with a warning.
pub(super) const NEEDED_TOOLBOX_KEYS: &[&str] = &["description", "mcpServers"];

/// The keys of `permissions`.
pub(super) const PERMISSION_KEYS: &[&str] = &["allow", "ask", "deny"];

/// The keys of `audit`.
pub(super) const AUDIT_KEYS: &[&str] = &["file", "maxBytes", "files", "arguments"];

/// The keys of `oauth`.
pub(super) const OAUTH_KEYS: &[&str] = &[
    "clientId",
    "clientSecret",
    "scopes",
    "callbackPort",
    "clientMetadataUrl",
    "account",
    "issuer",
    "grant",
    "privateKey",
    "signingAlgorithm",
];

/// What other clients write in `oauth` that is found out here.
pub(super) const IGNORED_OAUTH_KEYS: &[&str] = &[
    "audiences",
    "authServerMetadataUrl",
    "authorizationUrl",
    "redirectUri",
    "registrationUrl",
    "tokenParamName",
    "tokenUrl",
];

/// A key of a server entry that is understood.
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
    ConnectTimeoutMs,
    CallTimeoutMs,
    MaxCallMs,
    IdleTimeoutMs,
    MaxResultChars,
    MaxTools,
    MaxToolListBytes,
    Sanitize,
    OAuth,
}

/// The spellings of the understood keys. Where an entry has several spellings of one key, the one
/// that stands first here counts.
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
    (ServerKey::ConnectTimeoutMs, &["connectTimeoutMs"]),
    (ServerKey::CallTimeoutMs, &["callTimeoutMs"]),
    (ServerKey::MaxCallMs, &["maxCallMs"]),
    (ServerKey::IdleTimeoutMs, &["idleTimeoutMs"]),
    (ServerKey::MaxResultChars, &["maxResultChars"]),
    (ServerKey::MaxTools, &["maxTools"]),
    (ServerKey::MaxToolListBytes, &["maxToolListBytes"]),
    (ServerKey::Sanitize, &["sanitize"]),
    (ServerKey::OAuth, &["oauth"]),
];

/// Keys of popular clients that mean nothing here: approval and trust are the client's business,
/// units of their timeouts differ, and the rest is for showing.
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

/// What a key of a server entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKeyMeaning {
    /// It is understood; the number says how much its spelling is preferred, 0 being the most.
    Understood(ServerKey, usize),
    /// It is a note, or a key of another client.
    Ignored,
    /// Nobody knows it.
    Unknown,
}

/// What a key of a server entry means.
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

/// Whether a key is a note of the user.
pub(super) fn is_note(key: &str) -> bool {
    key.starts_with('_')
}

/// The keys of a server entry that can be meant by a misspelt one.
pub(super) fn understood() -> impl Iterator<Item = &'static str> {
    SPELLINGS
        .iter()
        .flat_map(|(_, spellings)| spellings.iter().copied())
}
