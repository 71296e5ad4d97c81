//! Steps that a client takes, the same ones with every official client, in both eras and over both transports. What
//! each saw is brought into one form, so that it can be compared with what another one saw.

use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use crate::listening::{Listening, introduce};
use crate::packages;
use crate::process::Process;
use crate::workbench::{ConfigFile, PROGRAM, TOOLBOX, use_tool};

/// The revision of the modern era.
pub(crate) const MODERN_REVISION: &str = "2026-07-28";
/// The newest revision of the legacy era.
pub(crate) const LEGACY_REVISION: &str = "2025-11-25";

/// Whose client takes the steps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    TypeScript,
    Python,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// How a workbench is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// How a workbench shows its servers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shows {
    /// Through `open_toolbox` and `use_tool`.
    MetaTools,
    /// As if they were its own.
    Native,
}

/// A client that takes the steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) language: Language,
    pub(crate) era: Era,
}

/// The observations of a client: its greeting, and the outcome of each step by its name.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) greeting: Value,
    pub(crate) steps: Map<String, Value>,
}

/// A step; `details` say what the client does.
#[derive(Clone)]
pub(crate) struct Step {
    name: &'static str,
    details: Value,
}

impl Era {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    /// The revision that a client of this era must have agreed on.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Self::Legacy => LEGACY_REVISION,
            Self::Modern => MODERN_REVISION,
        }
    }
}

impl Step {
    pub(crate) fn new(name: &'static str, details: Value) -> Self {
        Self { name, details }
    }

    /// Calls a tool without arguments.
    pub(crate) fn call(name: &'static str, tool: &str) -> Self {
        let details = json!({ "do": "call", "name": tool, "arguments": {} });
        Self { name, details }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The same step with another detail.
    pub(crate) fn with(mut self, detail: &str, value: impl Into<Value>) -> Self {
        self.details[detail] = value.into();
        self
    }

    /// The same step through `use_tool`; `None` if it does not call a tool, or listens while it does.
    pub(crate) fn through_use_tool(&self, server: &str) -> Option<Self> {
        if !matches!(self.details["do"].as_str(), Some("call" | "cancel")) {
            return None;
        }
        let tool = self.details["name"].as_str().unwrap();
        let arguments = use_tool(server, tool, &self.details["arguments"]);
        let step = self.clone().with("name", "use_tool");
        Some(step.with("arguments", arguments))
    }

    fn to_json(&self) -> Value {
        self.clone().with("as", self.name).details
    }
}

impl Client {
    /// Takes steps with whatever a command starts.
    pub(crate) fn take_with(self, server: &Command, steps: &[Step]) -> Seen {
        let mut client = self.command(steps);
        client.arg(server.get_program()).args(server.get_args());
        self.run(client, steps)
    }

    /// Takes steps with what listens at a URL, without a token.
    pub(crate) fn take_at(self, url: &str, steps: &[Step]) -> Seen {
        let mut client = self.command(steps);
        client.arg(url);
        introduce(&mut client);
        client.env_remove("WORKBENCH_TOKEN");
        self.run(client, steps)
    }

    /// Takes steps with a workbench that has these servers in its toolbox.
    pub(crate) fn take_through(
        self,
        servers: &Value,
        shows: Shows,
        transport: Transport,
        steps: &[Step],
    ) -> Seen {
        let config = json!({
            // What is asked is compared with what a client is asked that has the server to itself.
            "attributeQuestions": false,
            "toolboxes": { TOOLBOX: { "description": "Both eras", "mcpServers": servers } }
        });
        self.take_configured(&config, shows, transport, steps)
    }

    /// Takes steps with a workbench that has this configuration.
    pub(crate) fn take_configured(
        self,
        config: &Value,
        shows: Shows,
        transport: Transport,
        steps: &[Step],
    ) -> Seen {
        let config = ConfigFile::new(config);
        let options: &[&str] = match shows {
            Shows::MetaTools => &[],
            Shows::Native => &["--native", TOOLBOX],
        };
        let mut client = self.command(steps);
        match transport {
            Transport::Stdio => {
                client.arg(PROGRAM).arg("serve").args(options);
                client.arg("--config").arg(config.path());
                client.env("XDG_CACHE_HOME", config.cache());
                self.run(client, steps)
            }
            Transport::Http => {
                let workbench = Listening::serve(config, options);
                client.arg(&workbench.url);
                introduce(&mut client);
                self.run(client, steps)
            }
        }
    }

    fn command(self, steps: &[Step]) -> Command {
        let mut command = match self.language {
            Language::TypeScript => {
                let mut node = Command::new("node");
                node.arg(packages::beside("clients/steps.mjs"));
                node.arg(packages::folder());
                node
            }
            Language::Python => {
                let mut python = Command::new(packages::python());
                python.arg(packages::beside("clients/steps.py"));
                python
            }
        };
        let steps: Vec<Value> = steps.iter().map(Step::to_json).collect();
        command.arg(self.era.word()).arg(json!(steps).to_string());
        command
    }

    fn run(self, client: Command, steps: &[Step]) -> Seen {
        let lines = Process::start(client).finish();
        let mut lines = lines.iter().map(|line| read(line));
        let greeting = lines.next().unwrap();
        assert_eq!(greeting["version"], self.era.revision(), "{self:?}");
        let mut seen = Map::new();
        for (line, step) in lines.zip(steps) {
            seen.insert(step.name.to_owned(), self.comparable(line, step));
        }
        assert_eq!(
            seen.len(),
            steps.len(),
            "each step has a name and an outcome"
        );
        let steps = seen;
        Seen { greeting, steps }
    }

    /// An outcome without what the era adds, and without what is empty.
    fn comparable(self, mut outcome: Value, step: &Step) -> Value {
        let outcome_map = outcome.as_object_mut().unwrap();
        assert_eq!(outcome_map.remove("step").unwrap(), step.name);
        let granted = outcome_map.remove("honored");
        let filter = step.details.get("filter");
        if let (Era::Modern, Some(filter)) = (self.era, filter) {
            assert_eq!(granted.as_ref(), Some(filter), "{self:?} may listen");
        }
        if let Some(asked) = outcome_map.get_mut("asked").and_then(Value::as_array_mut) {
            // What is asked at once is answered in any order.
            asked.sort_by_key(Value::to_string);
        }
        outcome_map.retain(|_, value| *value != json!([]));
        if let Some(result) = outcome_map.get_mut("result").and_then(Value::as_object_mut) {
            strip(result);
        }
        outcome
    }
}

/// Fails with the first step whose outcome is another one.
pub(crate) fn assert_same(seen: &Map<String, Value>, expected: &Map<String, Value>, who: &str) {
    for (step, outcome) in expected {
        assert_eq!(seen.get(step), Some(outcome), "{who}: {step}");
    }
    assert_eq!(seen.len(), expected.len(), "{who}: steps of its own");
}

/// Takes away what one era says in a result and the other does not, and what the SDKs fill in.
fn strip(result: &mut Map<String, Value>) {
    for name in ["resultType", "ttlMs", "cacheScope"] {
        result.remove(name);
    }
    if result.get("isError") == Some(&json!(false)) {
        result.remove("isError");
    }
    // The modern era has no such thing, and one of the SDKs takes it away.
    let tools = result.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        tool.as_object_mut().unwrap().remove("execution");
    }
    if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.remove("io.modelcontextprotocol/serverInfo");
        if meta.is_empty() {
            result.remove("_meta");
        }
    }
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
}
