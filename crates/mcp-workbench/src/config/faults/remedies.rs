//! The remedies for faults.

use super::{
    Fault, KeyFault, KeyScope, PerUserFault, ReferenceFault, SealKeyFault, TransportFault,
    ValueFault, alternatives,
};

impl Fault {
    /// Returns the next step for the user.
    pub fn remedy(&self) -> String {
        match self {
            Self::Syntax { remedy, .. } => (*remedy).into(),
            Self::Key(fault) => fault.remedy(),
            Self::Value(fault) => fault.remedy(),
            Self::Transport(fault) => fault.remedy(),
            Self::Reference(fault) => fault.remedy(),
            Self::Access(fault) => fault.remedy(),
        }
    }
}

impl KeyFault {
    fn remedy(&self) -> String {
        match self {
            Self::Unknown {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::Unknown { key, scope, .. } => scope.remedy(key),
            Self::Duplicate { .. } => "remove one of the two, or rename it".into(),
            Self::Missing { key: "description" } => {
                "add `\"description\": \"…\"`, which tells the model what the toolbox is for".into()
            }
            Self::Missing {
                key: "nativeToolbox",
            } => "add `\"nativeToolbox\": \"…\"`, which names the toolbox that native mode shows"
                .into(),
            Self::Missing { key } => format!("add `\"{key}\": {{}}`"),
            Self::SpeltTwice { ignored, .. } => format!("remove `{ignored}`"),
            Self::EmptyName { named } => format!("give the {named} a name"),
            Self::VariableName { .. } => "use letters, digits and `_`".into(),
            Self::HeaderName { .. } => "use letters, digits and `-`".into(),
        }
    }
}

impl ValueFault {
    fn remedy(&self) -> String {
        match self {
            Self::WrongType { expected, .. } => format!("write {expected} here"),
            Self::Unquoted { found } => format!("quote it: \"{found}\""),
            Self::NotPositive { .. } => "write a whole number of 1 or more, without quotes".into(),
            Self::OutOfRange { least, most, .. } => format!("use a number from {least} to {most}"),
            Self::UnknownWord {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::UnknownWord { known, .. } => format!("use {}", alternatives(known)),
            Self::NotAvailable { instead, .. } => format!("use {}", alternatives(instead)),
            Self::UnknownToolbox {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::UnknownToolbox { .. } => "use the name of a toolbox in this file".into(),
            Self::Repeated { .. } => "remove one of the two".into(),
            Self::NoMetaTool { names, .. } => format!("add {}", alternatives(names)),
            Self::Negated { .. } => {
                "put the tools into another list (`deny` is applied first, then `ask`, then `allow`); \
                 for a tool whose name begins with `!` write `\\!`"
                    .into()
            }
            Self::NoFolder { .. } => "name a `file`, or set HOME".into(),
            Self::Empty { what } => format!("write a {what} here"),
            Self::NulCharacter => "remove `\\u0000`".into(),
            Self::LineBreak => "write the value on one line".into(),
            Self::Filter(_) => "correct the filter; `.` selects everything".into(),
            Self::SealKey(fault) => fault.remedy(),
            Self::StoreUrl => "write it as `redis://HOST:PORT`, `redis+sentinel://HOST:PORT/PRIMARY` or `redis+cluster://HOST:PORT`, with `rediss` for TLS".into(),
            Self::Needs { key } => format!("add `{key}`, the same for all replicas"),
            Self::PerUser(fault) => fault.remedy(),
            Self::Url { .. } => "begin it with `https://` or `http://`".into(),
        }
    }
}

impl SealKeyFault {
    fn remedy(self) -> String {
        match self {
            Self::Literal => {
                "put it into a file or a variable, and write `${file:PATH}` or `${VAR}` here".into()
            }
            Self::Missing => {
                "make one with `openssl rand -hex 32`, in that file or variable, the same for all replicas"
                    .into()
            }
            Self::Short => "make a new one with `openssl rand -hex 32`".into(),
            Self::Exposed => {
                "make a new key with `openssl rand -hex 32` in a file with mode 600".into()
            }
        }
    }
}

impl PerUserFault {
    fn remedy(self) -> String {
        match self {
            Self::ClientCredentials => "remove `grant` or `per`".into(),
            Self::Header => "remove the header or `per`".into(),
            Self::NoSeal => {
                "add `\"seal\": {\"key\": \"${file:seal.key}\"}` to the file, with a key from `openssl rand -hex 32`"
                    .into()
            }
            Self::ExchangeWithoutUser => "add `\"per\": \"user\"`, or remove `exchange`".into(),
            Self::ExchangeWithoutClient => {
                "register the workbench at the authorization server, and add both to `auth`".into()
            }
            Self::AssertionWithoutClient => {
                "register the workbench at that `issuer`, and add its `clientId` and `clientSecret` to `oauth`".into()
            }
        }
    }
}

impl TransportFault {
    fn remedy(&self) -> String {
        match self {
            Self::Neither => {
                "add `\"command\"` for a program, or `\"url\"` for a remote server".into()
            }
            Self::Both => {
                "remove one of the two, or add `\"type\": \"stdio\"` or `\"type\": \"http\"`".into()
            }
            Self::Needs { key, .. } => format!("add `\"{key}\"`, or correct the type"),
            Self::Contradiction { .. } => "remove one of the two".into(),
        }
    }
}

impl ReferenceFault {
    fn remedy(&self) -> String {
        match self {
            Self::Unclosed => "add the `}`, or write `$${` for a literal `${`".into(),
            Self::Malformed { name } if name.contains(':') => {
                "only `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:PATH}`, `${keyring:NAME}`, `${userHome}` and \
                 `${workspaceFolder}` are understood; put the value into a variable"
                    .into()
            }
            Self::Malformed { .. } => {
                "a name is letters, digits and `_`; write `$${` for a literal `${`".into()
            }
            Self::Nested => "a default is literal text; use one variable with one default".into(),
            Self::Missing(value) => value.remedy(),
            Self::Empty(variable) => {
                format!("set it, or write `${{{variable}:-}}` if it may be empty")
            }
            Self::InArguments(_) => {
                "pass it in `env`, if the server can read it from there".into()
            }
        }
    }
}

/// The remedy for an unknown key, before the list of known keys.
const REMOVE: &str = "remove it, or begin it with `_` if it is a note; known keys:";

impl KeyScope {
    /// Returns the remedy for a key that resembles no other.
    fn remedy(self, key: &str) -> String {
        match self {
            Self::File if matches!(key, "mcpServers" | "servers") => {
                "servers belong in a toolbox: `\"toolboxes\": {\"NAME\": {\"description\": \"…\", \
                 \"mcpServers\": …}}`"
                    .into()
            }
            Self::File => format!(
                "{REMOVE} `toolboxes`, `clients`, `limits`, `auth`, `seal`, `replicaAddress`, `store`, `toolMode`, `nativeToolbox`, `toolNameLimit`, `roots`, `autoOpen`, `openWaitMs`, \
                 `metaTools`, `openDetail`, `connect`, `watch`, `shared`, `maxResultChars`, `select`, `sanitize`, `learnShapes`, `attributeQuestions`, `pin`, `audit` and `$schema`"
            ),
            Self::Toolbox => format!("{REMOVE} `description`, `mcpServers` and `connect`"),
            Self::Client => {
                "remove it; known keys: `claims`, `scopes`, `toolboxes`, `permissions`, `maxResultChars` and `limits`"
                    .into()
            }
            Self::Permissions => "remove it; known keys: `allow`, `ask` and `deny`".into(),
            Self::Audit => {
                "remove it; known keys: `file`, `maxBytes`, `files` and `arguments`".into()
            }
            Self::Limits => "remove it; known keys: `requestsInFlight`, `requestsPerSecond`, `requestBurst` and `bytesPerMinute`".into(),
            Self::Auth => "remove it; known keys: `issuer`, `audience`, `resource`, `algorithms`, `scopes`, `clientId`, `clientSecret` and `introspection`".into(),
            Self::Introspection => {
                "remove it; known keys: `clientId` and `clientSecret`".into()
            }
            Self::Seal => "remove it; known keys: `key` and `previousKey`".into(),
            Self::Exchange => "remove it; known keys: `audience`".into(),
            Self::Server | Self::OAuth => "it is ignored; remove it, or begin it with `_`".into(),
        }
    }
}
