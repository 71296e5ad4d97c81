//! The lock file and `trust`, shown by attacks: changes are reported or withheld, and only a person approves them.

mod changes;
mod commands;
mod enforced;
mod files;
mod judging;
mod launches;
mod on_use;
mod policy;
mod released;
mod skills;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench};

/// A directory with a configuration in which workbenches are started one after the other.
struct World {
    setup: Setup,
}

impl World {
    /// A server `fs` in the toolbox `dev` with these tools, and a policy for all.
    fn new(pin: &str, tools: &Value) -> Self {
        Self::of(pin, &Script::new().tools(&tools.to_string()))
    }

    /// A server `fs` in the toolbox `dev`, and a policy for all.
    fn of(pin: &str, script: &Script) -> Self {
        let setup = Setup::one(script).top("pin", json!(pin));
        setup.write_config();
        let world = Self { setup };
        // What the server does is changed by tests as a package behind `npx` would: its arguments name no file.
        let fixtures = world.setup.path("fixtures");
        let script = format!("${{FIXTURES:-{}}}/0.json", fixtures.display());
        world.edit(|config| Self::entry(config)["args"] = json!([script]));
        world
    }

    /// A world whose servers were met before, and whose policy is now this one.
    fn pinned(pin: &str, tools: &Value) -> Self {
        let world = Self::new("notice", tools);
        world.open();
        world.set_pin(pin);
        world
    }

    /// Returns a command about this configuration, as messages show it.
    fn printed_command(&self, words: &str) -> String {
        let config = self.setup.config();
        format!("mcp-workbench --config {} {words}", config.display())
    }

    /// Has the configuration say another policy.
    fn set_pin(&self, pin: &str) {
        self.edit(|config| config["pin"] = json!(pin));
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let text = fs::read_to_string(self.setup.config()).unwrap();
        let mut config = serde_json::from_str(&text).unwrap();
        edit(&mut config);
        fs::write(self.setup.config(), config.to_string()).unwrap();
    }

    /// The entry of the server `fs` in a configuration.
    fn entry(config: &mut Value) -> &mut Value {
        &mut config["toolboxes"]["dev"]["mcpServers"]["fs"]
    }

    /// Has the server list other tools from its next start on.
    fn set_tools(&self, tools: &Value) {
        self.set_script(&Script::new().tools(&tools.to_string()));
    }

    /// Has the server do something else from its next start on.
    fn set_script(&self, script: &Script) {
        let journal = self.setup.path("fixtures/0.log");
        let journal = json!(journal).to_string();
        let text = script.clone().set("journal", &journal).text();
        self.setup.write("fixtures/0.json", &text);
    }

    /// A workbench that serves the configuration as it is now.
    fn connect(&self) -> Workbench {
        let mut command = self.setup.command();
        command.arg("--config").arg(self.setup.config());
        let mut workbench = Workbench::spawn(command, Setup::new());
        workbench.initialize();
        workbench
    }

    /// Returns the result of opening `dev` in a new session.
    fn open(&self) -> Value {
        let mut workbench = self.connect();
        let opened = workbench.open("dev").json();
        assert!(workbench.finish().status.success());
        opened
    }

    /// A command on the configuration as it is now, without a terminal.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.setup.command();
        command.arg("--config").arg(self.setup.config());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a command, which must do what is asked.
    fn run(&self, arguments: &[&str]) {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// Runs `trust` with arguments, without a terminal.
    fn trust(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(&["trust"]);
        command.args(arguments).output().unwrap()
    }

    /// Runs `trust` with arguments, which must do what is asked.
    fn trusted(&self, arguments: &[&str]) -> String {
        let output = self.trust(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap() + &said
    }

    /// Returns the tools of `fs` in `trust list --json`: names and states.
    fn states(&self) -> Vec<(String, String)> {
        let output = self.trust(&["list", "--json"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let tools = document["servers"][0]["tools"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let states = tools.iter();
        states
            .map(|it| (text(&it["tool"]), text(&it["state"])))
            .collect()
    }

    fn lock_file(&self) -> PathBuf {
        self.setup.path("config/workbench.workbench.lock")
    }

    /// The text of the lock file.
    fn lock(&self) -> String {
        fs::read_to_string(self.lock_file()).unwrap()
    }

    /// How often the server `fs` was started.
    fn starts(&self) -> usize {
        self.setup.journal("dev", "fs").received("initialize").len()
    }
}

/// The definition of a tool.
fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// The names of the tools that an open has.
fn names(opened: &Value) -> Vec<&str> {
    let tools = opened["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}
