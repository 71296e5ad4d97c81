//! Results over their budget: what is shown of them, and the whole read in pages.

mod clients;
mod contents;
mod reading;

use serde_json::{Value, json};

use crate::harness::{HttpClient, Message, ModernClient, ModernRequest, Script, Setup, Workbench};

/// A client that reads resources.
trait Reader {
    fn read(&mut self, uri: &str) -> Message;

    /// Reads a result from a page to its end.
    fn read_on(&mut self, uri: &str) -> String {
        let mut next = Some(uri.to_owned());
        let mut text = String::new();
        while let Some(uri) = next {
            let result = self.read(&uri).result();
            let contents = &result["contents"][0];
            assert_eq!(contents["uri"], uri.as_str());
            text += contents["text"].as_str().unwrap();
            let place = &contents["_meta"]["mcp-workbench/page"];
            next = place["next"].as_str().map(str::to_owned);
            assert_eq!(next.is_none(), place["page"] == place["pages"]);
        }
        text
    }
}

impl Reader for Workbench {
    fn read(&mut self, uri: &str) -> Message {
        self.ask("resources/read", &json!({ "uri": uri }).to_string())
    }
}

impl Reader for HttpClient {
    fn read(&mut self, uri: &str) -> Message {
        self.ask("resources/read", &json!({ "uri": uri }).to_string())
    }
}

/// A client of the modern era, over whatever.
struct Modern<'a, C>(&'a mut C);

impl<C: ModernClient> Reader for Modern<'_, C> {
    fn read(&mut self, uri: &str) -> Message {
        let request = ModernRequest::new("resources/read").param("uri", &json!(uri).to_string());
        self.0.ask_modern(&request)
    }
}

/// One server whose tools answer with these results, and a budget for all servers.
fn setup(budget: u64, results: &[(&str, &Value)]) -> Setup {
    let names: Vec<&str> = results.iter().map(|(name, _)| *name).collect();
    let script = results.iter().fold(Script::named(&names), |script, it| {
        script.answers(it.0, &it.1.to_string())
    });
    Setup::one(&script).top("maxResultChars", json!(budget))
}

/// A result that is one text.
fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn lines(count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|n| format!("line {n}\n")).collect();
    lines.concat()
}

/// Returns the description of a cut result.
fn about(result: &str) -> Value {
    let result: Value = serde_json::from_str(result).unwrap();
    let about = &result["_meta"]["mcp-workbench/result"];
    assert!(about.is_object(), "not cut: {result}");
    about.clone()
}

/// The address of the text of a result that was cut.
fn uri(result: &str) -> String {
    about(result)["uri"].as_str().unwrap().to_owned()
}
