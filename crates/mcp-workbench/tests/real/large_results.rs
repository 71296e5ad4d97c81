//! The official SDKs' clients read a result that is over its budget to its end, through the link in what they are shown.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::packages::Entry;
use crate::steps::{Client, Era, Language, Shows, Step, Transport};
use crate::workbench::{TOOLBOX, use_tool};

#[test]
fn typescript_sdk_reads_a_linked_result_to_the_end() {
    read_to_the_end(Language::TypeScript);
}

#[test]
fn python_sdk_reads_a_linked_result_to_the_end() {
    read_to_the_end(Language::Python);
}

fn read_to_the_end(language: Language) {
    let lines: Vec<String> = (0..500)
        .map(|n| format!("Zeile {n}: Grüße \u{1f600}\r\n"))
        .collect();
    let text = lines.concat();
    let mut entry = Entry::everything().config();
    entry["maxResultChars"] = json!(1000);
    let echo = use_tool("everything", "echo", &json!({ "message": text }));
    let open = Step::call("open", "open_toolbox").with("arguments", json!({ "toolbox": TOOLBOX }));
    let whole = Step::new(
        "whole",
        json!({ "do": "whole", "name": "use_tool", "arguments": echo }),
    );
    for (era, transport) in [
        (Era::Legacy, Transport::Stdio),
        (Era::Modern, Transport::Http),
    ] {
        let client = Client { language, era };
        let servers = json!({ "everything": entry });
        let steps = [open.clone(), whole.clone()];
        let seen = client.take_through(&servers, Shows::MetaTools, transport, &steps);
        let whole = &seen.steps["whole"];
        assert_eq!(
            whole["shown"],
            json!(["text", "text", "text", "resource_link"])
        );
        assert_eq!(whole["text"], format!("Echo: {text}"));
        assert!(whole["pages"].as_u64() > Some(10), "{}", whole["pages"]);
    }
}
