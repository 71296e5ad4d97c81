//! The known clients, in the order in which they are searched.

use super::client::{
    Base, Client, ClientFile, ClientName, CommandSpelling, Constant, Format, Interpolation, Link,
    Scope, ServerLayout, Spelling, System,
};

const EVERYWHERE: &[System] = &[System::Linux, System::MacOs, System::Windows];

/// The systems that use `~/.config`.
const UNIX: &[System] = &[System::Linux, System::MacOs];

/// The usual spelling of an entry.
const DEFAULT_SPELLING: Spelling = Spelling {
    command: CommandSpelling::CommandAndArgs,
    env: "env",
    always: &[],
};

/// The common values of most clients.
const DEFAULT_CLIENT: Client = Client {
    name: ClientName::ClaudeDesktop,
    title: "",
    files: &[],
    format: Format::Json,
    key: &["mcpServers"],
    listing: ServerLayout::Map,
    spelling: DEFAULT_SPELLING,
    interpolation: Interpolation::None,
    link: None,
};

pub const CLIENTS: &[Client] = &[
    Client {
        name: ClientName::ClaudeDesktop,
        title: "Claude Desktop",
        files: &[
            app_data("Claude/claude_desktop_config.json"),
            on(
                &[System::Linux],
                app_data("claude/claude_desktop_config.json"),
            ),
        ],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::ClaudeCode,
        title: "Claude Code",
        files: &[
            user(
                Base::Variable {
                    name: "CLAUDE_CONFIG_DIR",
                    otherwise: "",
                },
                ".claude.json",
            ),
            project(".mcp.json"),
        ],
        listing: ServerLayout::MapAndProjects,
        spelling: Spelling {
            always: &[
                ("type", Constant::Text("stdio")),
                ("alwaysLoad", Constant::True),
            ],
            ..DEFAULT_SPELLING
        },
        interpolation: Interpolation::Braces,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Cursor,
        title: "Cursor",
        files: &[home(".cursor/mcp.json"), project(".cursor/mcp.json")],
        interpolation: Interpolation::EnvPrefix,
        link: Some(Link::Cursor),
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::VsCode,
        title: "VS Code",
        files: &[
            app_data("Code/User/mcp.json"),
            app_data("Code - Insiders/User/mcp.json"),
            app_data("VSCodium/User/mcp.json"),
            project(".vscode/mcp.json"),
        ],
        key: &["servers"],
        spelling: Spelling {
            always: &[("type", Constant::Text("stdio"))],
            ..DEFAULT_SPELLING
        },
        interpolation: Interpolation::EnvPrefix,
        link: Some(Link::VsCode),
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::CopilotCli,
        title: "Copilot CLI",
        files: &[
            user(
                Base::Variable {
                    name: "COPILOT_HOME",
                    otherwise: ".copilot",
                },
                "mcp-config.json",
            ),
            project(".mcp.json"),
        ],
        spelling: Spelling {
            always: &[
                ("type", Constant::Text("local")),
                ("tools", Constant::Texts(&["*"])),
                ("deferTools", Constant::Text("never")),
            ],
            ..DEFAULT_SPELLING
        },
        interpolation: Interpolation::Dollar,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Windsurf,
        title: "Windsurf",
        files: &[
            home(".codeium/windsurf/mcp_config.json"),
            home(".codeium/mcp_config.json"),
        ],
        interpolation: Interpolation::EnvPrefix,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Zed,
        title: "Zed",
        files: &[
            on(UNIX, user(Base::Config, "zed/settings.json")),
            on(&[System::Windows], app_data("Zed/settings.json")),
            project(".zed/settings.json"),
        ],
        key: &["context_servers"],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Gemini,
        title: "Gemini CLI",
        files: &[
            home(".gemini/settings.json"),
            project(".gemini/settings.json"),
        ],
        interpolation: Interpolation::Dollar,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Antigravity,
        title: "Antigravity",
        files: &[home(".gemini/antigravity/mcp_config.json")],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Codex,
        title: "Codex",
        files: &[
            user(
                Base::Variable {
                    name: "CODEX_HOME",
                    otherwise: ".codex",
                },
                "config.toml",
            ),
            project(".codex/config.toml"),
        ],
        format: Format::Toml,
        key: &["mcp_servers"],
        interpolation: Interpolation::NamesIn("env_vars"),
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::OpenCode,
        title: "opencode",
        files: &[
            user(Base::Config, "opencode/opencode.json"),
            user(Base::Config, "opencode/opencode.jsonc"),
            project("opencode.json"),
            project("opencode.jsonc"),
        ],
        key: &["mcp"],
        spelling: Spelling {
            command: CommandSpelling::Line,
            env: "environment",
            always: &[
                ("type", Constant::Text("local")),
                ("enabled", Constant::True),
            ],
        },
        interpolation: Interpolation::Curly,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Cline,
        title: "Cline",
        files: &[
            app_data(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            app_data(
                "VSCodium/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
        ],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Roo,
        title: "Roo Code",
        files: &[
            app_data(
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            project(".roo/mcp.json"),
        ],
        interpolation: Interpolation::EnvPrefix,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Continue,
        title: "Continue",
        files: &[home(".continue/config.yaml")],
        format: Format::Yaml,
        listing: ServerLayout::List,
        interpolation: Interpolation::Template,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Goose,
        title: "Goose",
        files: &[
            on(UNIX, user(Base::Config, "goose/config.yaml")),
            on(
                &[System::Windows],
                app_data("Block/goose/config/config.yaml"),
            ),
        ],
        format: Format::Yaml,
        key: &["extensions"],
        spelling: Spelling {
            command: CommandSpelling::CmdAndArgs,
            env: "envs",
            always: &[
                ("name", Constant::Name),
                ("type", Constant::Text("stdio")),
                ("enabled", Constant::True),
            ],
        },
        interpolation: Interpolation::NamesIn("env_keys"),
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Amp,
        title: "Amp",
        files: &[
            user(Base::Config, "amp/settings.json"),
            project(".amp/settings.json"),
        ],
        key: &["amp.mcpServers"],
        interpolation: Interpolation::Braces,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::LmStudio,
        title: "LM Studio",
        files: &[
            home(".lmstudio/mcp.json"),
            home(".cache/lm-studio/mcp.json"),
        ],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Kiro,
        title: "Kiro",
        files: &[
            home(".kiro/settings/mcp.json"),
            project(".kiro/settings/mcp.json"),
        ],
        interpolation: Interpolation::Braces,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Trae,
        title: "Trae",
        files: &[app_data("Trae/User/mcp.json"), project(".trae/mcp.json")],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Qoder,
        title: "Qoder",
        files: &[home(".qoder/mcp.json")],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Factory,
        title: "Factory",
        files: &[home(".factory/mcp.json"), project(".factory/mcp.json")],
        interpolation: Interpolation::Braces,
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::Kimi,
        title: "Kimi CLI",
        files: &[home(".kimi/mcp.json")],
        ..DEFAULT_CLIENT
    },
    Client {
        name: ClientName::MistralVibe,
        title: "Mistral Vibe",
        files: &[home(".vibe/config.toml"), project(".vibe/config.toml")],
        format: Format::Toml,
        key: &["mcp_servers"],
        listing: ServerLayout::List,
        spelling: Spelling {
            always: &[("transport", Constant::Text("stdio"))],
            ..DEFAULT_SPELLING
        },
        ..DEFAULT_CLIENT
    },
];

/// Returns the description of a client.
pub fn client(name: ClientName) -> &'static Client {
    let mut clients = CLIENTS.iter();
    clients
        .find(|client| client.name == name)
        .expect("the table has every client")
}

const fn user(base: Base, path: &'static str) -> ClientFile {
    ClientFile {
        scope: Scope::User,
        systems: EVERYWHERE,
        base,
        path,
    }
}

const fn home(path: &'static str) -> ClientFile {
    user(Base::Home, path)
}

const fn app_data(path: &'static str) -> ClientFile {
    user(Base::AppData, path)
}

const fn project(path: &'static str) -> ClientFile {
    ClientFile {
        scope: Scope::Project,
        ..user(Base::Project, path)
    }
}

const fn on(systems: &'static [System], file: ClientFile) -> ClientFile {
    ClientFile { systems, ..file }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_client_is_in_the_table_once() {
        let names: Vec<ClientName> = CLIENTS.iter().map(|client| client.name).collect();
        assert_eq!(names, ClientName::value_variants());
        for system in EVERYWHERE {
            for client in CLIENTS {
                let mut files = client.files.iter();
                assert!(
                    files.any(|file| file.systems.contains(system)),
                    "{} on {system:?}",
                    client.title
                );
            }
        }
    }
}
