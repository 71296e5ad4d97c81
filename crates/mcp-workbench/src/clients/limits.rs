//! What clients can take: how long names of tools may be with what the client puts in front, where
//! descriptions and instructions are cut, how many tools are shown. As far as it is known; a client
//! of which nothing is known has no limits here.

use super::client::ClientName;

/// What a client can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub name: Option<NameLimit>,
    /// A tool's description is cut after so many characters, without a word.
    pub description: Option<usize>,
    /// The same for the instructions of a server.
    pub instructions: Option<usize>,
    /// The number of tools of all servers together.
    pub tools: Option<ToolLimit>,
    /// Whether the client is known not to show instructions to its model.
    pub ignores_instructions: bool,
}

/// What the name of a tool may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLimit {
    /// The most characters of the name with what is counted beside it.
    pub longest: usize,
    /// What is counted beside the tool's own name.
    pub counted: Counted,
    /// What becomes of a name that is longer.
    pub beyond: Beyond,
    /// Whether only `A-Z a-z 0-9 _ -` may stand in it.
    pub plain_letters: bool,
}

/// What is counted beside a tool's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Nothing,
    /// `mcp__<server>__`, which the client puts in front.
    McpPrefix,
    /// The name of the server.
    Server,
}

/// What becomes of more than a client can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The model's interface refuses every request of the session.
    SessionFails,
    /// The tool is left out.
    LeftOut,
    Shortened,
    /// The tools are only found by a search of the client.
    Deferred,
}

/// How many tools a client shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLimit {
    /// The most tools of all servers.
    pub most: usize,
    pub beyond: Beyond,
}

/// A name that a client cannot take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    TooLong {
        /// How long it is, with what is counted beside it.
        length: usize,
        /// How long it may be.
        longest: usize,
        beyond: Beyond,
    },
    /// It holds a character other than `A-Z a-z 0-9 _ -`.
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
    counted: Counted::McpPrefix,
    beyond: Beyond::SessionFails,
    plain_letters: true,
};

/// Where Claude Code cuts texts.
const CLAUDE_TEXT: usize = 2_048;

/// What is known, client by client.
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
                counted: Counted::Server,
                beyond: Beyond::LeftOut,
                plain_letters: false,
            }),
            tools: Some(ToolLimit {
                most: 80,
                beyond: Beyond::LeftOut,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::VsCode,
        Limits {
            name: Some(NameLimit {
                longest: 64,
                counted: Counted::Nothing,
                beyond: Beyond::SessionFails,
                plain_letters: true,
            }),
            tools: Some(ToolLimit {
                most: 128,
                beyond: Beyond::SessionFails,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::CopilotCli,
        Limits {
            tools: Some(ToolLimit {
                most: 30,
                beyond: Beyond::Deferred,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Windsurf,
        Limits {
            tools: Some(ToolLimit {
                most: 100,
                beyond: Beyond::LeftOut,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Gemini,
        Limits {
            name: Some(NameLimit {
                longest: 63,
                counted: Counted::Nothing,
                beyond: Beyond::Shortened,
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
                beyond: Beyond::LeftOut,
            }),
            ..UNKNOWN
        },
    ),
    (
        ClientName::Codex,
        Limits {
            name: Some(NameLimit {
                longest: 64,
                counted: Counted::McpPrefix,
                beyond: Beyond::Shortened,
                plain_letters: false,
            }),
            ignores_instructions: true,
            ..UNKNOWN
        },
    ),
];

/// What a client can take.
pub fn limits(client: ClientName) -> Limits {
    let mut known = LIMITS.iter();
    known
        .find(|(name, _)| *name == client)
        .map_or(UNKNOWN, |(_, limits)| *limits)
}

impl NameLimit {
    /// How long the client counts the name of a tool of a server.
    pub fn length(&self, server: &str, tool: &str) -> usize {
        let beside = match self.counted {
            Counted::Nothing => 0,
            Counted::McpPrefix => "mcp____".len() + server.chars().count(),
            Counted::Server => server.chars().count(),
        };
        beside + tool.chars().count()
    }

    /// What is wrong with the name of a tool, for a server that the client knows under this name.
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
