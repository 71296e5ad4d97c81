//! The table of translations, row by row.

use rawjson::RawJson;

use crate::{
    era::{
        CacheHints, CacheScope, InputRequired, MetaProblem, RequestMeta, ResultType,
        is_modern_code, result_type, to_legacy_result, to_modern_error, to_modern_result,
        url_elicitations,
    },
    wire::{CallOutline, Message},
};

fn json(text: &str) -> RawJson {
    RawJson::parse(&text.to_owned().into()).unwrap()
}

#[test]
fn results_get_the_members_that_the_modern_era_requires() {
    for (method, legacy, modern) in [
        (
            "tools/call",
            r#"{"content":[],"n":1e400}"#,
            r#"{"resultType":"complete","content":[],"n":1e400}"#,
        ),
        ("tools/call", "{}", r#"{"resultType":"complete"}"#),
        (
            "resources/read",
            r#"{"contents":[]}"#,
            r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}"#,
        ),
        (
            "tools/list",
            r#"{"tools":[],"ttlMs":5,"cacheScope":"public","resultType":"complete"}"#,
            r#"{"tools":[],"ttlMs":5,"cacheScope":"public","resultType":"complete"}"#,
        ),
        (
            "tools/list",
            r#"{"tools":[],"ttlMs":5}"#,
            r#"{"resultType":"complete","tools":[],"ttlMs":5,"cacheScope":"private"}"#,
        ),
        (
            "resources/read",
            r#"{"resultType":"input_required","requestState":"s"}"#,
            r#"{"resultType":"input_required","requestState":"s"}"#,
        ),
    ] {
        let translated = to_modern_result(method, &json(legacy));
        assert_eq!(translated.as_str(), modern, "{method} {legacy}");
    }
}

#[test]
fn results_lose_the_members_that_only_the_modern_era_has() {
    for (method, modern, legacy) in [
        (
            "tools/call",
            r#"{"resultType":"complete","content":[] ,"ttlMs":7}"#,
            r#"{"content":[],"ttlMs":7}"#,
        ),
        (
            "resources/read",
            r#"{"contents":[],"ttlMs":1,"cacheScope":"public","resultType":"complete","x":1}"#,
            r#"{"contents":[],"x":1}"#,
        ),
        ("tools/call", r#"{"a": 1}"#, r#"{"a": 1}"#),
    ] {
        let translated = to_legacy_result(method, &json(modern));
        assert_eq!(translated.as_str(), legacy, "{method} {modern}");
    }
}

#[test]
fn the_result_type_is_read() {
    for (result, expected) in [
        ("{}", ResultType::Complete),
        (r#"{"resultType":"complete"}"#, ResultType::Complete),
        (
            r#"{"resultType":"input_required"}"#,
            ResultType::InputRequired,
        ),
        (r#"{"resultType":"task"}"#, ResultType::Task),
        (r#"{"resultType":"other"}"#, ResultType::Unknown),
        (r#"{"resultType":1}"#, ResultType::Unknown),
    ] {
        assert_eq!(result_type(&json(result)), expected, "{result}");
    }
}

#[test]
fn hints_of_several_results_are_the_strictest() {
    let hints = |text: &str| CacheHints::of(&json(text));
    let long = hints(r#"{"ttlMs":9000,"cacheScope":"public"}"#);
    assert_eq!((long.ttl_ms, long.scope), (9000, CacheScope::Public));
    let short = hints(r#"{"ttlMs":10,"cacheScope":"public"}"#);
    assert_eq!(long.and(short), short);
    assert_eq!(long.and(hints("{}")), CacheHints::NONE);
    assert_eq!(
        hints(r#"{"ttlMs":-1,"cacheScope":"own"}"#),
        CacheHints::NONE
    );
}

#[test]
fn errors_have_the_codes_of_the_modern_era() {
    for (legacy, modern) in [
        (
            r#"{"code":-32002,"message":"m","data":{"uri":"u"}}"#,
            r#"{"code":-32602,"message":"m","data":{"uri":"u"}}"#,
        ),
        (r#"{"code": -32001,"x":1}"#, r#"{"code": -32001,"x":1}"#),
    ] {
        assert_eq!(to_modern_error(&json(legacy)).as_str(), modern);
    }
    for (error, modern) in [
        (r#"{"code":-32020}"#, true),
        (r#"{"code":-32021}"#, true),
        (r#"{"code":-32022}"#, true),
        (r#"{"code":-32601}"#, false),
        ("{}", false),
    ] {
        assert_eq!(is_modern_code(&json(error)), modern, "{error}");
    }
}

#[test]
fn url_elicitation_errors_become_questions() {
    let error = json(
        r#"{"code":-32042,"message":"m","data":{"elicitations":[
            {"mode":"url","elicitationId":"e-1","url":"https://a","message":"go"},
            {"url":"https://b","message":"on"}]}}"#,
    );
    let asked = url_elicitations(&error).unwrap().to_result();
    assert_eq!(
        asked.minified().as_str(),
        concat!(
            r#"{"resultType":"input_required","inputRequests":{"#,
            r#""e-1":{"method":"elicitation/create","params":{"mode":"url","url":"https://a","message":"go"}},"#,
            r#""url-1":{"method":"elicitation/create","params":{"url":"https://b","message":"on","mode":"url"}}}}"#
        )
    );
    for other in [
        r#"{"code":-32042}"#,
        r#"{"code":-32042,"data":{"elicitations":[]}}"#,
        r#"{"code":-32000,"data":{"elicitations":[{"url":"u"}]}}"#,
    ] {
        assert_eq!(url_elicitations(&json(other)), None, "{other}");
    }
}

#[test]
fn questions_are_read_as_they_are_written() {
    let text = concat!(
        r#"{"resultType":"input_required","inputRequests":{"#,
        r#""a":{"method":"elicitation/create","params":{"message":"m"}},"#,
        r#""b":{"method":"roots/list"}},"requestState":"s \u00fc"}"#
    );
    let read = InputRequired::read(&json(text)).unwrap();
    assert_eq!(read.requests.len(), 2);
    assert_eq!(read.to_result().as_str(), text);
    for broken in [
        r#"{"resultType":"input_required"}"#,
        r#"{"inputRequests":{}}"#,
        r#"{"inputRequests":[]}"#,
        r#"{"inputRequests":{"a":{}}}"#,
    ] {
        assert_eq!(InputRequired::read(&json(broken)), None, "{broken}");
    }
}

#[test]
fn the_meta_of_a_modern_request_is_read() {
    let meta = json(
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00-a",
            "io.modelcontextprotocol/clientCapabilities":{"roots":{}},
            "io.modelcontextprotocol/clientInfo":{"name":"c"},
            "io.modelcontextprotocol/logLevel":"info","progressToken":1}"#,
    );
    let mut request = RequestMeta::read(&meta);
    assert!(request.is_modern());
    assert_eq!(request.progress_token, Some(json("1")));
    assert_eq!(request.relayed, Some(json(r#"{"traceparent":"00-a"}"#)));
    let read = request.take_modern().unwrap();
    assert!(read.is_current());
    assert_eq!(read.capabilities.as_str(), r#"{"roots":{}}"#);
    assert_eq!(read.log_level.as_deref(), Some("info"));
    let only = RequestMeta::read(&json(r#"{"io.modelcontextprotocol/clientInfo":{}}"#));
    assert_eq!(only.relayed, None);
    let legacy = json(r#"{ "a": 1, "progressToken\u0020": 2 }"#);
    let read = RequestMeta::read(&legacy);
    assert!(!read.is_modern());
    assert_eq!(read.relayed, Some(legacy), "nothing is copied");
}

#[test]
fn the_meta_of_a_call_is_read_from_its_outline_as_from_its_text() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    for meta in [
        "{}".to_owned(),
        "1".to_owned(),
        r#"{ "traceparent" : "00-a" }"#.to_owned(),
        format!("{{{version}}}"),
        format!(r#"{{ "a": [1], {version}, "progressToken":1 , "b":{{}} }}"#),
        format!(r#"{{"a":1,"b":2,"c":3,"d":4,{version}}}"#),
        format!(r#"{{"a":1,"b":2,"c":3,"d":4,"e":5,{version}}}"#),
        format!(r#"{{"a":1,"a":2,{version}}}"#),
        format!(r#"{{"\u0061":1,{version}}}"#),
        format!("{{{version},{version}}}"),
    ] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","_meta":{meta}}}}}"#
        );
        let mut outline = CallOutline::default();
        let message = Message::parse_outlined(&call.into(), &mut outline);
        let Ok(Message::Request(request)) = message else {
            panic!("{message:?}");
        };
        let read = RequestMeta::of_request(request.params.as_ref(), &outline);
        assert_eq!(read, Some(RequestMeta::read(&json(&meta))), "{meta}");
        let is_modern = RequestMeta::makes_modern(request.params.as_ref(), &outline);
        assert_eq!(is_modern, meta.contains("2026"), "{meta}");
    }
}

#[test]
fn a_modern_request_without_client_info_is_refused() {
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    for (meta, problem) in [
        ("{}".to_owned(), MetaProblem::Missing(VERSION)),
        (
            format!(r#"{{"{VERSION}":1}}"#),
            MetaProblem::WrongType(VERSION, "a string"),
        ),
        (
            format!(r#"{{"{VERSION}":"v"}}"#),
            MetaProblem::Missing(CAPABILITIES),
        ),
        (
            format!(r#"{{"{VERSION}":"v","{CAPABILITIES}":null}}"#),
            MetaProblem::WrongType(CAPABILITIES, "an object"),
        ),
        (
            format!(r#"{{"{VERSION}":"v","{VERSION}":"w"}}"#),
            MetaProblem::Duplicate(VERSION),
        ),
    ] {
        assert_eq!(
            RequestMeta::read(&json(&meta)).take_modern(),
            Err(problem),
            "{meta}"
        );
    }
    assert_eq!(
        RequestMeta::default().take_modern(),
        Err(MetaProblem::Missing(VERSION))
    );
}
