//! Known limits of clients: the length of tool names with the client's prefix, the lengths at which descriptions
//! and instructions are cut, and the number of tools. A client without an entry has no known limits.

use super::client::ClientName;

/// The limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub name: Option<NameLimit>,
    /// The number of characters after which a tool description is silently cut.
    pub description: Option<usize>,
    /// The same for server instructions.
    pub instructions: Option<usize>,
    /// The maximum number of tools of all servers together.
    pub tools: Option<ToolLimit>,
    /// True if the client is known not to show instructions to its model.
    pub ignores_instructions: bool,
}

/// The limit of tool names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLimit {
    /// The maximum length, with the counted prefix.
    pub longest: usize,
    pub counted: CountedPrefix,
    /// The effect of a longer name.
    pub beyond: LimitEffect,
    /// True if only `A-Z a-z 0-9 _ -` are allowed.
    pub plain_letters: bool,
}

/// The prefix that counts towards the length of a tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedPrefix {
    Nothing,
    /// `mcp__<server>__`, which the client adds.
    McpPrefix,
    /// The name of the server.
    Server,
}

/// The effect of exceeding a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitEffect {
    /// The model's API rejects every request of the session.
    SessionFails,
    LeftOut,
    Shortened,
    /// The tools are only found by the client's search.
    Deferred,
}

/// The limit of the number of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLimit {
    /// The maximum number of tools of all servers.
    pub most: usize,
    pub beyond: LimitEffect,
}

/// A tool name that a client cannot use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    TooLong {
        /// The length with the counted prefix.
        length: usize,
        longest: usize,
        beyond: LimitEffect,
    },
    /// A character other than `A-Z a-z 0-9 _ -`.
    Character { character: char },
}

const UNKNOWN: Limits = Limits {
    name: None,
    description: None,
    instructions: None,
    tools: None,
    ignores_instructions: false,
};

/// The names of the Anthropic API, with the prefix of Claude Code and Claude Desktop.
const CLAUDE_NAMES: NameLimit = NameLimit {
    longest: 64,
    counted: CountedPrefix::McpPrefix,
    beyond: LimitEffect::SessionFails,
    plain_letters: true,
};

/// The length at which Claude Code cuts texts.
const CLAUDE_TEXT: usize = 2_048;

/// The known limits by client.
const LIMITS: &[(ClientName, Limits)] = &[
    (
        ClientName::ClaudeDesktop,
        Limits {
            name: Some(CLAUDE_NAMES),
            ..UNKNOWN
        },
    ),
    (
        ClientName::ClaudeCode,
        Limits {
            name: Some(CLAUDE_NAMES),
            description: Some(CLAUDE_TEXT),
            instructions: Some(CLAUDE_TEXT),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Cursor,
        Limits {
            name: Some(NameLimit {
                longest: 60,
                counted: CountedPrefix::Server,
                beyond: LimitEffect::LeftOut,
                plain_letters: false,
            }),
            tools: Some(ToolLimit {
                most: 80,
                beyond: LimitEffect::LeftOut,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::VsCode,
        Limits {
            name: Some(NameLimit {
                longest: 64,
                counted: CountedPrefix::Nothing,
                beyond: LimitEffect::SessionFails,
                plain_letters: true,
            }),
            tools: Some(ToolLimit {
                most: 128,
                beyond: LimitEffect::SessionFails,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::CopilotCli,
        Limits {
            tools: Some(ToolLimit {
                most: 30,
                beyond: LimitEffect::Deferred,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Windsurf,
        Limits {
            tools: Some(ToolLimit {
                most: 100,
                beyond: LimitEffect::LeftOut,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Gemini,
        Limits {
            name: Some(NameLimit {
                longest: 63,
                counted: CountedPrefix::Nothing,
                beyond: LimitEffect::Shortened,
                plain_letters: false,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Antigravity,
        Limits {
            tools: Some(ToolLimit {
                most: 100,
                beyond: LimitEffect::LeftOut,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Codex,
        Limits {
            name: Some(NameLimit {
                longest: 64,
                counted: CountedPrefix::McpPrefix,
                beyond: LimitEffect::Shortened,
                plain_letters: false,
            }),
            ignores_instructions: true,
            ..UNKNOWN
        },
    ),
];

pub fn limits(client: ClientName) -> Limits {
    let mut known = LIMITS.iter();
    known
        .find(|(name, _)| *name == client)
        .map_or(UNKNOWN, |(_, limits)| *limits)
}

impl NameLimit {
    /// Returns the length of a tool name as the client counts it.
    pub fn length(&self, server: &str, tool: &str) -> usize {
        let beside = match self.counted {
            CountedPrefix::Nothing => 0,
            // The prefix is `mcp__`, and `__` follows the name of the server.
            CountedPrefix::McpPrefix => "mcp____".len() + server.chars().count(),
            CountedPrefix::Server => server.chars().count(),
        };
        beside + tool.chars().count()
    }

    /// Returns the reason why the client cannot use a tool name; `server` is the name of the server in the client.
    pub fn fault(&self, server: &str, tool: &str) -> Option<NameFault> {
        let allowed = |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter);
        if self.plain_letters
            && let Some(character) = tool.chars().find(|letter| !allowed(letter))
        {
            return Some(NameFault::Character { character });
        }
        let length = self.length(server, tool);
        (length > self.longest).then_some(NameFault::TooLong {
            length,
            longest: self.longest,
            beyond: self.beyond,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_as_the_client_counts_them() {
        let fault = |client: ClientName, length: usize| {
            let name = limits(client).name.expect("a limit");
            name.fault("workbench", &"x".repeat(length))
        };
        let longest = [
            (ClientName::ClaudeCode, 64 - "mcp__workbench__".len()),
            (ClientName::Cursor, 60 - "workbench".len()),
            (ClientName::VsCode, 64),
            (ClientName::Gemini, 63),
        ];
        for (client, length) in longest {
            assert_eq!(fault(client, length), None, "{client:?}");
            assert!(
                matches!(
                    fault(client, length + 1),
                    Some(NameFault::TooLong { length, longest, .. }) if length == longest + 1
                ),
                "{client:?}"
            );
        }
    }

    #[test]
    fn characters_that_a_client_refuses_are_named() {
        let fault = |client: ClientName, tool: &str| {
            let name = limits(client).name.expect("a limit");
            name.fault("workbench", tool)
        };
        assert_eq!(fault(ClientName::ClaudeCode, "read_file-2"), None);
        assert_eq!(
            fault(ClientName::ClaudeCode, "files.read"),
            Some(NameFault::Character { character: '.' })
        );
        assert_eq!(fault(ClientName::Gemini, "files.read"), None);
    }
}
