//! The machine of a reader: a home directory, a folder of work, and the programs that the pages name. What would fetch
//! a package starts the fixture server.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Script, fixture_server};

pub(super) const WORKBENCH: &str = env!("CARGO_BIN_EXE_mcp-workbench");

/// Programs that start a server.
const SERVERS: &[&str] = &["npx", "uvx", "github-mcp-server", "files-server"];

/// Programs that a page uses besides the workbench, with their replacements.
const STAND_INS: &[(&str, &str)] = &[
    ("man", "cat >/dev/null"),
    ("jq", "echo '{\"path\": \"README.md\"}'"),
    ("pgrep", "echo 1 mcp-workbench"),
];

/// The tools that the pages call.
const TOOLS: &str = r#"[
    {"name":"read_file","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"number"}},"required":["path"]}},
    {"name":"query","inputSchema":{"type":"object","properties":{"sql":{"type":"string"},"limit":{"type":"integer"}}}},
    {"name":"screenshot","inputSchema":{"type":"object"}}
]"#;

pub(super) struct World {
    directory: TempDir,
}

pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    /// Both outputs, for messages.
    pub(super) fn all(&self) -> String {
        format!("exit code {}\n{}\n{}", self.code, self.stdout, self.stderr)
    }
}

impl World {
    /// A machine with the programs, without a configuration.
    pub(super) fn new() -> Self {
        let world = Self {
            directory: TempDir::new().expect("a directory for the test"),
        };
        for folder in [
            "home/.local/bin",
            "home/.local/share/bash-completion/completions",
            "home/.config/fish/completions",
            "work/target/release",
            "bin",
        ] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        symlink(WORKBENCH, world.path("bin/mcp-workbench")).unwrap();
        symlink(WORKBENCH, world.path("work/target/release/mcp-workbench")).unwrap();
        let image = r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}"#;
        let text = r#"{"content":[{"type":"text","text":"hello"}]}"#;
        let script = Script::new()
            .tools(TOOLS)
            .answers("read_file", text)
            .answers("query", text)
            .answers("screenshot", image)
            .text();
        world.write("script.json", &script);
        for name in SERVERS {
            world.program(&format!("bin/{name}"), &world.server_line());
        }
        for (name, line) in STAND_INS {
            world.program(&format!("bin/{name}"), line);
        }
        world
    }

    /// The shell line that starts the fixture server.
    fn server_line(&self) -> String {
        let script = self.path("script.json");
        format!("exec {} {}", fixture_server().display(), script.display())
    }

    /// The entry of a fixture server, which needs no `PATH`.
    pub(super) fn entry(&self) -> Value {
        json!({"command": fixture_server(), "args": [self.path("script.json")]})
    }

    /// The same machine with the toolboxes that the pages speak of.
    pub(super) fn configured(self) -> Self {
        let entry = self.entry();
        let config = json!({"toolboxes": {
            "dev": {"description": "Development", "mcpServers": {"files": entry, "db": entry, "browser": entry}},
            "files": {"description": "Files", "mcpServers": {"filesystem": entry, "git": entry}},
            "ops": {"description": "Operations", "mcpServers": {"issues": entry}},
        }});
        self.write("work/workbench-config.json", &format!("{config:#}\n"));
        self
    }

    /// The same machine with clients that have servers.
    pub(super) fn with_clients(self) -> Self {
        let github = json!({
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"},
        });
        let database = json!({"command": "uvx", "args": ["mcp-server-postgres", "--host", "db"]});
        let shop = self.path("home/shop").display().to_string();
        let claude = json!({
            "mcpServers": {"github": github},
            "projects": {shop: {"mcpServers": {"db": database}}},
        });
        self.write("home/.claude.json", &claude.to_string());
        let mut same = github;
        same["env"]["GITHUB_TOKEN"] = json!("${env:GITHUB_TOKEN}");
        let cursor =
            json!({"mcpServers": {"gh": same, "db": {"url": "https://db.example.com/mcp"}}});
        self.write("home/.cursor/mcp.json", &cursor.to_string());
        self
    }

    /// A path on the machine.
    pub(super) fn path(&self, relative: &str) -> PathBuf {
        fs::canonicalize(self.directory.path())
            .unwrap()
            .join(relative)
    }

    pub(super) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn program(&self, relative: &str, line: &str) {
        self.write(relative, &format!("#!/bin/sh\n{line}\n"));
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path(relative), mode).unwrap();
    }

    /// Runs a line of the shell in the folder of work, with the programs of the machine on the `PATH`.
    pub(super) fn run(&self, line: &str) -> Ran {
        self.run_with(line, &self.path("bin"))
    }

    /// The same with another folder in front of the system's.
    pub(super) fn run_with(&self, line: &str, programs: &Path) -> Ran {
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("HOME", self.path("home"))
            // A command must not reach the hosts of whoever runs the tests.
            .env("XDG_RUNTIME_DIR", self.path("home"))
            .env("ISSUES_TOKEN", "value-of-issues")
            .env("GITHUB_TOKEN", "value-of-github")
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        Ran {
            code: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
