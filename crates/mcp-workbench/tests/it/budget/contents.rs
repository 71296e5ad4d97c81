//! The visible part of a result that is over its budget.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Reader, about, lines, setup, text_result, uri};
use crate::harness::{Script, Setup};

#[test]
fn without_a_budget_results_come_back_byte_for_byte() {
    let text = lines(20_000);
    let raw = json!({ "content": [{ "type": "text", "text": text }], "structuredContent": { "a": text } }).to_string();
    for keys in [
        json!({}),
        json!({ "maxResultChars": 0 }),
        json!({ "maxResultChars": null }),
    ] {
        let script = Script::named(&["large"]).answers("large", &raw);
        let setup = Setup::new().toolbox("dev", "Tools");
        let mut workbench = setup.server_with("fs", &script, &keys).connect();
        workbench.open("dev");
        assert_eq!(workbench.use_tool("large", "{}").raw, raw, "{keys}");
    }
}

#[test]
fn the_budget_of_a_server_wins_over_that_of_the_file() {
    let result = text_result(&"x".repeat(1000));
    let script = Script::named(&["tool"]).answers("tool", &result.to_string());
    let mut setup = Setup::new()
        .toolbox("dev", "Tools")
        .top("maxResultChars", json!(500));
    for (name, budget) in [
        ("top", json!(null)),
        ("off", json!(0)),
        ("more", json!(1000)),
        ("less", json!(100)),
    ] {
        setup = setup.server_with(name, &script, &json!({ "maxResultChars": budget }));
    }
    let mut workbench = setup.connect();
    workbench.open("dev");
    for (server, shown) in [
        ("top", Some(500)),
        ("off", None),
        ("more", None),
        ("less", Some(100)),
    ] {
        let raw = workbench.use_tool_of(["dev", server, "tool"], "{}").raw;
        match shown {
            None => assert_eq!(raw, result.to_string(), "{server}"),
            Some(shown) => {
                let about = about(&raw);
                let sum = about["head"].as_u64().unwrap() + about["tail"].as_u64().unwrap();
                assert_eq!(sum, shown, "{server}");
            }
        }
    }
}

#[test]
fn a_text_over_the_budget_is_shown_with_head_tail_sizes_and_a_link() {
    let text = lines(100);
    let mut result = text_result(&text);
    result["isError"] = json!(true);
    result["_meta"] = json!({ "own": 1 });
    result["unheard"] = json!("of");
    let mut workbench = setup(100, &[("tool", &result)]).connect();
    workbench.open("dev");
    let raw = workbench.use_tool("tool", "{}").raw;
    let uri = uri(&raw);
    let cut: Value = serde_json::from_str(&raw).unwrap();
    let notice = format!(
        "[Cut by mcp-workbench: the result has 790 characters. Here 70 from its beginning and 24 from its end are \
         shown. The whole text is stored for a while, in 9 pages; what is above is the first. Read on with page 2: \
         {uri}/2.]"
    );
    let expected = json!({
        "content": [
            { "type": "text", "text": lines(10) },
            { "type": "text", "text": notice },
            { "type": "text", "text": "line 97\nline 98\nline 99\n" },
            {
                "type": "resource_link",
                "uri": uri,
                "name": "Result of dev/fs/tool",
                "description": format!("The whole text, in 9 pages: {uri}/2 is the second. Available for a while."),
                "mimeType": "text/plain",
            },
        ],
        "isError": true,
        "_meta": {
            "own": 1,
            "mcp-workbench/result": {
                "characters": 790, "head": 70, "tail": 24, "page_characters": 100,
                "uri": uri, "pages": 9,
                "json_uri": format!("{uri}/json"), "json_pages": cut["_meta"]["mcp-workbench/result"]["json_pages"],
                "left_out": ["text"],
            },
        },
        "unheard": "of",
    });
    assert_eq!(cut, expected);
    assert_eq!(workbench.read_on(&uri), text);
    assert_eq!(
        workbench.read_on(&format!("{uri}/json")),
        result.to_string()
    );
    assert_eq!(lines(10) + &workbench.read_on(&format!("{uri}/2")), text);
}

#[test]
fn every_type_of_content_is_in_the_result_or_in_the_pages() {
    let long = |letter: &str| letter.repeat(300);
    let image = json!({ "type": "image", "data": long("i"), "mimeType": "image/png" });
    let audio = json!({ "type": "audio", "data": long("o"), "mimeType": "audio/wav" });
    let blob = json!({ "type": "resource", "resource": { "uri": "b:", "blob": long("b") } });
    let link = json!({ "type": "resource_link", "uri": "l:", "name": "l" });
    let resource = json!({ "type": "resource", "resource": { "uri": "r:", "text": long("r") } });
    let structured = json!({ "all": long("s") });
    let content =
        json!([image, { "type": "text", "text": long("t") }, audio, link, blob, resource]);
    let result = json!({ "content": content, "structuredContent": structured });
    let mut workbench = setup(200, &[("tool", &result)]).connect();
    workbench.open("dev");
    let raw = workbench.use_tool("tool", "{}").raw;
    let cut: Value = serde_json::from_str(&raw).unwrap();
    let shown = cut["content"].as_array().unwrap();
    for kept in [&image, &audio, &blob] {
        assert!(shown.contains(kept), "{raw}");
    }
    assert!(
        !shown.contains(&link) && cut.get("structuredContent").is_none(),
        "{raw}"
    );
    let left_out = &about(&raw)["left_out"];
    assert_eq!(*left_out, json!(["text", "structuredContent"]));
    assert!(
        raw.contains("structuredContent (310 characters) is left out"),
        "{raw}"
    );
    let uri = uri(&raw);
    let text = format!("{}\n{link}\n{}", long("t"), long("r"));
    assert_eq!(workbench.read_on(&uri), text);
    assert_eq!(
        workbench.read_on(&format!("{uri}/json")),
        result.to_string()
    );
    // The link is known although it was not shown.
    assert!(
        workbench
            .read("l:")
            .error()
            .message
            .contains("Method not found")
    );
}

#[test]
fn binary_data_is_passed_on_and_does_not_count() {
    let image = json!({ "type": "image", "data": "i".repeat(5000), "mimeType": "image/png" });
    let result = json!({ "content": [image, { "type": "text", "text": "small" }] });
    let mut workbench = setup(100, &[("tool", &result)]).connect();
    workbench.open("dev");
    assert_eq!(workbench.use_tool("tool", "{}").raw, result.to_string());
}

#[test]
fn structured_content_that_repeats_the_text_is_dropped() {
    let structured = json!({ "rows": "x".repeat(700) });
    let result = json!({
        "content": [{ "type": "text", "text": structured.to_string() }],
        "structuredContent": structured,
    });
    let mut workbench = setup(1000, &[("tool", &result)]).connect();
    workbench.open("dev");
    let raw = workbench.use_tool("tool", "{}").raw;
    let cut: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!(cut["content"][0], result["content"][0]);
    assert_eq!(cut.get("structuredContent"), None);
    let link = cut["content"][2]["uri"].as_str().unwrap();
    assert!(link.ends_with("/json"), "{link}");
    assert_eq!(workbench.read_on(link), result.to_string());
}

#[test]
fn a_registered_tool_keeps_its_structured_content() {
    let structured = json!({ "rows": "x".repeat(700) });
    let result = json!({
        "content": [{ "type": "text", "text": structured.to_string() }],
        "structuredContent": structured,
    });
    let setup = setup(400, &[("tool", &result)]).top("toolMode", json!("dynamic"));
    let mut workbench = setup.connect();
    workbench.open("dev");
    let raw = workbench.call("dev__fs__tool", "{}").raw;
    let cut: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!(cut["structuredContent"], structured);
    assert_eq!(about(&raw)["left_out"], json!(["text"]));
    assert_eq!(workbench.read_on(&uri(&raw)), structured.to_string());
}

#[test]
fn native_mode_does_not_cut_results() {
    let result = text_result(&lines(1000));
    let setup = setup(100, &[("tool", &result)]);
    let setup = setup.top("toolMode", json!("native"));
    let mut workbench = setup.top("nativeToolbox", json!("dev")).connect();
    assert_eq!(workbench.call("tool", "{}").raw, result.to_string());
}

#[test]
fn a_client_without_resource_links_gets_none() {
    let result = text_result(&lines(100));
    for (revision, knows_links) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", true),
    ] {
        let mut workbench = setup(100, &[("tool", &result)]).start();
        workbench.initialize_as(revision);
        workbench.open("dev");
        let raw = workbench.use_tool("tool", "{}").raw;
        assert_eq!(
            raw.contains("resource_link"),
            knows_links,
            "{revision}: {raw}"
        );
        assert_eq!(workbench.read_on(&uri(&raw)), lines(100));
    }
}
