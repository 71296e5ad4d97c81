//! Objects that are written member by member.

use bytes::Bytes;
use proptest::prelude::*;

use crate::{ObjectText, RawJson, write_string};

use super::generate::{clean_tokens, gaps, members, number, object_text, spaced};

fn raw(text: &str) -> RawJson {
    RawJson::parse(&Bytes::from(text.to_owned())).unwrap()
}

proptest! {
    #[test]
    fn an_object_is_rebuilt_member_by_member(members in members(), ours in any::<String>()) {
        let sent: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        let object = raw(&format!("{{{}}}", sent.join(",")));
        let relayed = object.members().unwrap().iter().fold(ObjectText::new(), |text, member| {
            text.relay(member)
        });
        prop_assert_eq!(&relayed.clone().finish(), &object);

        let extended = relayed.member(&ours, &ours).raw(&ours, &object).finish();
        let found = raw(extended.as_str()).members().unwrap().len();
        prop_assert_eq!(found, members.len() + 2);
        let quoted = serde_json::to_string(&ours).unwrap();
        let comma = if members.is_empty() { "" } else { "," };
        prop_assert_eq!(
            extended.as_str(),
            format!("{{{}{comma}{quoted}:{quoted},{quoted}:{}}}", sent.join(","), object.as_str())
        );
    }

    #[test]
    fn text_is_escaped_as_by_serde(text in any::<String>(), ascii in "[\\x00-\\x7f]{0,80}") {
        for text in [text, ascii] {
            let mut out = Vec::new();
            write_string(&mut out, &text);
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn kept_members_are_minified(tokens in clean_tokens(), gaps in gaps()) {
        let value = raw(&spaced(&tokens, &gaps));
        let mut out = Vec::new();
        value.minify_members_into(&mut out, |key| key.len() != 1);
        let members = value.members().unwrap_or_default();
        let kept = members.iter().filter(|it| it.key.len() != 1);
        let mut expected = Vec::new();
        for member in kept {
            expected.extend_from_slice(member.key_as_sent);
            expected.push(b':');
            member.value.minify_into(&mut expected);
            expected.push(b',');
        }
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn a_member_is_replaced_or_added_byte_for_byte(object in object_text(), number in number()) {
        let changed = raw(&object).with_member("x", &raw(&number));
        prop_assert_eq!(raw(changed.as_str()).member("x"), Some(raw(&number)));
        prop_assert_eq!(changed.without_members(&["x"]), raw(&object).without_members(&["x"]));
    }
}

#[test]
fn an_object_may_have_no_members() {
    assert_eq!(ObjectText::default().finish().as_str(), "{}");
}
