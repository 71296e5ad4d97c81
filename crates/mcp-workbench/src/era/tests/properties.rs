//! The table of translations with generated messages, both ways: nothing is lost and nothing is invented. The
//! values are texts, so a number that no machine type holds counts as much as any other.

use proptest::prelude::*;
use rawjson::RawJson;

use crate::{
    era::{
        CLIENT_CAPABILITIES, CLIENT_INFO, CacheHints, InputRequest, InputRequired, LOG_LEVEL,
        PROTOCOL_VERSION, RequestMeta, cache::is_cacheable, headers, to_legacy_result,
        to_modern_error, to_modern_result, url_elicitations,
    },
    wire::tests::generate::{members, object_text},
};

/// Members of results that only the modern era has.
const OF_RESULTS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];
/// Members of `_meta` that only the modern era has.
const OF_META: [&str; 4] = [
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
];

const METHODS: [&str; 9] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "completion/complete",
    "tasks/get",
];

/// A member as key and value, each as written in the text.
type Member = (String, String);

fn json(text: &str) -> RawJson {
    RawJson::parse(&text.to_owned().into()).unwrap()
}

fn object(members: &[Member]) -> RawJson {
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    json(&format!("{{{}}}", members.join(",")))
}

/// Returns the members of an object as written, without those of some names.
fn without(value: &RawJson, names: &[&str]) -> Vec<Member> {
    let members = value.members().unwrap();
    let others = members
        .iter()
        .filter(|member| !names.contains(&member.key.as_ref()));
    others
        .map(|member| {
            let key = String::from_utf8(member.key_as_sent.to_vec()).unwrap();
            (key, member.value.as_str().to_owned())
        })
        .collect()
}

/// Members of results: anything, and sometimes what the modern era has.
fn result_members() -> impl Strategy<Value = Vec<Member>> {
    let modern = prop::sample::subsequence(
        vec![
            (r#""resultType""#, r#""complete""#),
            (r#""ttlMs""#, "1500"),
            (r#""cacheScope""#, r#""public""#),
        ],
        0..=3,
    );
    (members(), modern, members()).prop_map(|(before, modern, after)| {
        let modern = modern
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        before.into_iter().chain(modern).chain(after).collect()
    })
}

fn method() -> impl Strategy<Value = &'static str> {
    prop::sample::select(METHODS.to_vec())
}

fn is_ours(members: &[Member]) -> bool {
    let text = object(members);
    let members = text.members().unwrap();
    members
        .iter()
        .any(|member| OF_RESULTS.contains(&member.key.as_ref()))
}

proptest! {
    #[test]
    fn a_modern_result_keeps_all_members_and_gets_the_required_ones(
        method in method(), members in result_members()
    ) {
        let result = object(&members);
        let modern = to_modern_result(method, &result);
        prop_assert_eq!(without(&modern, &OF_RESULTS), without(&result, &OF_RESULTS));
        prop_assert!(modern.member("resultType").is_some());
        let hints = modern.member("ttlMs").is_some() && modern.member("cacheScope").is_some();
        prop_assert!(hints || !is_cacheable(method));
        // The hints of the result are preserved.
        prop_assert_eq!(CacheHints::of(&modern), CacheHints::of(&result));
        prop_assert_eq!(to_modern_result(method, &modern), modern);
    }

    #[test]
    fn a_legacy_result_comes_back_from_the_modern_era_as_it_was(
        method in method(), members in members()
    ) {
        prop_assume!(!is_ours(&members));
        let result = object(&members);
        let there = to_modern_result(method, &result);
        prop_assert_eq!(to_legacy_result(method, &there), result);
    }

    #[test]
    fn a_legacy_result_loses_only_modern_members(method in method(), members in result_members()) {
        let result = object(&members);
        let legacy = to_legacy_result(method, &result);
        prop_assert_eq!(legacy.member("resultType"), None);
        let names = if is_cacheable(method) { &OF_RESULTS[..] } else { &OF_RESULTS[..1] };
        prop_assert_eq!(without(&legacy, &[]), without(&result, names));
    }

    #[test]
    fn an_error_changes_its_code_at_most(code in any::<i32>(), members in members(), old in any::<bool>()) {
        let code = if old { -32002 } else { code };
        let mut all = vec![(r#""code""#.to_owned(), code.to_string())];
        all.extend(members);
        let error = object(&all);
        let modern = to_modern_error(&error);
        prop_assert_eq!(without(&modern, &["code"]), without(&error, &["code"]));
        let expected = if code == -32002 { -32602 } else { code };
        prop_assert_eq!(modern.member("code"), Some(RawJson::of(&expected)));
    }

    #[test]
    fn the_meta_of_a_request_loses_only_modern_members(
        before in members(), modern in prop::sample::subsequence(OF_META.to_vec(), 0..=4),
        value in object_text(), after in members()
    ) {
        let modern = modern.iter().map(|key| (format!("\"{key}\""), value.clone()));
        let members: Vec<Member> = before.into_iter().chain(modern).chain(after).collect();
        let meta = object(&members);
        let rest = without(&meta, &OF_META);
        let legacy = RequestMeta::read(&meta).relayed;
        prop_assert_eq!(legacy.as_ref().map(|it| without(it, &[])), (!rest.is_empty()).then_some(rest));
        prop_assert!(!legacy.is_some_and(|it| RequestMeta::read(&it).is_modern()));
    }

    #[test]
    fn questions_are_read_as_they_were_written(
        asked in prop::collection::btree_map(
            "[^\u{0}-\u{1f}]{1,8}",
            (prop::sample::select(vec!["elicitation/create", "roots/list"]), prop::option::of(object_text())),
            1..5,
        ),
        state in prop::option::of("[ -~]{0,12}")
    ) {
        let requests = asked.into_iter().map(|(key, (method, params))| InputRequest {
            key,
            method: method.to_owned(),
            params: params.map(|it| json(&it)),
        });
        let asked = InputRequired {
            requests: requests.collect(),
            state: state.map(|it| RawJson::of(&it)),
        };
        prop_assert_eq!(InputRequired::read(&asked.to_result()), Some(asked));
    }

    #[test]
    fn url_elicitations_keep_everything_but_their_ids(elicitations in prop::collection::vec(members(), 1..4)) {
        let listed: Vec<RawJson> = elicitations.iter().map(|it| object(it)).collect();
        let error = json(&format!(
            r#"{{"code":-32042,"data":{{"elicitations":{}}}}}"#,
            RawJson::array(&listed).as_str()
        ));
        let asked = url_elicitations(&error).unwrap();
        prop_assert_eq!(asked.requests.len(), listed.len());
        for (request, listed) in asked.requests.iter().zip(&listed) {
            let ours = ["elicitationId", "mode"];
            let params = request.params.as_ref().unwrap();
            prop_assert_eq!(without(params, &ours), without(listed, &ours));
            prop_assert_eq!(params.member("elicitationId"), None);
        }
    }

    #[test]
    fn every_text_survives_a_header(text in any::<String>()) {
        let value = headers::encode(&text);
        prop_assert!(value.chars().all(|c| matches!(c, ' '..='~')), "{:?}", value);
        let decoded = headers::decode(&value);
        prop_assert_eq!(decoded.as_deref(), Some(&*text));
    }
}
