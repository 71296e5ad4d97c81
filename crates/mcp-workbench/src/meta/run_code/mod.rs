//! `run_code`: runs a script that calls many tools, and returns only its final value. Each call of the script takes the same
//! pipeline as any other; the script itself runs in a worker process.

mod caller;
mod emitted;
mod inner_call;
mod names;
mod report;
mod run;
mod types;
mod value;

use std::{sync::Arc, time::Duration};

use rawjson::{Kind, RawJson};
use serde_json::json;

use super::{
    failure::Failure,
    hints,
    parameters::{Key, ParameterProblem, ParameterReader, near_key},
};
use crate::{call::CallContext, config::MetaTool, workbench::Workbench};
pub(crate) use run::run_script;
pub(crate) use types::declarations;

const CODE: Key = Key {
    name: "code",
    path: "code",
};
const TIMEOUT: Key = Key {
    name: "timeout_s",
    path: "timeout_s",
};
const KEYS: [Key; 2] = [CODE, TIMEOUT];

/// The longest script, in characters.
pub(crate) const MAX_CODE_CHARACTERS: usize = 64 * 1024;
/// The time that a run has, without the time in which the client is asked.
pub(crate) const DEFAULT_TIMEOUT_S: usize = 30;
pub(crate) const MAX_TIMEOUT_S: usize = 120;

/// Returns the definition, which has the same size for any number of tools. The workers are started ahead, since a client
/// that sees the tool may use it.
pub(super) fn definition(workbench: &Workbench) -> RawJson {
    workbench.scripts().warm_up();
    RawJson::of(&json!({
        "name": MetaTool::RunCode.name(),
        "title": "Run code",
        "description": "Run JavaScript that calls many tools and returns only the final value. Body of an async function: \
                        use `await` and `return`.\n\
                        tools.<server>.<tool>(args) of open toolboxes -> Promise of the result as a value. \
                        tools.search(query) and tools.describe(name) give signatures; results.read(id) reads a cut result. \
                        Run independent calls with Promise.all. A failed tool throws ToolError {tool, code, outcome, \
                        message}. console.log is returned too; emit(part) hands an image or link of a result to the user. No network, files, imports, timers. Limits: 2 s CPU, 64 MB, \
                        100 calls, 32 KB result.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": { "type": "string", "minLength": 1 },
                "timeout_s": {
                    "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_S, "default": DEFAULT_TIMEOUT_S,
                },
            },
            "required": ["code"],
            "additionalProperties": false,
        },
        "_meta": hints(),
    }))
}

/// Runs the script that the arguments hold.
pub(super) async fn run(
    workbench: &Arc<Workbench>,
    arguments: &RawJson,
    context: &CallContext,
) -> Result<RawJson, Failure> {
    let RunCodeParams { code, timeout } = RunCodeParams::read(arguments)?;
    let report = run_script(workbench, &code, timeout, context)
        .await
        .map_err(|error| Failure::NoWorker { error })?;
    Ok(report.to_result(&code))
}

struct RunCodeParams {
    code: String,
    timeout: Duration,
}

impl RunCodeParams {
    fn read(arguments: &RawJson) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let hint = |key: &str| match key {
            "timeout" | "timeout_ms" => Some("did you mean 'timeout_s'?".to_owned()),
            "script" | "source" | "javascript" => Some("did you mean 'code'?".to_owned()),
            key => near_key(key, &KEYS),
        };
        let reader = ParameterReader::read(arguments, "", &KEYS, hint, &mut problems);
        let code = match arguments.kind() {
            Kind::Object => reader.name(&CODE, &mut problems),
            _ => None,
        };
        let seconds = reader.integer(&TIMEOUT, 1..=MAX_TIMEOUT_S, &mut problems);
        let received = code.as_ref().map_or(0, |code| code.chars().count());
        if received > MAX_CODE_CHARACTERS {
            problems.push(ParameterProblem::TooLong {
                path: CODE.path,
                longest: MAX_CODE_CHARACTERS,
                received,
            });
        }
        let Some(code) = code.filter(|_| problems.is_empty()) else {
            return Err(Failure::InvalidParameters {
                problems,
                available: None,
            });
        };
        let seconds = seconds.unwrap_or(DEFAULT_TIMEOUT_S);
        Ok(Self {
            code: code.into_owned(),
            timeout: Duration::from_secs(seconds as u64),
        })
    }
}
