//! The script of a fixture server, put together from raw JSON, so that every byte of a definition or
//! of a result is the test's own.

/// The members of a script, raw, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    members: Vec<(&'static str, String)>,
    calls: Vec<(String, String)>,
    methods: Vec<(String, String)>,
}

impl Script {
    /// A server with the built-in tools.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A server that lists tools of these names, each with an empty schema.
    pub(crate) fn named(names: &[&str]) -> Self {
        let tools: Vec<String> = names.iter().map(|name| simple_tool(name)).collect();
        Self::new().tools(&format!("[{}]", tools.join(",")))
    }

    /// The raw array of definitions.
    pub(crate) fn tools(self, raw: &str) -> Self {
        self.set("tools", raw)
    }

    /// A raw member of the script.
    pub(crate) fn set(mut self, name: &'static str, raw: &str) -> Self {
        self.members.push((name, raw.to_owned()));
        self
    }

    /// Sets the actions of a call of this tool: a raw array.
    pub(crate) fn on_call(mut self, tool: &str, actions: &str) -> Self {
        self.calls.push((tool.to_owned(), actions.to_owned()));
        self
    }

    /// A tool that is called and answers with this raw result.
    pub(crate) fn answers(self, tool: &str, result: &str) -> Self {
        self.on_call(tool, &format!(r#"[{{"answer":{result}}}]"#))
    }

    /// Sets the actions that replace the usual response of this method: a raw array.
    pub(crate) fn on_method(mut self, method: &str, actions: &str) -> Self {
        self.methods.push((method.to_owned(), actions.to_owned()));
        self
    }

    /// The text of the script.
    pub(crate) fn text(&self) -> String {
        let mut members: Vec<String> = self
            .members
            .iter()
            .map(|(name, raw)| format!("\"{name}\":{raw}"))
            .collect();
        members.push(format!("\"onCall\":{}", object(&self.calls)));
        members.push(format!("\"onMethod\":{}", object(&self.methods)));
        format!("{{{}}}", members.join(","))
    }
}

/// The smallest definition of a tool.
fn simple_tool(name: &str) -> String {
    format!(
        r#"{{"name":{},"inputSchema":{{"type":"object"}}}}"#,
        raw_string(name)
    )
}

/// A text as a raw JSON string.
pub(crate) fn raw_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, raw)| format!("{}:{raw}", raw_string(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}
