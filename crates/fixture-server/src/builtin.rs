//! The tools that need no script. Each returns a text content and the same as `structuredContent`, so that a test can
//! check either.

use std::{process, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{actions::pause, catalogue::echo, message::Request, server::Server};

/// The arguments of the built-in tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    /// `sleep`: for how long.
    ms: u64,
    /// `crash`: the exit code.
    code: u8,
    /// `big`: how many characters.
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuiltIn {
    /// Gives back the raw parameters of the call.
    Echo,
    Env,
    Cwd,
    Pid,
    Args,
    /// Answers after `ms` milliseconds.
    Sleep,
    /// Answers only a cancel, and that with a journal line.
    Hang,
    /// Exits with `code`.
    Crash,
    /// Answers with `isError`.
    Fail,
    /// Answers with `size` characters.
    Big,
}

const ALL: [BuiltIn; 10] = [
    BuiltIn::Echo,
    BuiltIn::Env,
    BuiltIn::Cwd,
    BuiltIn::Pid,
    BuiltIn::Args,
    BuiltIn::Sleep,
    BuiltIn::Hang,
    BuiltIn::Crash,
    BuiltIn::Fail,
    BuiltIn::Big,
];

impl BuiltIn {
    fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Env => "env",
            Self::Cwd => "cwd",
            Self::Pid => "pid",
            Self::Args => "args",
            Self::Sleep => "sleep",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::Fail => "fail",
            Self::Big => "big",
        }
    }
}

/// The raw definitions of all built-in tools.
pub(crate) fn definitions() -> Vec<String> {
    ALL.iter()
        .map(|tool| {
            let name = tool.name();
            format!(
                r#"{{"name":"{name}","description":"The {name} tool","inputSchema":{{"type":"object"}}}}"#
            )
        })
        .collect()
}

/// Runs the tool that the call names; an unknown one is answered with an error.
pub(crate) fn run(server: &Server, request: &Request) {
    let Some(id) = request.id.as_deref() else {
        return;
    };
    let name = request.known.name.as_deref().unwrap_or_default();
    let Some(tool) = ALL.into_iter().find(|tool| tool.name() == name) else {
        let message = format!("Unknown tool: {name}");
        let error = json!({"code": -32602, "message": message}).to_string();
        return request.output.error(id, &error);
    };
    if let Some(result) = result(tool, server, request) {
        server.answer(request, &result);
    }
}

/// Returns the raw result of a tool, or `None` if it does not respond.
fn result(tool: BuiltIn, server: &Server, request: &Request) -> Option<String> {
    let arguments = arguments(request);
    match tool {
        BuiltIn::Echo => Some(echo(request, request.params.get())),
        BuiltIn::Env => Some(echo(request, &environment())),
        BuiltIn::Cwd => {
            let cwd = std::env::current_dir().expect("a working directory");
            Some(echo(request, &json!({"cwd": cwd}).to_string()))
        }
        BuiltIn::Pid => Some(echo(request, &json!({"pid": process::id()}).to_string())),
        BuiltIn::Args => Some(echo(
            request,
            &json!({"args": server.arguments}).to_string(),
        )),
        BuiltIn::Sleep => {
            pause(Duration::from_millis(arguments.ms));
            Some(echo(request, request.params.get()))
        }
        BuiltIn::Hang => {
            server.pending.await_cancel(&request.key);
            None
        }
        BuiltIn::Crash => server.exit(arguments.code),
        BuiltIn::Fail => {
            Some(r#"{"content":[{"type":"text","text":"it failed"}],"isError":true}"#.to_owned())
        }
        BuiltIn::Big => {
            let text = "x".repeat(arguments.size);
            Some(format!(
                r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#
            ))
        }
    }
}

fn arguments(request: &Request) -> Arguments {
    let arguments = request.known.arguments.as_deref();
    arguments
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

fn environment() -> String {
    let variables = std::env::vars_os().map(|(name, value)| {
        let value = value.to_string_lossy().into_owned();
        (name.to_string_lossy().into_owned(), Value::from(value))
    });
    Value::Object(variables.collect()).to_string()
}
