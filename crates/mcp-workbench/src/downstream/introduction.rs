//! The description of a server in its first response.

use indexmap::IndexMap;
use rawjson::{Kind, RawJson};
use serde::{Deserialize, Serialize};

use crate::{
    era::{EXPERIMENTAL, EXTENSIONS, Era, MODERN_REVISION, SERVER_INFO, TASKS_EXTENSION},
    policy::scan,
};

/// The description that a server gave of itself: version, instructions and capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduction {
    /// The protocol revision of the connection; empty if the server was never connected.
    pub revision: String,
    /// The server's name and version, if it names them.
    pub product: Option<String>,
    pub instructions: Option<String>,
    /// The reason why the instructions are omitted, if they are.
    pub left_out: Option<String>,
    /// The request families besides tools that the server supports.
    pub families: Vec<ServerFamily>,
    /// Set if clients can subscribe to single resources.
    pub subscriptions: bool,
    /// Set if calls can run as tasks, which outlive their requests.
    pub tasks: bool,
    /// The other extensions and the experimental features of the server. They are boxed, because few servers have any and
    /// this is copied with every list.
    #[serde(default)]
    pub declared: Option<Box<DeclaredExtensions>>,
}

/// Declarations of a server under names that the workbench need not know, with their settings as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeclaredExtensions {
    pub extensions: IndexMap<String, String>,
    pub experimental: IndexMap<String, String>,
    /// The entries of its skills, as JSON. They are read when the server starts.
    #[serde(default)]
    pub skills: Vec<String>,
}

/// The maximum number of extensions of a server that are announced, and the maximum size of all of their settings.
const MAX_EXTENSIONS: usize = 100;
const MAX_EXTENSION_BYTES: usize = 64 * 1024;

/// The maximum size of a server's instructions as JSON: that of a tool's definition.
const MAX_INSTRUCTION_BYTES: usize = scan::MAX_DEFINITION_BYTES;
/// The number of characters of a server's name, of its version and of its revision that are stored. They are also in the lock
/// file.
const MAX_NAME_CHARACTERS: usize = 200;

/// A family of requests that a server may support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ServerFamily {
    Prompts,
    Resources,
    Completions,
    /// The level of log messages.
    Logging,
}

impl ServerFamily {
    pub(crate) const ALL: [Self; 4] = [
        Self::Prompts,
        Self::Resources,
        Self::Completions,
        Self::Logging,
    ];

    /// Returns its capability on the wire.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Completions => "completions",
            Self::Logging => "logging",
        }
    }
}

impl Introduction {
    /// Reads the result of `initialize`, or of `server/discover`.
    pub(crate) fn of(result: &RawJson, era: Era) -> Self {
        let (instructions, left_out) = match result.member("instructions") {
            Some(text) if text.as_bytes().len() > MAX_INSTRUCTION_BYTES => {
                let kib = MAX_INSTRUCTION_BYTES / 1024;
                (None, Some(omitted(&format!("larger than {kib} KiB"))))
            }
            text => scanned(text.as_ref().and_then(RawJson::as_text).as_deref()),
        };
        let declared = result.member("capabilities");
        let capability = |name: &str| {
            let capability = declared.as_ref()?.member(name)?;
            (capability.kind() == Kind::Object).then_some(capability)
        };
        let families = ServerFamily::ALL
            .into_iter()
            .filter(|family| capability(family.capability()).is_some());
        let subscribe = capability("resources").and_then(|it| it.member("subscribe"));
        Self {
            revision: revision(result, era),
            product: product(result, era),
            instructions,
            left_out,
            families: families.collect(),
            subscriptions: subscribe.is_some_and(|it| it.is_true()),
            tasks: capability(EXTENSIONS).is_some_and(|it| it.member(TASKS_EXTENSION).is_some()),
            declared: DeclaredExtensions::of(
                capability(EXTENSIONS).as_ref(),
                capability(EXPERIMENTAL).as_ref(),
            ),
        }
    }

    /// Returns the settings of an extension that the server declares, as JSON.
    pub(crate) fn extension(&self, name: &str) -> Option<&str> {
        let declared = self.declared.as_ref()?;
        declared.extensions.get(name).map(String::as_str)
    }

    /// Returns the entries of the server's skills, as JSON.
    pub(crate) fn skills(&self) -> &[String] {
        self.declared.as_ref().map_or(&[], |it| &it.skills)
    }

    /// Sets the entries of the skills of a server that declares the extension.
    pub(crate) fn set_skills(&mut self, skills: Vec<String>) {
        if let Some(declared) = &mut self.declared {
            declared.skills = skills;
        }
    }

    /// Returns true if the server supports a family.
    pub(crate) fn has(&self, family: ServerFamily) -> bool {
        self.families.contains(&family)
    }
}

impl DeclaredExtensions {
    fn of(extensions: Option<&RawJson>, experimental: Option<&RawJson>) -> Option<Box<Self>> {
        let declared = Self {
            extensions: settings(extensions),
            experimental: settings(experimental),
            skills: Vec::new(),
        };
        (declared != Self::default()).then(|| Box::new(declared))
    }
}

/// Returns the members of a capability, without tasks, as far as they are within bounds.
fn settings(capability: Option<&RawJson>) -> IndexMap<String, String> {
    let members = capability
        .and_then(RawJson::members)
        .unwrap_or_default()
        .into_iter()
        .filter(|member| member.key != TASKS_EXTENSION);
    let mut left = MAX_EXTENSION_BYTES;
    let members = members.take(MAX_EXTENSIONS).filter(|member| {
        let size = member.key.len() + member.value.as_bytes().len();
        let fits = size <= left;
        // One that is too large is left out; smaller ones behind it may still fit.
        left -= if fits { size } else { 0 };
        fits
    });
    members
        .map(|member| {
            (
                member.key.into_owned(),
                member.value.minified().as_str().to_owned(),
            )
        })
        .collect()
}

/// Returns the instructions, or the reason why they are omitted if the scanner finds something in them.
fn scanned(instructions: Option<&str>) -> (Option<String>, Option<String>) {
    let text = instructions.filter(|text| !text.is_empty());
    match text.and_then(scan::hard_in_instructions) {
        Some(finding) => (None, Some(omitted(&finding.to_string()))),
        None => (text.map(str::to_owned), None),
    }
}

/// Returns the notice that the instructions are omitted, and logs it.
fn omitted(why: &str) -> String {
    tracing::warn!("omitting the server's instructions: {why}");
    format!("the server's instructions are omitted: {why}")
}

/// Returns the revision of the connection: a legacy server chooses it, a modern one gets ours.
fn revision(result: &RawJson, era: Era) -> String {
    let chosen = result.member("protocolVersion");
    match (era, chosen.as_ref().and_then(RawJson::as_text)) {
        (Era::Legacy, Some(chosen)) => cut(&chosen),
        (Era::Legacy, None) => String::new(),
        (Era::Modern, _) => MODERN_REVISION.to_owned(),
    }
}

/// Returns the server's name and version.
fn product(result: &RawJson, era: Era) -> Option<String> {
    let identity = match era {
        Era::Legacy => result.member("serverInfo"),
        Era::Modern => result
            .member("_meta")
            .and_then(|meta| meta.member(SERVER_INFO)),
    };
    let identity = identity?;
    let part = |name: &str| Some(cut(&identity.member(name)?.as_text()?));
    let name = part("name")?;
    Some(match part("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    })
}

/// Returns the part of a name that is stored.
fn cut(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARACTERS).collect()
}
