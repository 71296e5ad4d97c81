//! A scriptable MCP server for the tests.

fn main() {}
