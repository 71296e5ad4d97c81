//! The `mcp-workbench` program.

use std::process::ExitCode;

/// With musl's own a call takes twice the CPU time (docs/decisions/0014-packages.md).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    mcp_workbench::main(std::env::args_os())
}
