//! Tells if two entries are the same server, and if an entry is the workbench itself.

use std::path::Path;

use serde_json::Value;

use super::fields::Fields;

/// The identity of a server: its command line, variables and working directory, or its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    Program {
        /// The program and its arguments.
        words: Vec<String>,
        /// The environment variables, sorted.
        env: Vec<(String, String)>,
        directory: Option<String>,
    },
    Remote {
        url: String,
    },
}

/// Programs that start another program, which is named in their arguments.
const LAUNCHERS: &[&str] = &[
    "npx", "bunx", "pnpx", "pnpm", "yarn", "bun", "uvx", "uv", "pipx", "cmd",
];

const OWN_PROGRAM: &str = "mcp-workbench";

/// Returns the identity of an entry; `None` if it is not a server.
pub(crate) fn identity(entry: &Value) -> Option<Identity> {
    let fields = Fields(entry.as_object()?);
    if let Some(words) = fields.words() {
        let mut env: Vec<(String, String)> = fields
            .map(&["env"])
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into_owned()))
            .collect();
        // The order of variables does not make a different server.
        env.sort();
        return Some(Identity::Program {
            words: words
                .into_iter()
                .map(std::borrow::Cow::into_owned)
                .collect(),
            env,
            directory: fields.text(&["cwd"]).map(str::to_owned),
        });
    }
    let (url, _) = fields.url()?;
    // Clients differ in the slash at the end.
    let url = url.trim_end_matches('/').to_owned();
    Some(Identity::Remote { url })
}

impl Identity {
    /// Returns true for the workbench: as a program, as a package, or by the path of this program.
    pub(crate) fn is_ours(&self, program: &Path) -> bool {
        let Self::Program { words, .. } = self else {
            return false;
        };
        let Some((command, arguments)) = words.split_first() else {
            return false;
        };
        let stem = stem(command);
        if stem == OWN_PROGRAM || Path::new(command) == program {
            return true;
        }
        LAUNCHERS.contains(&stem.as_str())
            && arguments.iter().any(|argument| {
                // Ends a package name before its version or extras: `mcp-workbench@1`, `mcp-workbench==1`,
                // `mcp-workbench[x]`.
                let end = argument.find(['@', '=', '[']);
                &argument[..end.unwrap_or(argument.len())] == OWN_PROGRAM
            })
    }
}

/// Returns the name of a program without folder and extension, in lower case.
pub(super) fn stem(command: &str) -> String {
    let name = command
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(command)
        .to_ascii_lowercase();
    for ending in [".exe", ".cmd", ".bat", ".ps1"] {
        if let Some(stem) = name.strip_suffix(ending) {
            return stem.to_owned();
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_variables_and_the_spelling_of_the_command_do_not_matter() {
        let one = json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "1", "B": "2"}, "disabled": true});
        let same = json!({"command": ["npx", "-y", "x"], "env": {"B": "2", "A": "1"}});
        assert_eq!(identity(&one), identity(&same));
        for other in [
            json!({"command": "npx", "args": ["-y", "x"]}),
            json!({"command": "npx", "args": ["x", "-y"], "env": {"A": "1", "B": "2"}}),
            json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "1", "B": "2"}, "cwd": "/x"}),
            json!({"url": "https://host"}),
        ] {
            assert_ne!(identity(&one), identity(&other));
        }
        assert_eq!(
            identity(&json!({"url": "https://host/"})),
            identity(&json!({"url": "https://host", "headers": {"A": "b"}}))
        );
        assert_eq!(identity(&json!({})), None);
    }

    #[test]
    fn the_workbench_recognizes_its_own_entry() {
        let is_ours = |entry: Value| {
            identity(&entry)
                .expect("a server")
                .is_ours(Path::new("/opt/renamed"))
        };
        for entry in [
            json!({"command": "mcp-workbench"}),
            json!({"command": "/usr/bin/mcp-workbench", "args": ["--config", "x"]}),
            json!({"command": "C:\\bin\\MCP-Workbench.exe"}),
            json!({"command": "/opt/renamed"}),
            json!({"command": "npx", "args": ["-y", "mcp-workbench@latest"]}),
            json!({"command": "uvx", "args": ["mcp-workbench==1.0"]}),
            json!({"command": "cmd", "args": ["/c", "npx", "mcp-workbench"]}),
        ] {
            assert!(is_ours(entry.clone()), "{entry}");
        }
        for entry in [
            json!({"command": "npx", "args": ["-y", "mcp-workbench-other"]}),
            json!({"command": "cat", "args": ["mcp-workbench"]}),
            json!({"url": "https://host/mcp-workbench"}),
        ] {
            assert!(!is_ours(entry.clone()), "{entry}");
        }
    }
}
