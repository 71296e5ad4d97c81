//! The `mcp-workbench` program.

fn main() {}
