//! Clients that let their model write scripts that call tools. They do not need `run_code`.

/// The names that such clients report: Codex (`exec`), opencode and Qwen Code, which may add `-` and the name that it has
/// for the server.
const NAMES: &[&str] = &[
    "codex-mcp-client",
    "opencode",
    "qwen-cli-mcp-client",
    "qwen-code-mcp-client",
];

/// Returns whether a client of this name has a code mode of its own.
pub(crate) fn has_own_code_mode(name: Option<&str>) -> bool {
    let is = |name: &str, known: &str| {
        let rest = name.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    name.is_some_and(|name| NAMES.iter().any(|known| is(name, known)))
}
