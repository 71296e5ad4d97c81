//! Topics of servers, derived from the name, the package or host, and the cached tools. Servers of one topic
//! become one toolbox.

use serde_json::json;

use super::{
    destination::Destination,
    plan::{CandidateKind, ImportCandidate, NewServer},
};
use crate::{
    clients::Identity,
    config::{Environment, parse},
    downstream::ToolCache,
};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Topic {
    pub(super) name: &'static str,
    /// The description, in the words of a user's question.
    pub(super) description: &'static str,
    /// Words in the names, packages, hosts and tools of such servers.
    words: &'static [&'static str],
}

/// The topic of servers that match no other.
pub(super) const GENERAL: &Topic = &Topic {
    name: "general",
    description: "Other tools",
    words: &[],
};

/// The topics. If a server fits several topics equally well, the first one wins.
const TOPICS: &[Topic] = &[
    Topic {
        name: "repositories",
        description: "Issues, pull requests and code on GitHub, GitLab and the like",
        words: &[
            "github",
            "githubcopilot",
            "gitlab",
            "bitbucket",
            "gitea",
            "forgejo",
            "devops",
            "pull",
        ],
    },
    Topic {
        name: "browser",
        description: "Control a web browser and inspect pages",
        words: &[
            "browser",
            "browsers",
            "playwright",
            "puppeteer",
            "chrome",
            "devtools",
            "selenium",
            "browserbase",
            "stagehand",
            "click",
        ],
    },
    Topic {
        name: "data",
        description: "Query and change databases",
        words: &[
            "postgres",
            "postgresql",
            "mysql",
            "mariadb",
            "sqlite",
            "mongo",
            "mongodb",
            "redis",
            "db",
            "database",
            "databases",
            "sql",
            "mssql",
            "supabase",
            "bigquery",
            "snowflake",
            "clickhouse",
            "duckdb",
            "motherduck",
            "neon",
            "elasticsearch",
            "neo4j",
            "qdrant",
            "table",
            "tables",
        ],
    },
    Topic {
        name: "tasks",
        description: "Issues, tickets and projects in a tracker",
        words: &[
            "jira",
            "atlassian",
            "linear",
            "asana",
            "trello",
            "clickup",
            "todoist",
            "monday",
            "shortcut",
            "youtrack",
            "ticket",
            "tickets",
            "task",
            "tasks",
            "issue",
            "issues",
        ],
    },
    Topic {
        name: "messages",
        description: "Messages, mail and calendars",
        words: &[
            "slack", "discord", "telegram", "whatsapp", "teams", "gmail", "email", "mail", "imap",
            "outlook", "calendar", "twilio", "intercom", "message", "messages", "channel",
        ],
    },
    Topic {
        name: "monitoring",
        description: "Errors, logs, metrics and alerts",
        words: &[
            "sentry",
            "grafana",
            "datadog",
            "prometheus",
            "honeycomb",
            "newrelic",
            "pagerduty",
            "axiom",
            "loki",
            "logs",
            "metrics",
            "alerts",
        ],
    },
    Topic {
        name: "cloud",
        description: "Cloud services, clusters, containers and deployments",
        words: &[
            "aws",
            "awslabs",
            "azure",
            "gcp",
            "gcloud",
            "cloudflare",
            "kubernetes",
            "k8s",
            "kubectl",
            "docker",
            "podman",
            "terraform",
            "pulumi",
            "vercel",
            "netlify",
            "heroku",
            "railway",
            "deploy",
            "deployment",
            "deployments",
        ],
    },
    Topic {
        name: "notes",
        description: "Notes, documents and memory",
        words: &[
            "notion",
            "obsidian",
            "confluence",
            "evernote",
            "gdrive",
            "drive",
            "memory",
            "notes",
            "note",
            "knowledge",
            "docs",
            "document",
            "documents",
            "entities",
        ],
    },
    Topic {
        name: "design",
        description: "Designs, diagrams and images",
        words: &[
            "figma",
            "canva",
            "blender",
            "excalidraw",
            "mermaid",
            "penpot",
            "diagram",
            "image",
            "images",
        ],
    },
    Topic {
        name: "web",
        description: "Search the web and fetch pages",
        words: &[
            "fetch",
            "search",
            "brave",
            "tavily",
            "exa",
            "firecrawl",
            "serper",
            "serpapi",
            "duckduckgo",
            "perplexity",
            "context7",
            "crawl",
            "scrape",
            "web",
            "deepwiki",
        ],
    },
    Topic {
        name: "files",
        description: "Read, write and search files; look at git history",
        words: &[
            "filesystem",
            "fs",
            "file",
            "files",
            "folder",
            "folders",
            "directory",
            "git",
            "ripgrep",
            "commander",
            "commit",
        ],
    },
];

/// Finds the topic of every new server.
pub(super) fn classify(
    candidates: &mut [ImportCandidate],
    destination: &Destination,
    environment: &Environment,
) {
    for candidate in candidates {
        if let CandidateKind::New(new) = &mut candidate.kind {
            let topic = by_name(&candidate.name, &new.identity)
                .or_else(|| best(&tool_words(new, destination, environment)))
                .or_else(|| best(&argument_words(&new.identity)));
            new.topic = topic.unwrap_or(GENERAL);
        }
    }
}

fn by_name(name: &str, identity: &Identity) -> Option<&'static Topic> {
    best(&words(&format!("{name} {}", package(identity))))
}

/// Returns the package, program or host of a server. A launcher such as `docker` says nothing about the server,
/// and neither do the folders of a path.
fn package(identity: &Identity) -> String {
    let summary = identity.summary();
    let package = match (identity, summary.split_once(' ')) {
        // The first word is the launcher, such as `npx`.
        (Identity::Program { .. }, Some((_, package))) if package != "…" => package,
        _ => &summary,
    };
    let is_path = |word: &&str| word.starts_with(['/', '.', '~']) || word.contains('\\');
    let words = package.split(' ').map(|word| {
        let file = word.rsplit(['/', '\\']).next();
        file.filter(|_| is_path(&word)).unwrap_or(word)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the words in the arguments that name what a launcher starts or connects to, such as an image behind the
/// options of `docker` or the address behind `mcp-remote`, and in the names of variables. Options and paths say nothing
/// about the server.
fn argument_words(identity: &Identity) -> Vec<String> {
    let Identity::Program {
        words: line, env, ..
    } = identity
    else {
        return Vec::new();
    };
    let is_path = |word: &&String| word.starts_with(['/', '.', '~', '-']) || word.contains('\\');
    let arguments = line.iter().skip(1).filter(|word| !is_path(word));
    let arguments = arguments.flat_map(|word| match word.split_once("://") {
        // The address of a repository says nothing about the server.
        Some((scheme, _)) if scheme.starts_with("git") => Vec::new(),
        // The path behind a host may be anything.
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            let host = host.rsplit('@').next().unwrap_or_default();
            words(&format!("{scheme} {host}"))
        }
        None => words(word),
    });
    let variables = env.iter().flat_map(|(name, _)| words(name));
    arguments.chain(variables).collect()
}

/// Returns the words in the names of the server's cached tools.
fn tool_words(
    new: &NewServer,
    destination: &Destination,
    environment: &Environment,
) -> Vec<String> {
    let config = json!({"toolboxes": {"t": {"description": "d", "mcpServers": {"s": new.entry}}}});
    let Ok(loaded) = parse(&config.to_string(), &destination.file, environment) else {
        return Vec::new();
    };
    let cache = ToolCache::of(&loaded.config);
    let toolboxes = loaded.config.toolboxes.values();
    let servers = toolboxes.flat_map(|toolbox| toolbox.servers.values());
    let tools = servers.flat_map(|server| cache.tool_names(server));
    tools.flat_map(|tool| words(tool.as_str())).collect()
}

/// Returns the topic that matches most words; the first one on a tie.
fn best(words: &[String]) -> Option<&'static Topic> {
    let mut counts = vec![0_usize; TOPICS.len()];
    for word in words {
        for (count, topic) in counts.iter_mut().zip(TOPICS) {
            *count += usize::from(topic.words.contains(&word.as_str()));
        }
    }
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let number = counts.iter().position(|count| *count == most)?;
    TOPICS.get(number)
}

fn words(text: &str) -> Vec<String> {
    text.split(|it: char| !it.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::identity;

    #[test]
    fn topics_are_derived_from_names_packages_and_hosts() {
        let program = |words: &[&str]| json!({"command": words[0], "args": words[1..]});
        let cases = [
            (
                "fs",
                program(&["npx", "-y", "@modelcontextprotocol/server-filesystem", "/x"]),
                "files",
            ),
            ("git", program(&["uvx", "mcp-server-git"]), "files"),
            (
                "gh",
                program(&["npx", "-y", "@modelcontextprotocol/server-github"]),
                "repositories",
            ),
            (
                "copilot",
                json!({"url": "https://api.githubcopilot.com/mcp/"}),
                "repositories",
            ),
            (
                "pg",
                program(&["uvx", "mcp-server-postgres", "postgres://u:p@host/d"]),
                "data",
            ),
            (
                "web",
                program(&["npx", "@playwright/mcp@latest"]),
                "browser",
            ),
            (
                "chrome",
                program(&["npx", "chrome-devtools-mcp"]),
                "browser",
            ),
            ("fetch", program(&["uvx", "mcp-server-fetch"]), "web"),
            (
                "linear",
                json!({"url": "https://mcp.linear.app/sse"}),
                "tasks",
            ),
            (
                "Slack",
                program(&["docker", "run", "-i", "--rm", "mcp/slack"]),
                "messages",
            ),
            ("f", program(&["docker", "run", "mcp/fetch"]), "web"),
            ("mine", program(&["/home/me/docs/my-server"]), "general"),
            ("mine", program(&["node", "/home/me/docs/jira.js"]), "tasks"),
            ("sql", program(&["./my-server", "--quiet"]), "data"),
        ];
        for (name, entry, expected) in cases {
            let identity = identity(&entry).expect("a server");
            let topic = by_name(name, &identity).unwrap_or(GENERAL);
            assert_eq!(topic.name, expected, "{name}");
        }
    }

    #[test]
    fn arguments_and_variables_decide_the_topic_if_nothing_else_does() {
        let image = "ghcr.io/github/github-mcp-server";
        let cases = [
            (
                &["npx", "-y", "mcp-remote", "https://mcp.linear.app/sse"][..],
                "",
                Some("tasks"),
            ),
            (
                &["docker", "run", "-i", "--rm", "-e", "A", image],
                "",
                Some("repositories"),
            ),
            (
                &["uvx", "--from", "git+https://github.com/x/y", "notion-mcp"],
                "",
                Some("notes"),
            ),
            (
                &["npx", "query", "postgres://u:slack@host/jira"],
                "",
                Some("data"),
            ),
            (&["my-server"], "SLACK_BOT_TOKEN", Some("messages")),
            (&["my-server", "--db-path", "/home/me/docs"], "", None),
        ];
        for (line, variable, expected) in cases {
            let entry = json!({"command": line[0], "args": line[1..], "env": {variable: "x"}});
            let identity = identity(&entry).expect("a server");
            assert_eq!(by_name("x", &identity), None, "{line:?}");
            let topic = best(&argument_words(&identity));
            assert_eq!(topic.map(|it| it.name), expected, "{line:?}");
        }
    }

    #[test]
    fn no_word_is_in_two_topics() {
        let all: Vec<&str> = TOPICS.iter().flat_map(|it| it.words).copied().collect();
        for (number, word) in all.iter().enumerate() {
            assert!(!all[..number].contains(word), "{word}");
        }
    }

    #[test]
    fn tools_decide_the_topic_if_the_name_does_not() {
        let topic = best(&words("read_file list_directory search_files"));
        assert_eq!(topic.map(|it| it.name), Some("files"));
    }
}
