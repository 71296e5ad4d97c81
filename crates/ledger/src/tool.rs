//! The tools of the servers, in the script language of the fixture server. All of them return the parameters of the
//! call as `structuredContent` if they have a result.

use crate::random::Random;

/// A tool of every server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Gives back the call, as structured content and as text.
    Echo,
    /// The same after some milliseconds.
    Sleep,
    /// Reports progress three times, then gives back the call.
    Steps,
    /// Gives back the call and reports progress after that.
    LateProgress,
    /// Writes invalid lines, reports that its tools have changed, then returns the call.
    Noisy,
    /// Gives back the call twice.
    Twice,
    /// Gives back the call with `isError`.
    Fail,
    /// Answers with a JSON-RPC error.
    Refuse,
    /// Waits until it is cancelled.
    Hang,
    /// Ends the process in the middle of the call.
    Crash,
    /// Ends the process in the middle of the answer.
    HalfAnswer,
    /// Gives back the call and ends the process.
    LastWords,
}

/// Every tool, with how many of a thousand calls are its.
const WEIGHTS: [(Tool, u64); 12] = [
    (Tool::Echo, 500),
    (Tool::Sleep, 230),
    (Tool::Steps, 120),
    (Tool::LateProgress, 25),
    (Tool::Noisy, 25),
    (Tool::Twice, 25),
    (Tool::Fail, 20),
    (Tool::Refuse, 25),
    (Tool::Hang, 27),
    (Tool::Crash, 1),
    (Tool::HalfAnswer, 1),
    (Tool::LastWords, 1),
];

const RESULT: &str = r#"{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"structuredContent\":$PARAMS}}"}"#;
const ERROR_RESULT: &str = r#"{"line":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[],\"isError\":true,\"structuredContent\":$PARAMS}}"}"#;
const GARBAGE: &str = r#"{"line":"DEBUG: this is no message"},{"line":"{\"half\": "}"#;
const LIST_CHANGED: &str = r#"{"notify":{"method":"notifications/tools/list_changed"}}"#;
const HALF: &str = r#"{"stdout":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"resu"}"#;

impl Tool {
    /// Any tool, the common ones more often.
    pub(crate) fn random(random: &mut Random) -> Self {
        let total = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut left = random.below(total);
        for (tool, weight) in WEIGHTS {
            if left < weight {
                return tool;
            }
            left -= weight;
        }
        Self::Echo
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Sleep => "sleep",
            Self::Steps => "steps",
            Self::LateProgress => "late_progress",
            Self::Noisy => "noisy",
            Self::Twice => "twice",
            Self::Fail => "fail",
            Self::Refuse => "refuse",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::HalfAnswer => "half_answer",
            Self::LastWords => "last_words",
        }
    }

    /// Returns the actions of a call, as a raw array. Other tools are built into the server.
    fn actions(self) -> String {
        let actions = match self {
            Self::Echo | Self::Sleep | Self::Hang | Self::Crash => r#""builtIn""#.to_owned(),
            Self::Steps => {
                let step = |n: u32| {
                    format!(r#"{{"progress":{{"progress":{n},"total":3}}}},{{"sleepMs":1}}"#)
                };
                format!("{},{},{},{RESULT}", step(1), step(2), step(3))
            }
            Self::LateProgress => format!(r#"{RESULT},{{"progress":{{"progress":9}}}}"#),
            Self::Noisy => format!("{GARBAGE},{LIST_CHANGED},{RESULT}"),
            Self::Twice => format!("{RESULT},{RESULT}"),
            Self::Fail => ERROR_RESULT.to_owned(),
            Self::Refuse => r#"{"error":{"code":-32000,"message":"not today"}}"#.to_owned(),
            Self::HalfAnswer => format!(r#"{HALF},{{"exit":3}}"#),
            Self::LastWords => format!(r#"{RESULT},{{"exit":4}}"#),
        };
        format!("[{actions}]")
    }
}

/// The script of a server with all tools, which writes its calls to `executions`.
pub(crate) fn script(executions: &str) -> String {
    let names = WEIGHTS.iter().map(|(tool, _)| tool.name());
    let tools =
        names.map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#));
    let tools: Vec<String> = tools.collect();
    let calls: Vec<String> = WEIGHTS
        .iter()
        .map(|(tool, _)| *tool)
        .map(|tool| format!(r#""{}":{}"#, tool.name(), tool.actions()))
        .collect();
    format!(
        r#"{{"executions":{},"tools":[{}],"onCall":{{{}}}}}"#,
        serde_json::Value::from(executions),
        tools.join(","),
        calls.join(",")
    )
}
