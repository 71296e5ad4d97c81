//! Translation of errors between the eras.

use rawjson::{Kind, ObjectText, RawJson};

use super::input::{InputRequest, InputRequired};
use crate::wire::code;

/// A header and the body of a request contradict each other, or a required header is missing.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The client lacks a capability that the request needs.
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
/// The protocol revision is not supported.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The legacy code for an unknown resource.
const RESOURCE_NOT_FOUND: &str = "-32002";
/// The legacy code for a call before which the user has to visit URLs.
const URL_ELICITATION_REQUIRED: &str = "-32042";

/// Returns whether an error code identifies a modern server.
pub(crate) fn is_modern_code(error: &RawJson) -> bool {
    let code = error.member("code");
    let code = code.and_then(|code| code.as_str().parse::<i64>().ok());
    matches!(
        code,
        Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)
    )
}

/// Translates the error of a legacy server for a modern client.
pub(crate) fn to_modern_error(error: &RawJson) -> RawJson {
    if has_code(error, RESOURCE_NOT_FOUND) {
        // The modern era has no code of its own for this.
        error.with_member("code", &RawJson::of(&code::INVALID_PARAMS))
    } else {
        error.clone()
    }
}

/// Translates a legacy error that asks the user to visit URLs into the modern request for input. Returns `None` for
/// other errors. The client repeats the call afterwards.
pub(crate) fn url_elicitations(error: &RawJson) -> Option<InputRequired> {
    if !has_code(error, URL_ELICITATION_REQUIRED) {
        return None;
    }
    let wanted = error.member("data")?.member("elicitations")?.elements()?;
    let requests = wanted.into_iter().enumerate().map(|(index, elicitation)| {
        let id = elicitation.member("elicitationId");
        let id = id.and_then(|id| Some(id.as_text()?.into_owned()));
        let mut params = elicitation.without_members(&["elicitationId"]);
        // The error is about URLs only, so a server may leave the mode out. A question without it means a form.
        if params.member("mode").is_none() {
            params = params.with_member("mode", &RawJson::of(&"url"));
        }
        InputRequest {
            // The id has no place in a modern question. As the key, it comes back with the answer.
            key: id.unwrap_or_else(|| format!("url-{index}")),
            method: "elicitation/create".to_owned(),
            params: Some(params),
        }
    });
    let requests: Vec<_> = requests.collect();
    (!requests.is_empty()).then_some(InputRequired {
        requests,
        state: None,
    })
}

fn has_code(error: &RawJson, code: &str) -> bool {
    error
        .member("code")
        .is_some_and(|it| it.kind() == Kind::Number && it.as_str() == code)
}

/// Returns the error data that lists the supported versions.
pub(crate) fn unsupported_version_data(requested: &str, supported: &[&str]) -> RawJson {
    ObjectText::new()
        .member("supported", supported)
        .member("requested", requested)
        .finish()
}
