use bytes::Bytes;
use pretty_assertions::assert_eq;

use super::*;

fn params(parameters: &str) -> Result<SearchToolsParams, String> {
    let parameters = RawJson::parse(&Bytes::copy_from_slice(parameters.as_bytes())).unwrap();
    read(&parameters).map_err(|failure| failure.to_string())
}

#[test]
fn missing_keys_have_their_default_value() {
    let usual = SearchToolsParams {
        query: "read a file".to_owned(),
        toolbox: None,
        detail: Detail::Signature,
        limit: DEFAULT_HITS,
    };
    assert_eq!(params(r#"{"query":"read a file"}"#), Ok(usual));
    let all = SearchToolsParams {
        query: " x ".to_owned(),
        toolbox: Some("dev".into()),
        detail: Detail::Names,
        limit: 50,
    };
    let said = r#"{"limit":50.0,"detail":"names","toolbox":"dev","query":" x "}"#;
    assert_eq!(params(said), Ok(all));
}

#[test]
fn every_problem_is_reported_in_fixed_words() {
    let long = format!(r#"{{"query":"{}"}}"#, "ü".repeat(4097));
    let rows = [
        ("{}", "Invalid parameters: query: Required"),
        ("[]", "Invalid parameters: Expected object, received array"),
        (
            r#"{"query":" "}"#,
            "Invalid parameters: query cannot be empty",
        ),
        (
            r#"{"query":5}"#,
            "Invalid parameters: query: Expected string, received number",
        ),
        (
            &long,
            "Invalid parameters: query: Expected at most 4096 characters, received 4097",
        ),
        (
            r#"{"query":"x","detail":"signatur"}"#,
            "Invalid parameters: detail: Expected 'names' | 'brief' | 'signature' | 'compact' | 'full', received 'signatur' \
             (did you mean 'signature'?)",
        ),
        (
            r#"{"query":"x","limit":"5"}"#,
            "Invalid parameters: limit: Expected number, received string",
        ),
        (
            r#"{"querry":"x","toolbox_name":"a","top_k":3,"other":1,"limit":51,"detail":true,"toolbox":""}"#,
            "Invalid parameters: Unrecognized key: 'querry' (did you mean 'query'?); \
             Unrecognized key: 'toolbox_name' (did you mean 'toolbox'?); \
             Unrecognized key: 'top_k' (did you mean 'limit'?); Unrecognized key: 'other'; \
             query: Required; toolbox cannot be empty; detail: Expected string, received boolean; \
             limit: Expected integer from 1 to 50, received 51",
        ),
    ];
    for (parameters, words) in rows {
        assert_eq!(params(parameters), Err(words.to_owned()), "{parameters}");
    }
    for limit in ["0", "-1", "2.5", "1e400", "5e0"] {
        let parameters = format!(r#"{{"query":"x","limit":{limit}}}"#);
        let words =
            format!("Invalid parameters: limit: Expected integer from 1 to 50, received {limit}");
        assert_eq!(params(&parameters), Err(words));
    }
}
