//! `schema`: the JSON Schema of the configuration, for editors.

use std::process::ExitCode;

use super::output;
use crate::config::JSON_SCHEMA;

pub(super) fn run() -> ExitCode {
    output::data(JSON_SCHEMA);
    ExitCode::SUCCESS
}
