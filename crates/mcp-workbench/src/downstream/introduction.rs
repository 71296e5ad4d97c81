//! What a server says of itself at its start.

use crate::{
    era::TASKS_EXTENSION,
    wire::{Kind, RawJson},
};

/// What a server said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// How it wants to be used, in its words.
    pub instructions: Option<String>,
    /// The families of requests besides tools that it answers.
    pub families: Vec<ServerFamily>,
    /// Whether it tells of changes of single resources.
    pub subscriptions: bool,
    /// Whether its calls can outlive their requests.
    pub tasks: bool,
}

/// A family of requests that a server may or may not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFamily {
    /// Prompts.
    Prompts,
    /// Resources and their templates.
    Resources,
    /// Completion of arguments.
    Completions,
    /// Setting the level of log messages.
    Logging,
}

impl ServerFamily {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Prompts,
        Self::Resources,
        Self::Completions,
        Self::Logging,
    ];

    /// Its capability on the wire.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Completions => "completions",
            Self::Logging => "logging",
        }
    }
}

impl Introduction {
    /// Reads the result of `initialize`.
    pub(super) fn of(result: &RawJson) -> Self {
        let instructions = result.member("instructions");
        let instructions = instructions.and_then(|it| Some(it.as_text()?.into_owned()));
        let declared = result.member("capabilities");
        let capability = |name: &str| {
            let capability = declared.as_ref()?.member(name)?;
            (capability.kind() == Kind::Object).then_some(capability)
        };
        let families = ServerFamily::ALL.into_iter();
        let families = families.filter(|family| capability(family.capability()).is_some());
        let subscribe = capability("resources").and_then(|it| it.member("subscribe"));
        Self {
            instructions: instructions.filter(|text| !text.is_empty()),
            families: families.collect(),
            subscriptions: subscribe.is_some_and(|it| it.is_true()),
            tasks: capability("extensions").is_some_and(|it| it.member(TASKS_EXTENSION).is_some()),
        }
    }

    /// Whether the server answers requests of a family.
    pub fn has(&self, family: ServerFamily) -> bool {
        self.families.contains(&family)
    }
}
