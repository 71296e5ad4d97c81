//! Ids of invalid messages: the right one or none, and never one that is not JSON.

use bytes::Bytes;
use proptest::prelude::*;
use rawjson::RawJson;
use serde::de::IgnoredAny;

use super::{
    super::{RequestId, id_from_head, id_from_tail, recover_id},
    generate::{clean_string, damaged, number, object_text},
};

fn ids() -> impl Strategy<Value = String> {
    prop_oneof![number(), clean_string()]
}

fn id(text: &str) -> RequestId {
    RequestId::from_json(RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn an_id_in_front_is_found(id_text in ids(), rest in damaged(), body in object_text()) {
        let head = format!(r#"{{"jsonrpc":"2.0","x":{body},"id":{id_text},"result":"#);
        let head = [head.as_bytes(), &rest].concat();
        prop_assert_eq!(id_from_head(&head), Some(id(&id_text)));
        prop_assert_eq!(recover_id(&head), Some(id(&id_text)));
    }

    #[test]
    fn an_id_at_the_end_is_found(id_text in ids(), rest in damaged(), body in object_text()) {
        let tail = format!(r#","result":{body},"id":{id_text} , "jsonrpc":"2.0"}}"#);
        let tail = [&rest, tail.as_bytes()].concat();
        prop_assert_eq!(id_from_tail(&tail), Some(id(&id_text)));
    }

    #[test]
    fn a_recovered_id_is_json(text in damaged(), key in 0_usize..4) {
        let key = [r#"{"id":"#, r#"{"a\n"#, r#"{"\u0069d"#, ""][key];
        let text = [key.as_bytes(), &text, br#","id":"\t"}"#].concat();
        let found = [id_from_head(&text), id_from_tail(&text), recover_id(&text)];
        for id in found.into_iter().flatten() {
            let json = serde_json::from_slice::<IgnoredAny>(id.as_bytes());
            prop_assert!(json.is_ok(), "{:?}", id);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let quoted = [b"{\"\\n", &bytes[..], b"\":1,\"id\":7}"].concat();
        let found = recover_id(&quoted).and_then(|id| id.as_u64());
        prop_assert!(found.is_none_or(|id| id == 7) || bytes.contains(&b'"'));
    }
}

#[test]
fn an_id_after_broken_text_is_found() {
    let cases: [(&[u8], Option<&str>); 6] = [
        (b"{\"\\n\xff\":1,\"id\":7,", Some("7")),
        (b"{\"a\":\"\xff\",\"id\":7,", None),
        (b"{\"id\":\"a\tb\",\"x\":", None),
        (b"{\"id\":\"\xff\",\"x\":", None),
        (b"{\"id\":\"\\ud800\",\"x\":", Some(r#""\ud800""#)),
        (b"{\"\\u0069d\":7,\"x\":", Some("7")),
    ];
    for (head, expected) in cases {
        assert_eq!(
            id_from_head(head),
            expected.map(id),
            "{}",
            head.escape_ascii()
        );
    }
}
