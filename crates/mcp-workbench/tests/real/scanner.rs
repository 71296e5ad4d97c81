//! The scanner against the definitions of published servers, as they are sent today.

use bytes::Bytes;
use mcp_workbench::internal::policy::scan::{ServerTools, across, hard, instructions, scan};
use rawjson::RawJson;
use serde_json::Value;

use crate::{packages::Entry, workbench::Workbench};

/// None of their tools is withheld, which `open` would refuse, and none is reported either.
#[test]
fn published_servers_have_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let servers = Entry::one_of_each(&root);
    let mut workbench = Workbench::start(&servers);
    let opened = workbench.open();
    assert_eq!(opened.servers_connected, servers.len());
    let tools: Vec<(Value, RawJson)> = { opened.tools.iter() }
        .map(|tool| {
            let definition = RawJson::parse(&Bytes::from(tool.get().to_owned())).unwrap();
            (serde_json::from_str(tool.get()).unwrap(), definition)
        })
        .collect();
    assert!(tools.len() > 40, "only {} tools", tools.len());
    for (tool, definition) in &tools {
        assert_eq!(hard(definition), None, "{tool}");
        assert_eq!(scan(definition), [], "{tool}");
    }
    let said = opened.instructions.as_object().unwrap();
    assert!(!said.is_empty());
    for (server, text) in said {
        assert_eq!(instructions(text.as_str().unwrap()), [], "{server}");
    }
    let lists = servers.each_ref().map(|(server, _)| {
        let own = tools.iter().filter(|(tool, _)| tool["server"] == *server);
        let tools = own.map(|(tool, definition)| (tool["name"].as_str().unwrap(), definition));
        ServerTools {
            server,
            tools: tools.collect(),
        }
    });
    assert_eq!(across(&lists), []);
    workbench.session.finish();
}
