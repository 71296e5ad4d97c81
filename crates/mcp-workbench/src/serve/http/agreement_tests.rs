use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use pretty_assertions::assert_eq;
use rawjson::RawJson;

use super::{Disagreement, PostedRequest, check, check_parameters};
use crate::wire::{CallOutline, Message, Request};

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn json(text: &str) -> RawJson {
    RawJson::parse(&text.to_owned().into()).unwrap()
}

/// Headers written as `name: value`, separated by `;`.
fn headers(text: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in text.split(';').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        let name: HeaderName = name.trim().parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn request(method: &str, members: &str, meta: &str) -> (Request, CallOutline<'static>) {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{members}"_meta":{meta}}}}}"#
    );
    let mut outline = CallOutline::default();
    match Message::parse_outlined(&text.into(), &mut outline) {
        Ok(Message::Request(request)) => (request, outline),
        other => panic!("{other:?}"),
    }
}

/// Returns the code of the refusal of a request, or 0. Its outline decides nothing.
fn refused(given: &str, (request, outline): &(Request, CallOutline<'static>)) -> String {
    let checked = |outline| check(&headers(given), &PostedRequest { request, outline });
    let none = CallOutline::default();
    assert_eq!(checked(outline), checked(&none));
    match checked(outline) {
        Ok(()) => "0".to_owned(),
        Err(problem) => {
            let frame = problem.frame(&request.id).to_vec();
            let frame = json(std::str::from_utf8(&frame).unwrap());
            assert_eq!(frame.member("id").unwrap().as_str(), "7");
            let code = frame.member("error").unwrap().member("code").unwrap();
            code.as_str().to_owned()
        }
    }
}

#[test]
fn the_revision_must_match_in_header_and_body() {
    let other = META.replace("2026-07-28", "v999");
    let none = "{}";
    let number = META.replace("\"2026-07-28\"", "1");
    for (given, meta, code) in [
        ("mcp-protocol-version:2026-07-28", META, "0"),
        ("MCP-Protocol-Version: 2026-07-28 ", META, "0"),
        ("", META, "-32020"),
        ("mcp-protocol-version:v999", META, "-32020"),
        ("mcp-protocol-version:2025-11-25", META, "-32020"),
        ("mcp-protocol-version:2026-07-28", &other, "-32020"),
        ("mcp-protocol-version:v999", &other, "-32022"),
        ("mcp-protocol-version:v999", none, "-32022"),
        ("mcp-protocol-version:2026-07-28", none, "-32602"),
        ("mcp-protocol-version:2026-07-28", "7", "-32602"),
        ("mcp-protocol-version:2026-07-28", &number, "-32602"),
        (
            "mcp-protocol-version:2026-07-28;mcp-protocol-version:2026-07-28",
            META,
            "-32020",
        ),
        ("mcp-protocol-version:\u{fc}", META, "-32020"),
    ] {
        let given = format!("{given};mcp-method:tools/list");
        let request = request("tools/list", "", meta);
        assert_eq!(refused(&given, &request), code, "{given} {meta}");
    }
}

#[test]
fn problems_of_the_body_come_before_those_of_the_headers() {
    let version = "mcp-protocol-version:2026-07-28";
    let request = request("tools/call", r#""name":"a","#, "{}");
    assert_eq!(refused(version, &request), "-32602");
}

/// Checks requests, each with its members, its headers after the revision, and the code of the refusal.
fn check_all(method: &str, cases: &[(&str, &str, &str)]) {
    for (members, given, code) in cases {
        let given = format!("mcp-protocol-version:2026-07-28;{given}");
        let request = request(method, members, META);
        assert_eq!(refused(&given, &request), *code, "{given} {members}");
    }
}

#[test]
fn the_method_header_must_match() {
    check_all(
        "tools/list",
        &[
            ("", "Mcp-Method:tools/list", "0"),
            ("", "MCP-METHOD: tools/list\t", "0"),
            ("", "mcp-method:tools/list;mcp-name:unheeded", "0"),
            ("", "", "-32020"),
            ("", "mcp-method:prompts/list", "-32020"),
            ("", "mcp-method:TOOLS/LIST", "-32020"),
            ("", "mcp-method:tools/list;mcp-method:tools/list", "-32020"),
        ],
    );
}

#[test]
fn the_name_header_must_match() {
    let echo = r#""name":"echo","#;
    for (members, name, code) in [
        (echo, "mcp-name:echo", "0"),
        (echo, "mcp-name:  echo  ", "0"),
        (echo, "mcp-name:=?base64?ZWNobw==?=", "0"),
        (echo, "mcp-name:=?base64?ZWNobw?=", "-32020"),
        (echo, "mcp-name:=?base64?ZW!!bw==?=", "-32020"),
        (echo, "mcp-name:ECHO", "-32020"),
        (echo, "mcp-name:", "-32020"),
        (echo, "mcp-name:echo;mcp-name:echo", "-32020"),
        (echo, "", "-32020"),
        // The method refuses a body without it, but a header must not have it alone.
        ("", "", "0"),
        ("", "mcp-name:echo", "-32020"),
    ] {
        let given = format!("mcp-method:tools/call;{name}");
        check_all("tools/call", &[(members, &given, code)]);
    }
    for (method, members, name, code) in [
        ("prompts/get", echo, "", "-32020"),
        (
            "resources/read",
            "\"uri\":\"u:\u{fc}\",",
            "mcp-name:=?base64?dTrDvA==?=",
            "0",
        ),
        (
            "resources/read",
            r#""uri":"u:1","#,
            "mcp-name:u:2",
            "-32020",
        ),
        (
            "resources/read",
            r#""uri":"u:1","uri":"u:2","#,
            "mcp-name:u:1",
            "-32020",
        ),
        ("tasks/get", r#""taskId":"t","#, "mcp-name:t", "0"),
        ("tasks/cancel", r#""taskId":"t","#, "", "-32020"),
    ] {
        let given = format!("mcp-method:{method};{name}");
        check_all(method, &[(members, &given, code)]);
    }
}

#[test]
fn an_unknown_revision_is_refused_with_the_known_ones() {
    let problem = Disagreement::Version("v999".to_owned());
    let (request, _) = request("tools/list", "", META);
    let frame = problem.frame(&request.id).to_vec();
    assert_eq!(
        String::from_utf8(frame).unwrap(),
        concat!(
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"Unsupported protocol version","#,
            r#""data":{"supported":["2026-07-28"],"#,
            r#""requested":"v999"}}}"#,
            "\n"
        )
    );
}

#[test]
fn marked_arguments_must_match_their_headers() {
    let schema = json(
        r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}"#,
    );
    let missing = |name: &str| Err(Disagreement::Missing(format!("mcp-param-{name}")));
    let wrong = |name: &str| Err(Disagreement::Contradicts(format!("mcp-param-{name}")));
    let duplicate = |name: &str| Err(Disagreement::Duplicate(format!("mcp-param-{name}")));
    for (given, arguments, expected) in [
        ("mcp-param-region:eu", r#"{"region":"eu"}"#, Ok(())),
        ("Mcp-Param-Region: eu ", r#"{"region":"eu"}"#, Ok(())),
        (
            "mcp-param-region:=?base64?ZXU=?=",
            r#"{"region":"eu"}"#,
            Ok(()),
        ),
        (
            "mcp-param-region:=?base64?ZXU=",
            r#"{"region":"=?base64?ZXU="}"#,
            Ok(()),
        ),
        ("mcp-param-region:ZXU=", r#"{"region":"ZXU="}"#, Ok(())),
        (
            "mcp-param-region:=?base64?ZXU?=",
            r#"{"region":"eu"}"#,
            wrong("region"),
        ),
        ("mcp-param-region:us", r#"{"region":"eu"}"#, wrong("region")),
        ("mcp-param-region:eu", "{}", wrong("region")),
        (
            "mcp-param-region:eu;mcp-param-region:eu",
            r#"{"region":"eu"}"#,
            duplicate("region"),
        ),
        ("", r#"{"region":"eu"}"#, missing("region")),
        ("mcp-param-n:1.0", r#"{"n":1}"#, Ok(())),
        ("mcp-param-n:2", r#"{"n":1}"#, wrong("n")),
        ("mcp-param-other:x", r#"{"other":"y"}"#, Ok(())),
        ("", r#"{"region":null}"#, Ok(())),
        (
            "mcp-param-region:eu",
            r#"{"region":"eu","region":"us"}"#,
            wrong("region"),
        ),
        (
            "mcp-param-region:eu",
            r#"{"region":"eu"},"arguments":{"region":"us"}"#,
            wrong("region"),
        ),
    ] {
        let params = json(&format!(r#"{{"arguments":{arguments}}}"#));
        let checked = check_parameters(&headers(given), &schema, Some(&params));
        assert_eq!(checked, expected, "{given} {arguments:?}");
    }
    assert_eq!(check_parameters(&headers(""), &schema, None), Ok(()));
    let unusable = json(r#"{"x-mcp-header":"A","properties":{}}"#);
    assert_eq!(check_parameters(&headers(""), &unusable, None), Ok(()));
}
