//! The file that `init` creates.

use serde_json::Value;

use crate::{
    cli::{add::program_entry, editing::usual_description},
    config::ConfigText,
};

/// The file with one toolbox and no server. `@toolbox` and `@description` are placeholders.
const TEMPLATE: &str = r#"// The configuration of MCP Workbench: toolboxes, and the servers in them.
// Comments and trailing commas are allowed. `mcp-workbench check` checks this file.
{
  // A schema helps editors: `mcp-workbench schema > workbench.schema.json` writes it.
  // "$schema": "./workbench.schema.json",

  // The tools that a model sees instead of those of all servers.
  "metaTools": ["open_toolbox", "use_tool", "search_tools"],

  // What `open_toolbox` returns of each tool: name, description and input schema. "full" adds all that servers send.
  "openDetail": "compact",

  "toolboxes": {
    // A toolbox is a set of servers that are opened together.
    @toolbox: {
      // What it is for. Models choose a toolbox by this text.
      "description": @description,

      "mcpServers": {
        // A program, which is started when it is needed:
        // "files": {
        //   "command": "npx",
        //   "args": ["-y", "@modelcontextprotocol/server-filesystem", "${workspaceFolder}"],
        // },

        // A remote server. ${VARIABLES} keep secrets out of this file:
        // "issues": {
        //   "url": "https://mcp.example.com/mcp",
        //   "headers": { "Authorization": "Bearer ${ISSUES_TOKEN}" },
        // },
      },
    },
  },
}
"#;

/// Programs that run another program, which is the server.
const RUNNERS: &[&str] = &[
    "npx", "bunx", "uvx", "pipx", "dnx", "deno", "node", "python", "python3", "docker",
];

/// Subcommands of these programs.
const RUNNER_SUBCOMMANDS: &[&str] = &["run", "exec", "dlx", "x"];

/// Common prefixes and suffixes of server packages.
const NAME_PREFIXES: &[&str] = &["mcp-server-", "server-", "mcp-"];
const NAME_SUFFIXES: &[&str] = &["-mcp-server", "-server", "-mcp"];

/// The content of a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewConfiguration {
    pub(super) toolbox: String,
    pub(super) description: String,
    /// The name of a server and its command line.
    pub(super) server: Option<(String, Vec<String>)>,
}

impl NewConfiguration {
    /// Creates a toolbox without a server.
    pub(super) fn named(toolbox: &str) -> Self {
        Self {
            toolbox: toolbox.to_owned(),
            description: usual_description(toolbox),
            server: None,
        }
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let (before, rest) = TEMPLATE
            .split_once("@toolbox")
            .expect("the template has it");
        let (between, after) = rest
            .split_once("@description")
            .expect("the template has it");
        let text = format!(
            "{before}{}{between}{}{after}",
            quoted(&self.toolbox),
            quoted(&self.description)
        );
        let Some((name, words)) = &self.server else {
            return text;
        };
        let mut config = ConfigText::parse(&text).expect("the template is a configuration");
        let entry = program_entry(words).into();
        let added = config.add_server(&self.toolbox, name, &entry);
        added.expect("the toolbox is new and empty");
        config.finish()
    }
}

impl Default for NewConfiguration {
    fn default() -> Self {
        Self {
            toolbox: "main".to_owned(),
            description: "General tools".to_owned(),
            server: None,
        }
    }
}

/// Returns the template without a toolbox, for a command that adds its own.
pub(in crate::cli) fn without_toolboxes() -> String {
    const TOOLBOXES: &str = "\"toolboxes\": {";
    let (before, _) = TEMPLATE
        .split_once(TOOLBOXES)
        .expect("the template has toolboxes");
    format!("{before}{TOOLBOXES}}}\n}}\n")
}

/// Derives a server name from its command line.
pub(super) fn name_of(words: &[String]) -> String {
    // `@scope/server-files@1.2` and `/usr/bin/files.py` both become a plain name.
    let stem = |word: &str| {
        let word = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let word = word.split(['@', ':']).next().unwrap_or(word);
        let word = word.strip_suffix(".exe").unwrap_or(word);
        word.trim_end_matches(".js")
            .trim_end_matches(".py")
            .to_owned()
    };
    let mut words = words.iter();
    let program = words.next().map(|word| stem(word)).unwrap_or_default();
    let named =
        words.find(|word| !word.starts_with('-') && !RUNNER_SUBCOMMANDS.contains(&word.as_str()));
    let name = match named {
        Some(named) if RUNNERS.contains(&program.as_str()) => stem(named),
        _ => program,
    };
    let bare = NAME_PREFIXES
        .iter()
        .find_map(|it| name.strip_prefix(it))
        .unwrap_or(&name);
    let bare = NAME_SUFFIXES
        .iter()
        .find_map(|it| bare.strip_suffix(it))
        .unwrap_or(bare);
    if bare.is_empty() {
        "server".to_owned()
    } else {
        bare.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ident::ServerName;

    use super::*;
    use crate::config::{Environment, parse};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_new_file_is_valid_and_has_the_given_content() {
        let first = NewConfiguration {
            toolbox: "my \"box\" @description".to_owned(),
            description: "For x \\ y".to_owned(),
            server: Some(("time".to_owned(), words("uvx mcp-server-time"))),
        };
        let environment = Environment::new([], "/start".into(), None);
        for first in [first, NewConfiguration::default()] {
            let loaded = parse(&first.text(), Path::new("a.json"), &environment).expect("valid");
            assert!(loaded.warnings.is_empty() && loaded.unset.is_empty());
            let toolbox = &loaded.config.toolboxes[first.toolbox.as_str()];
            assert_eq!(toolbox.description, first.description);
            let servers: Vec<&str> = toolbox.servers.keys().map(ServerName::as_str).collect();
            let named: Vec<&str> = first.server.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(servers, named);
        }
    }

    #[test]
    fn servers_are_named_by_their_package() {
        let cases = [
            (
                "npx -y @modelcontextprotocol/server-filesystem /tmp",
                "filesystem",
            ),
            ("uvx mcp-server-time", "time"),
            ("npx -y some-thing-mcp@1.2.3", "some-thing"),
            ("/usr/local/bin/github-mcp-server stdio", "github"),
            ("docker run -i --rm mcp/fetch:latest", "fetch"),
            ("node ./build/index.js", "index"),
            ("C:\\tools\\git.exe", "git"),
            ("mcp-", "server"),
            ("npx", "npx"),
        ];
        for (line, name) in cases {
            assert_eq!(name_of(&words(line)), name, "{line}");
        }
    }
}
