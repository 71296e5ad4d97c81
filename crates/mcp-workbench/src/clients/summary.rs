//! Summarizes a server without secrets. Arguments and URLs may contain secrets, so only words that are surely
//! names are shown.

use super::identity::{Identity, stem};

/// Programs whose first plain argument is the package or script that they start.
const LAUNCHERS_WITH_NAME: &[&str] = &[
    "npx", "bunx", "pnpx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "uv", "pnpm",
    "yarn", "docker", "podman", "dnx",
];

/// Subcommands that precede the name.
const SUBCOMMANDS: &[&str] = &["run", "exec", "dlx", "x", "tool"];

/// Options without a value.
const PLAIN_FLAGS: &[&str] = &["-y", "--yes", "-i", "-t", "-m", "--rm", "--init"];

impl Identity {
    /// Returns a short description of the server.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Program { words, .. } => program(words),
            Self::Remote { url } => origin(url),
        }
    }
}

fn program(words: &[String]) -> String {
    let Some((command, arguments)) = words.split_first() else {
        return String::new();
    };
    let mut shown = vec![command.as_str()];
    if LAUNCHERS_WITH_NAME.contains(&stem(command).as_str()) {
        for word in arguments {
            let is_flag = PLAIN_FLAGS.contains(&word.as_str());
            // The value of an option may be a secret, so nothing is shown from the first unknown option on.
            if !is_flag && !is_name(word) {
                break;
            }
            shown.push(word);
            if !is_flag && !SUBCOMMANDS.contains(&word.as_str()) {
                break;
            }
        }
    }
    let rest = if shown.len() <= arguments.len() {
        " …"
    } else {
        ""
    };
    format!("{}{rest}", shown.join(" "))
}

/// Returns true if a word looks like the name of a package or script.
fn is_name(word: &str) -> bool {
    !word.starts_with('-')
        && word
            .chars()
            .all(|it| it.is_alphanumeric() || "@/._-[]:\\".contains(it))
        && !word.contains("://")
}

/// Returns a URL without path, query and credentials: any of them may be a secret.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "a remote server".to_owned();
    };
    let host = rest
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default()
        .rsplit('@')
        .next()
        .unwrap_or_default();
    let more = if rest.trim_end_matches('/') == host {
        ""
    } else {
        "/…"
    };
    format!("{scheme}://{host}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_show_names_and_no_values() {
        let cases = [
            ("npx -y @scope/server-github", "npx -y @scope/server-github"),
            (
                "npx -y mcp-remote https://host/hunter2",
                "npx -y mcp-remote …",
            ),
            (
                "uvx mcp-server-time --token hunter2",
                "uvx mcp-server-time …",
            ),
            (
                "docker run -i --rm -e TOKEN=hunter2 image",
                "docker run -i --rm …",
            ),
            ("python -c print(hunter2)", "python …"),
            ("node --token=hunter2 x.js", "node …"),
            ("node https://host/hunter2", "node …"),
            ("/opt/server hunter2", "/opt/server …"),
            ("server", "server"),
        ];
        for (line, expected) in cases {
            let words = line.split(' ').map(str::to_owned).collect();
            let identity = Identity::Program {
                words,
                env: Vec::new(),
                directory: None,
            };
            assert_eq!(identity.summary(), expected);
        }
        let cases = [
            ("https://host", "https://host"),
            (
                "https://user:hunter2@host:80/hunter2?x=hunter2",
                "https://host:80/…",
            ),
            ("${URL}", "a remote server"),
        ];
        for (url, expected) in cases {
            let identity = Identity::Remote { url: url.into() };
            assert_eq!(identity.summary(), expected);
        }
    }
}
