use pretty_assertions::assert_eq;
use proptest::prelude::*;
use rawjson::RawJson;
use serde_json::{Value, json};

use super::*;

/// The least budget that a configuration can have.
const LEAST: usize = 100;
const NOTICE: &str = "[cut]";

fn raw(value: &Value) -> RawJson {
    RawJson::of(value)
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn lines(count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|n| format!("line {n}\n")).collect();
    lines.concat()
}

/// Returns the result as a client gets it, and the stored text; `None` if the result is passed on unchanged.
fn cut_as(result: &Value, budget: usize, structured: Structured) -> Option<(Value, String)> {
    let result = raw(result);
    let cut = Cut::of(&result, budget, structured)?;
    let link = raw(&json!({ "type": "resource_link", "uri": "u", "name": "n" }));
    let about = raw(&json!({ "about": true }));
    let composed = cut.compose(
        NOTICE,
        Some(&link),
        MetaMember {
            key: "key",
            value: &about,
        },
    );
    let checked = RawJson::parse(composed.as_bytes()).expect("what is composed is JSON");
    let text = cut.text().to_owned();
    Some((serde_json::from_str(checked.as_str()).unwrap(), text))
}

fn cut(result: &Value, budget: usize) -> Option<(Value, String)> {
    cut_as(result, budget, Structured::MayGo)
}

/// Returns the texts of contents, in order.
fn texts(result: &Value) -> Vec<&str> {
    let content = result["content"].as_array().unwrap();
    content
        .iter()
        .filter_map(|it| it["text"].as_str())
        .collect()
}

#[test]
fn a_text_is_cut_behind_lines_and_its_head_and_tail_stay() {
    let text = lines(100);
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    let (cut, kept) = cut(&result, LEAST).unwrap();
    assert_eq!(kept, text);
    assert_eq!(
        cut,
        json!({
            "content": [
                { "type": "text", "text": lines(10) },
                { "type": "text", "text": NOTICE },
                { "type": "text", "text": "line 97\nline 98\nline 99\n" },
                { "type": "resource_link", "uri": "u", "name": "n" },
            ],
            "isError": true,
            "_meta": { "key": { "about": true } },
        })
    );
}

#[test]
fn results_that_fit_or_are_not_tool_results_are_not_cut() {
    let long = "x".repeat(200);
    let text = json!({ "type": "text", "text": long });
    for result in [
        json!({ "content": [{ "type": "text", "text": "x".repeat(100) }] }),
        // More bytes than characters.
        json!({ "content": [{ "type": "text", "text": "\u{1f600}".repeat(100) }] }),
        json!({ "content": [{ "type": "text", "text": "\n".repeat(100) }] }),
        json!({ "content": [{ "type": "image", "data": long, "mimeType": "image/png" }] }),
        json!({ "content": [], "structuredContent": {}, "_meta": { "a": long }, "other": long }),
        json!({ "resultType": "input_required", "content": [text], "requestState": long }),
        json!({ "resultType": "task", "taskId": long }),
        json!({ "content": long }),
        json!({ "unheard": long }),
        json!([long]),
    ] {
        assert_eq!(cut(&result, LEAST), None, "{result}");
    }
    let doubled = format!(r#"{{"content":[],"content":[{text}]}}"#);
    let doubled = RawJson::parse(&doubled.into()).unwrap();
    assert!(Cut::of(&doubled, LEAST, Structured::MayGo).is_none());
}

#[test]
fn every_kind_of_content_is_cut_as_documented() {
    let long = |letter: &str| letter.repeat(80);
    let image = json!({ "type": "image", "data": long("i"), "mimeType": "image/png" });
    let audio = json!({ "type": "audio", "data": long("o"), "mimeType": "audio/wav" });
    let blob = json!({ "type": "resource", "resource": { "uri": "b:", "blob": long("b") } });
    let link = json!({ "type": "resource_link", "uri": "l:", "name": "l" });
    let strange = json!({ "type": "hologram", "x": long("h") });
    let resource = |text: &str| json!({ "type": "resource", "resource": { "uri": "r:", "text": text }, "k": 1 });
    let result = json!({
        "content": [
            { "type": "text", "text": "first", "annotations": { "priority": 1 } },
            image, resource(&long("r")), audio, strange, blob, { "type": "text", "text": "last" }, link,
        ],
    });
    let (cut, kept) = cut(&result, LEAST).unwrap();
    assert_eq!(
        kept,
        format!("first\n{}\n{strange}\nlast\n{link}", long("r"))
    );
    let own = json!({ "type": "resource_link", "uri": "u", "name": "n" });
    // The tail of 25 characters ends in a link that does not fit, and is left out with what is before it.
    assert_eq!(
        cut["content"],
        json!([
            { "type": "text", "text": "first", "annotations": { "priority": 1 } },
            image, resource(&"r".repeat(69)), { "type": "text", "text": NOTICE }, audio, blob, own,
        ])
    );
}

#[test]
fn links_are_kept_whole_or_left_out() {
    let link = |n: usize| json!({ "type": "resource_link", "uri": format!("u:{n}"), "name": "n" });
    let links: Vec<Value> = (0..20).map(link).collect();
    let (cut, kept) = cut(&json!({ "content": links }), 200).unwrap();
    let notice = json!({ "type": "text", "text": NOTICE });
    let own = json!({ "type": "resource_link", "uri": "u", "name": "n" });
    assert_eq!(
        cut["content"],
        json!([link(0), link(1), link(2), notice, link(19), own])
    );
    let joined: Vec<String> = links.iter().map(ToString::to_string).collect();
    assert_eq!(kept, joined.join("\n"));
}

#[test]
fn structured_content_is_passed_whole_or_dropped() {
    let text = "t".repeat(150);
    let content = json!([{ "type": "text", "text": text }]);
    // Small: it stays, and the text gets the rest.
    let small = json!({ "content": content, "structuredContent": { "a": 1 } });
    let (result, _) = cut(&small, LEAST).unwrap();
    assert_eq!(result["structuredContent"], json!({ "a": 1 }));
    assert_eq!(
        texts(&result),
        ["t".repeat(70).as_str(), NOTICE, &"t".repeat(23)]
    );
    // Large, and said by the text too.
    let large = json!({ "content": content, "structuredContent": { "a": text } });
    let (result, kept) = cut(&large, 200).unwrap();
    assert_eq!(result.get("structuredContent"), None);
    assert_eq!(texts(&result), [text.as_str(), NOTICE]);
    assert_eq!(kept, text);
    // Large, and the text says nothing of it.
    let alone = json!({ "content": [{ "type": "text", "text": "found" }], "structuredContent": { "a": text } });
    let (result, kept) = cut(&alone, LEAST).unwrap();
    assert_eq!(result.get("structuredContent"), None);
    assert_eq!(kept, format!("found\n{}", json!({ "a": text })));
    assert!(texts(&result)[1].starts_with("{\"a\":\"ttt"), "{result}");
    // Without contents at all.
    let bare = json!({ "structuredContent": { "a": text } });
    let (result, kept) = cut(&bare, LEAST).unwrap();
    assert_eq!(kept, json!({ "a": text }).to_string());
    assert_eq!(texts(&result).len(), 3, "{result}");
}

#[test]
fn required_structured_content_is_passed() {
    let text = "t".repeat(150);
    let content = json!([{ "type": "text", "text": text }]);
    let structured = json!({ "a": text });
    let result = json!({ "content": content, "structuredContent": structured });
    let (cut, _) = cut_as(&result, LEAST, Structured::Stays).unwrap();
    assert_eq!(cut["structuredContent"], structured);
    assert_eq!(texts(&cut), ["t".repeat(19).as_str(), NOTICE, "tttttt"]);
    let short = json!({ "content": [], "structuredContent": structured });
    assert_eq!(cut_as(&short, LEAST, Structured::Stays), None);
}

#[test]
fn members_other_than_content_are_preserved() {
    let text = format!(
        r#"{{"z":1e400,"content":[{{"type":"text","text":"{}"}}],"a\u0062":-0,"_meta":{{"own":1.10}},"z":2}}"#,
        "x".repeat(200)
    );
    let result = RawJson::parse(&text.into()).unwrap();
    let cut = Cut::of(&result, LEAST, Structured::MayGo).unwrap();
    let about = MetaMember {
        key: "key",
        value: &raw(&json!(1)),
    };
    let composed = cut.compose("n", None, about);
    assert_eq!(
        composed.as_str(),
        format!(
            r#"{{"z":1e400,"content":[{{"type":"text","text":"{}"}},{{"type":"text","text":"n"}},{{"type":"text","text":"{}"}}],"a\u0062":-0,"_meta":{{"own":1.10,"key":1}},"z":2}}"#,
            "x".repeat(75),
            "x".repeat(25)
        )
    );
}

#[test]
fn the_head_is_the_first_page() {
    let text = lines(100);
    let result = raw(&json!({ "content": [{ "type": "text", "text": text }] }));
    let cut = Cut::of(&result, LEAST, Structured::MayGo).unwrap();
    let pages = cut.pages(LEAST);
    assert_eq!(pages.page(&text, 1).map(characters), Some(cut.head));
    let joined: Vec<&str> = (1..=pages.count())
        .filter_map(|n| pages.page(&text, n))
        .collect();
    assert_eq!(joined.concat(), text);
}

#[test]
fn pages_do_not_split_a_line_end() {
    let text = format!("{}\r\n{}", "a".repeat(99), "b".repeat(99));
    let pages = Pages::of(&text, LEAST, Syntax::Plain);
    assert_eq!(pages.page(&text, 1), Some(&*"a".repeat(99)));
    assert_eq!(pages.page(&text, 0), None);
    assert_eq!([0, 98, 99, 100].map(|at| pages.page_at(at)), [1, 1, 2, 2]);
    assert_eq!(pages.page(&text, pages.count() + 1), None);
    assert_eq!(Pages::of("", LEAST, Syntax::Plain).page("", 1), Some(""));
}

#[test]
fn result_uris_are_parsed_back() {
    let of = |id: &str, view, page| Address {
        id: id.to_owned(),
        view,
        page,
    };
    for (text, address) in [
        ("mcp-workbench://result/a-_9", of("a-_9", View::Text, 1)),
        ("mcp-workbench://result/a/2", of("a", View::Text, 2)),
        ("mcp-workbench://result/a/json", of("a", View::Json, 1)),
        ("mcp-workbench://result/a/json/30", of("a", View::Json, 30)),
    ] {
        assert_eq!(address.to_string(), text);
        assert_eq!(Address::parse(text), Some(address.clone()));
        let short = text.strip_prefix("mcp-workbench://result/").unwrap();
        assert_eq!(Address::parse(short), None);
        assert_eq!(
            Address::parse_loosely(&format!(" {short}\n")),
            Some(address)
        );
    }
    for text in [
        "",
        "/2",
        "a/",
        "a/0",
        "a/02",
        "a/+2",
        "a/-1",
        "a/x",
        "a/2/3",
        "a/json/x",
        "a/json/",
        "a/json/1/1",
    ] {
        let uri = format!("mcp-workbench://result/{text}");
        assert!(is_address(&uri));
        assert_eq!(Address::parse(&uri), None, "{uri}");
    }
    assert_eq!(of("a", View::Json, 1).next(), of("a", View::Json, 2));
}

/// Generates text with awkward parts: line ends of both kinds, quotes, combining marks, characters of four bytes.
fn awkward() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("👩‍👩‍👧".to_owned()),
        Just("\\\"\u{1}".to_owned()),
        "[a-z ]{0,30}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..120).prop_map(|parts| parts.concat())
}

/// Returns a JSON string with every character escaped.
fn escaped(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", units.collect::<Vec<_>>().concat())
}

proptest! {
    #[test]
    fn pages_joined_are_the_text(text in awkward(), size in LEAST..300) {
        for syntax in [Syntax::Plain, Syntax::Json] {
            let pages = Pages::of(&text, size, syntax);
            let all: Vec<&str> = (1..=pages.count()).map(|n| pages.page(&text, n).unwrap()).collect();
            prop_assert_eq!(all.concat(), text.as_str());
            prop_assert!(all.iter().all(|page| characters(page) <= size));
            prop_assert!(all.len() == 1 || all.iter().all(|page| !page.is_empty()));
        }
    }

    #[test]
    fn pages_of_json_do_not_split_an_escape(text in awkward(), size in LEAST..300) {
        for json in [escaped(&text), json!(text).to_string()] {
            let pages = Pages::of(&json, size, Syntax::Json);
            let mut meant = String::new();
            for n in 1..=pages.count() {
                let page = pages.page(&json, n).unwrap();
                let page = if n == 1 { &page[1..] } else { page };
                let page = if n == pages.count() { &page[..page.len() - 1] } else { page };
                meant += &serde_json::from_str::<String>(&format!("\"{page}\"")).unwrap();
            }
            prop_assert_eq!(meant, text.as_str());
        }
    }

    #[test]
    fn the_shown_text_is_within_the_budget(
        parts in prop::collection::vec(awkward(), 0..5),
        structured in prop::option::of(awkward()),
        budget in LEAST..600,
    ) {
        let content: Vec<Value> = parts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let mut result = json!({ "content": content });
        if let Some(structured) = structured {
            result["structuredContent"] = json!({ "s": structured });
        }
        if let Some((cut, kept)) = cut(&result, budget) {
            let shown = texts(&cut);
            let beside = cut.get("structuredContent").map_or(0, |it| characters(&it.to_string()));
            let sum: usize = shown.iter().map(|text| characters(text)).sum();
            prop_assert!(sum - characters(NOTICE) + beside <= budget);
            let at = shown.iter().position(|text| *text == NOTICE);
            let (head, tail) = shown.split_at(at.unwrap());
            prop_assert!(kept.starts_with(&head.join("\n")));
            prop_assert!(kept.ends_with(&tail[1..].join("\n")));
            prop_assert!(kept.starts_with(&parts.join("\n")));
        }
    }
}
