//! Other MCP clients on a person's machine: taking over their servers, and putting the workbench into them.

mod import;
mod install;
mod machine;
mod projects;
mod undo;
