//! Finding tools: `search_tools`, how much is said of each tool, which meta-tools there are, and the command `search`.

mod changes;
mod command;
mod details;
mod finding;
mod meta_tools;

use serde_json::json;

use crate::harness::{Script, Setup, Workbench};

/// The definitions of a server for files.
const FILES: &str = r#"[{"name":"read_file","description":"Read a file. It must exist.","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer","default":10},"encoding":{"enum":["utf8","base64"]}},"required":["path"]}},{"name":"delete_file","description":"Delete a file for good","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]"#;

/// The definitions of a server for the weather.
const WEATHER: &str = r#"[{"name":"forecast","description":"Forecast the weather of a city","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]"#;

/// The result of each call.
const DONE: &str = r#"{"content":[]}"#;

fn files() -> Script {
    let script = Script::new().tools(FILES);
    script
        .answers("read_file", DONE)
        .answers("delete_file", DONE)
}

/// A server for the weather.
fn weather() -> Script {
    Script::new().tools(WEATHER).answers("forecast", DONE)
}

/// The names of all meta-tools that there are for tools.
fn all_three() -> serde_json::Value {
    json!(["open_toolbox", "use_tool", "search_tools"])
}

/// Files in the toolbox `dev`, the weather in `life`, and all meta-tools.
fn two_toolboxes() -> Setup {
    Setup::one(&files())
        .toolbox("life", "Everyday things")
        .server("sky", &weather())
        .top("metaTools", all_three())
}

fn search(workbench: &mut Workbench, query: &str) -> String {
    let arguments = json!({ "query": query }).to_string();
    workbench.call("search_tools", &arguments).text().to_owned()
}
