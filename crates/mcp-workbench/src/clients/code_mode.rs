//! Clients that let their model write scripts that call tools. They do not need `run_code`.

/// The names that such clients report: Codex (`exec`) and opencode.
const NAMES: &[&str] = &["codex-mcp-client", "opencode"];

/// Returns whether a client of this name has a code mode of its own.
pub(crate) fn has_own_code_mode(name: Option<&str>) -> bool {
    name.is_some_and(|name| NAMES.contains(&name))
}
