//! What the program promises, tested from outside: the real binary, fixture servers, one file a subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod architecture;
mod arguments;
mod asking_back;
mod auto_open;
mod cli_reference;
mod clients;
mod commands;
mod configuration;
mod corpus;
mod docs;
mod dynamic;
mod editing;
mod environment;
mod eras;
mod everyday;
mod failed_calls;
mod faults;
mod filters;
mod harness;
mod http_serving;
mod instructions;
mod meta_tools;
mod native;
mod never_written;
mod open_toolbox;
mod opening;
mod progress_cancel;
mod protocol;
mod reload;
mod remote_servers;
mod results;
mod shutdown;
mod starting;
mod trust;
mod use_tool;
