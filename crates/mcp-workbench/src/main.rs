//! The `mcp-workbench` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcp_workbench::cli::main(std::env::args_os())
}
