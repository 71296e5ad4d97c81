//! Requests of the modern era, and the answers to them: put together from raw JSON, so that every byte is the
//! test's own. Both transports are asked in the same way.

use serde_json::{Value, json};

use super::{Message, ToolResult, raw_string, use_arguments};

/// The revision of the era.
pub(crate) const MODERN: &str = "2026-07-28";

/// How many rounds of questions are answered before a test gives up.
const MOST_ROUNDS: usize = 20;

/// The prefix of the protocol's own keys in `_meta`.
const KEY: &str = "io.modelcontextprotocol/";

/// A request without its id. Parameters and `_meta` are raw members, in order.
#[derive(Debug, Clone)]
pub(crate) struct ModernRequest {
    pub(crate) method: String,
    params: Vec<(String, String)>,
    meta: Vec<(String, String)>,
}

impl ModernRequest {
    /// A request of a client that can do nothing, with what every request needs.
    pub(crate) fn new(method: &str) -> Self {
        let request = Self {
            method: method.to_owned(),
            params: Vec::new(),
            meta: Vec::new(),
        };
        request
            .meta(&format!("{KEY}protocolVersion"), &raw_string(MODERN))
            .meta(
                &format!("{KEY}clientInfo"),
                r#"{"name":"it","version":"1"}"#,
            )
            .capabilities("{}")
    }

    /// A `tools/call` with raw arguments.
    pub(crate) fn call(tool: &str, arguments: &str) -> Self {
        Self::new("tools/call")
            .param("name", &raw_string(tool))
            .param("arguments", arguments)
    }

    pub(crate) fn open(toolbox: &str) -> Self {
        Self::call("open_toolbox", &json!({"toolbox": toolbox}).to_string())
    }

    /// A `use_tool` of the toolbox `dev` and its server `fs`, with raw arguments.
    pub(crate) fn use_tool(tool: &str, arguments: &str) -> Self {
        let identifier = ["dev", "fs", tool];
        Self::call("use_tool", &use_arguments(identifier, Some(arguments)))
    }

    /// A raw parameter, in place of the one of this name.
    pub(crate) fn param(mut self, name: &str, raw: &str) -> Self {
        put(&mut self.params, name, raw);
        self
    }

    /// A raw member of `_meta`, in place of the one of this name.
    pub(crate) fn meta(mut self, name: &str, raw: &str) -> Self {
        put(&mut self.meta, name, raw);
        self
    }

    /// Takes a member of `_meta` away; one of the protocol's own is named without what all begin with.
    pub(crate) fn without_meta(mut self, name: &str) -> Self {
        let own = format!("{KEY}{name}");
        self.meta
            .retain(|(known, _)| known != name && *known != own);
        self
    }

    /// Sets the client capabilities, raw.
    pub(crate) fn capabilities(self, raw: &str) -> Self {
        self.meta(&format!("{KEY}clientCapabilities"), raw)
    }

    /// The revision that it names.
    pub(crate) fn version(self, version: &str) -> Self {
        self.meta(&format!("{KEY}protocolVersion"), &raw_string(version))
    }

    /// The least urgent log messages that it wants.
    pub(crate) fn log_level(self, level: &str) -> Self {
        self.meta(&format!("{KEY}logLevel"), &raw_string(level))
    }

    /// The raw token under which it wants progress.
    pub(crate) fn progress_token(self, raw: &str) -> Self {
        self.meta("progressToken", raw)
    }

    /// The same request again with raw answers, and with the state that came with the questions.
    pub(crate) fn retry(&self, asked: &InputRequired, responses: &str) -> Self {
        let again = match &asked.state {
            Some(state) => self.clone().param("requestState", &raw_string(state)),
            None => self.without_state(),
        };
        again.param("inputResponses", responses)
    }

    /// The same request again with the state alone.
    pub(crate) fn retry_bare(&self, asked: &InputRequired) -> Self {
        let state = asked.state.as_deref().expect("a state");
        self.without_state()
            .param("requestState", &raw_string(state))
    }

    /// The request without answers and state.
    fn without_state(&self) -> Self {
        let mut request = self.clone();
        request
            .params
            .retain(|(name, _)| name != "requestState" && name != "inputResponses");
        request
    }

    pub(crate) fn params(&self) -> String {
        let mut members = self.params.clone();
        members.push(("_meta".to_owned(), object(&self.meta)));
        object(&members)
    }

    /// The text of the request with a raw id.
    pub(crate) fn text(&self, id: &str) -> String {
        super::request_text(id, &self.method, &self.params())
    }

    /// The headers that repeat the body.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let text = |members: &[(String, String)], wanted: &str| {
            let member = members.iter().find(|(name, _)| name == wanted)?;
            serde_json::from_str::<String>(&member.1).ok()
        };
        let mut headers = vec![("mcp-method", self.method.clone())];
        let version = text(&self.meta, &format!("{KEY}protocolVersion"));
        headers.extend(version.map(|version| ("mcp-protocol-version", version)));
        let name = match self.method.as_str() {
            "tools/call" | "prompts/get" => text(&self.params, "name"),
            "resources/read" => text(&self.params, "uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => text(&self.params, "taskId"),
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name", name)));
        headers
    }
}

#[derive(Debug, Clone)]
pub(crate) struct InputRequired {
    /// The whole result as it came.
    pub(crate) raw: String,
    /// The questions by their keys, each with `method` and `params`.
    pub(crate) requests: Vec<(String, Value)>,
    /// The state to return.
    pub(crate) state: Option<String>,
}

impl InputRequired {
    /// Reads an answer, which must ask.
    pub(crate) fn of(answer: &Message) -> Self {
        assert!(asks(answer), "asks nothing: {}", answer.line);
        let result = answer.result();
        let requests = result["inputRequests"].as_object();
        let requests = requests.into_iter().flatten();
        Self {
            raw: answer.raw_result().to_owned(),
            requests: requests
                .map(|(key, it)| (key.clone(), it.clone()))
                .collect(),
            state: result["requestState"].as_str().map(str::to_owned),
        }
    }

    /// The key of the only question, and the question.
    pub(crate) fn only(&self) -> (&str, &Value) {
        let [(key, question)] = self.requests.as_slice() else {
            panic!("not one question: {}", self.raw);
        };
        (key, question)
    }

    /// The raw `inputResponses` with one raw answer for every question.
    pub(crate) fn responses(&self, mut answer: impl FnMut(&str, &Value) -> String) -> String {
        let members = self.requests.iter();
        let members = members.map(|(key, question)| (key.clone(), answer(key, question)));
        object(&members.collect::<Vec<_>>())
    }
}

pub(crate) fn asks(answer: &Message) -> bool {
    !answer.is_error() && answer.result()["resultType"] == "input_required"
}

/// A client of the modern era.
pub(crate) trait ModernClient {
    /// Sends a request with a fresh id and waits for its answer.
    fn ask_modern(&mut self, request: &ModernRequest) -> Message;

    /// Sends a request that is answered with questions.
    fn ask_for_questions(&mut self, request: &ModernRequest) -> InputRequired {
        InputRequired::of(&self.ask_modern(request))
    }

    /// Sends a `tools/call` that is answered with its result.
    fn call_modern(&mut self, request: &ModernRequest) -> ToolResult {
        let answer = self.ask_modern(request);
        assert!(!asks(&answer), "asks: {}", answer.line);
        ToolResult::of(&answer)
    }

    /// Sends a request, answers all questions round by round, and gives the last answer.
    fn answer_all(
        &mut self,
        request: &ModernRequest,
        mut answer: impl FnMut(&str, &Value) -> String,
    ) -> Message {
        let mut last = self.ask_modern(request);
        for _ in 0..MOST_ROUNDS {
            if !asks(&last) {
                return last;
            }
            let asked = InputRequired::of(&last);
            let responses = asked.responses(&mut answer);
            let retry = if asked.requests.is_empty() {
                request.retry_bare(&asked)
            } else {
                request.retry(&asked, &responses)
            };
            last = self.ask_modern(&retry);
        }
        panic!("asks for ever: {}", last.line);
    }
}

/// Puts a member in place of the one of its name, or at the end.
fn put(members: &mut Vec<(String, String)>, name: &str, raw: &str) {
    match members.iter_mut().find(|(known, _)| known == name) {
        Some((_, value)) => raw.clone_into(value),
        None => members.push((name.to_owned(), raw.to_owned())),
    }
}

/// A raw object of raw members.
fn object(members: &[(String, String)]) -> String {
    let members = members.iter();
    let members = members.map(|(name, raw)| format!("{}:{raw}", raw_string(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
