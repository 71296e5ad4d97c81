//! Translation of results between the eras.

use rawjson::{ObjectText, RawJson};

use super::cache::{CacheHints, SCOPE, TTL, is_cacheable};

/// The member with the type of a result.
const RESULT_TYPE: &str = "resultType";
const COMPLETE: &str = "complete";

/// The type of a modern result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultType {
    Complete,
    /// Questions that must be answered first.
    InputRequired,
    /// The id of a task that will have the result.
    Task,
    /// A type that we do not know.
    Unknown,
}

/// Returns the type of a modern result. A result without a type is complete.
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

/// Translates a result for a modern client: adds required members that it lacks, and changes nothing else.
pub(crate) fn to_modern_result(method: &str, result: &RawJson) -> RawJson {
    let members = result.members().unwrap_or_default();
    let has = |name: &str| members.iter().any(|member| member.key == name);
    let lacks_type = !has(RESULT_TYPE);
    let complete = lacks_type || result_type(result) == ResultType::Complete;
    // Questions and tasks are for one caller and one time, so they carry no hints.
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

pub(crate) fn without_type(result: &RawJson) -> RawJson {
    result.without_members(&[RESULT_TYPE])
}

/// Translates a result of a modern server for a legacy client: removes the members that only the modern era has.
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
