//! Results of one era as the other era has them.

use super::cache::{CacheHints, SCOPE, TTL, is_cacheable};
use crate::wire::{ObjectText, RawJson};

/// The member that says what a result is.
const RESULT_TYPE: &str = "resultType";
const COMPLETE: &str = "complete";

/// What a modern result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultType {
    Complete,
    /// Questions that come before the answer.
    InputRequired,
    /// The name of a task whose result will be the answer.
    Task,
    /// Something that we do not know.
    Unknown,
}

/// What a result of a modern server is; one that does not say is the answer.
pub(crate) fn result_type(result: &RawJson) -> ResultType {
    let Some(name) = result.member(RESULT_TYPE) else {
        return ResultType::Complete;
    };
    match name.as_text().as_deref() {
        Some(COMPLETE) => ResultType::Complete,
        Some("input_required") => ResultType::InputRequired,
        Some("task") => ResultType::Task,
        _ => ResultType::Unknown,
    }
}

/// A result as a modern client gets it: with what the modern era requires and the result lacks. Nothing that
/// is there is changed.
pub(crate) fn to_modern_result(method: &str, result: &RawJson) -> RawJson {
    let members = result.members().unwrap_or_default();
    let has = |name: &str| members.iter().any(|member| member.key == name);
    let lacks_type = !has(RESULT_TYPE);
    let complete = lacks_type || result_type(result) == ResultType::Complete;
    let lacks_hints = complete && is_cacheable(method) && !(has(TTL) && has(SCOPE));
    if !lacks_type && !lacks_hints {
        return result.clone();
    }
    let mut text = ObjectText::new();
    if lacks_type {
        text = text.member(RESULT_TYPE, COMPLETE);
    }
    let result = members
        .iter()
        .fold(text, |text, member| text.relay(member))
        .finish();
    if lacks_hints {
        CacheHints::of(&result).put_on(&result)
    } else {
        result
    }
}

/// The answer of a modern server as a legacy client gets it: without what only the modern era has.
pub(crate) fn to_legacy_result(method: &str, result: &RawJson) -> RawJson {
    let mut modern = vec![RESULT_TYPE];
    if is_cacheable(method) {
        modern.extend([TTL, SCOPE]);
    }
    let members = result.members().unwrap_or_default();
    if members
        .iter()
        .any(|member| modern.contains(&member.key.as_ref()))
    {
        result.without_members(&modern)
    } else {
        result.clone()
    }
}
