//! `schema`: the JSON Schema of the configuration, for editors.

use std::process::ExitCode;

use super::output;
use crate::config::json_schema;

pub(super) fn run() -> ExitCode {
    output::data(&json_schema());
    ExitCode::SUCCESS
}
