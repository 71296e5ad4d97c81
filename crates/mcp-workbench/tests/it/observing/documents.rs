//! Everything on the page is also a command, and both have the same documents.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{act, command, cookie, document, page_document, served};
use crate::harness::{TIMEOUT, poll};

/// The documents that the page reads, and the commands that print them.
const DOCUMENTS: [(&str, &[&str]); 8] = [
    ("servers", &["live", "servers", "--json"]),
    ("calls", &["live", "calls", "--json"]),
    ("activity", &["live", "activity", "--json"]),
    ("approvals", &["live", "approvals", "--json"]),
    ("trust", &["trust", "list", "--json"]),
    ("tools", &["list", "--tools", "--json"]),
    (
        "search?q=read",
        &[
            "search",
            "--json",
            "--explain",
            "--detail",
            "full",
            "--",
            "read",
        ],
    ),
    ("tokens", &["tokens", "--json"]),
];

#[test]
fn the_page_reads_the_documents_that_commands_print() {
    let served = served();
    let cookie = cookie(&served);
    page_document(&served, &cookie, "calls");
    let mut client = served.client();
    client.open();
    client.use_tool("read", r#"{"path":"/x"}"#);
    // The lock file is written after the answer.
    let pinned = poll(TIMEOUT, || {
        let listed = document(&served, &["trust", "list", "--json"]);
        (listed["servers"][0]["state"] == "pinned").then_some(())
    });
    pinned.expect("the lock file is written");
    for (path, command) in DOCUMENTS {
        let mut shown = page_document(&served, &cookie, path);
        let mut printed = document(&served, command);
        for document in [&mut shown, &mut printed] {
            without_moments(document);
        }
        assert_eq!(shown, printed, "{path}");
    }
    let calls = page_document(&served, &cookie, "calls");
    let id = calls["calls"][0]["id"].to_string();
    let shown = page_document(&served, &cookie, &format!("calls?id={id}"));
    assert_eq!(shown, document(&served, &["live", "calls", &id]));
}

/// Removes what differs between two moments: the memory of a process, and the age of an entry in the cache.
fn without_moments(document: &mut Value) {
    match document {
        Value::Object(members) => {
            members.retain(|name, _| name != "memory_bytes" && name != "age_seconds");
            members.values_mut().for_each(without_moments);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_moments),
        _ => {}
    }
}

#[test]
fn a_call_on_the_page_has_the_result_that_call_prints() {
    let served = served();
    let cookie = cookie(&served);
    let place = json!({"toolbox": "dev", "server": "fs", "tool": "read", "arguments": {}});
    let (status, shown) = act(&served, &cookie, "call", &place);
    assert_eq!(status, 200);
    let printed = document(&served, &["call", "dev", "fs", "read", "--json"]);
    assert_eq!(shown["result"], printed);
}

#[test]
fn a_difference_on_the_page_is_the_one_that_trust_prints() {
    let served = served();
    let cookie = cookie(&served);
    let mut shown = page_document(&served, &cookie, "trust/diff?toolbox=dev&server=fs");
    let shown = shown.as_object_mut().unwrap();
    assert!(shown.remove("digest").is_some_and(|it| it.is_string()));
    // The status of the command says that there is a difference.
    let [printed, text] = [&["--json"][..], &[]].map(|options| {
        let diff = ["trust", "diff", "dev", "fs"];
        let printed = command(&served, &[&diff, options].concat());
        assert_eq!(printed.status.code(), Some(1));
        String::from_utf8(printed.stdout).unwrap()
    });
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json!({ "servers": [shown] }), printed);
    assert!(text.contains("read"), "{text}");
    assert_eq!(printed["servers"][0]["difference"], text);
}

#[test]
fn sizes_have_the_estimate_of_tokens_that_tokens_uses() {
    let served = served();
    document(&served, &["live", "calls", "--json"]);
    let mut client = served.client();
    client.open();
    client.use_tool("read", r#"{"path":"/x"}"#);
    let calls = document(&served, &["live", "calls", "--json"]);
    let last = calls["calls"].as_array().unwrap().last().unwrap();
    let whole = document(&served, &["live", "calls", &last["id"].to_string()]);
    // {"content":[{"type":"text","text":"hi"}]} as o200k_base splits it, not a quarter of its 41 bytes.
    assert_eq!(whole["hops"][0]["result_tokens"], json!(12));
    assert_eq!(whole["reply_tokens"], json!(12));
    assert!(whole["request_tokens"].as_u64().unwrap() > 12);
    let servers = document(&served, &["live", "servers", "--json"]);
    assert_eq!(servers["servers"][0]["calls"], json!(1));
}
