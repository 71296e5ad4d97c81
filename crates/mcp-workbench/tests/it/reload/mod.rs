//! Changes of the configuration while the workbench runs: by real edits of its file, on the running program.

mod budgets;
mod clients;
mod files;
mod modes;
mod servers;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::harness::{Setup, TIMEOUT, Workbench, poll};

/// The log line after a configuration was applied.
const TAKEN_UP: &str = "configuration reloaded";
/// The log line after a configuration was refused.
const REFUSED: &str = "cannot apply the changed configuration";

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A configuration that is edited.
struct Edited {
    file: PathBuf,
    config: Value,
}

impl Edited {
    /// The configuration that was put together for a test.
    fn of(setup: &Setup) -> Self {
        Self {
            file: setup.config(),
            config: serde_json::from_str(&setup.config_text()).unwrap(),
        }
    }

    /// The same without some servers of the toolbox `dev`, which are there later.
    fn without(mut self, servers: &[&str]) -> Self {
        for server in servers {
            self.servers().as_object_mut().unwrap().remove(*server);
        }
        self
    }

    /// The servers of the toolbox `dev`.
    fn servers(&mut self) -> &mut Value {
        &mut self.config["toolboxes"]["dev"]["mcpServers"]
    }

    /// The server `fs` of that toolbox.
    fn fs(&mut self) -> &mut Value {
        &mut self.servers()["fs"]
    }

    fn text(&self) -> String {
        self.config.to_string()
    }

    /// Saves it as many editors do: written beside the file and moved over it.
    fn save(&self) {
        save(&self.file, &self.text());
    }

    /// Saves it and waits until it was taken up.
    fn take_up(&self, workbench: &Workbench) {
        let before = count(workbench, TAKEN_UP);
        self.save();
        wait_count(workbench, TAKEN_UP, before + 1);
    }
}

fn save(file: &Path, text: &str) {
    let beside = file.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, file).unwrap();
}

/// Returns the number of times that stderr contains a text.
fn count(workbench: &Workbench, text: &str) -> usize {
    workbench.stderr().matches(text).count()
}

fn wait_count(workbench: &Workbench, text: &str, expected: usize) {
    let seen = poll(TIMEOUT, || {
        (count(workbench, text) >= expected).then_some(())
    });
    assert!(
        seen.is_some(),
        "stderr does not say {expected} times {text:?}"
    );
}

/// The process that answers for a server of the toolbox `dev`.
fn pid(workbench: &mut Workbench, server: &str) -> u32 {
    let result = workbench.use_tool_of(["dev", server, "pid"], "{}");
    let pid = result.structured()["pid"].as_u64();
    pid.unwrap().try_into().unwrap()
}
