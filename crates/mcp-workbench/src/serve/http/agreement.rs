//! Checks that the headers of a request without a session match its body. A proxy between a client and us may have
//! checked the headers alone, so a mismatch is refused before anything is done.

use std::borrow::Cow;

use hyper::{
    HeaderMap,
    header::{GetAll, HeaderName, HeaderValue},
};
use rawjson::{ObjectText, RawJson};
use thiserror::Error;

use crate::{
    era::{
        self, HEADER_MISMATCH, MODERN_REVISION, MetaProblem, RequestMeta, UNSUPPORTED_VERSION,
        headers::{self, ParameterHeader, decode, name_member},
    },
    serve::log_level::LogLevel,
    wire::{self, CallOutline, Frame, Outlined, Request, RequestId, code},
};

// Parsed once: every request without a session looks these up.
static METHOD: HeaderName = HeaderName::from_static(headers::METHOD);
static NAME: HeaderName = HeaderName::from_static(headers::NAME);
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(headers::PROTOCOL_VERSION);

/// A reason why a request without a session is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Disagreement {
    #[error("Header mismatch: {0} is required")]
    Missing(String),
    #[error("Header mismatch: {0} appears more than once")]
    Duplicate(String),
    /// The value of a header is malformed.
    #[error("Header mismatch: {0} has an invalid value")]
    Unreadable(String),
    /// The value of a header differs from the body.
    #[error("Header mismatch: {0} does not match the body")]
    Contradicts(String),
    /// The revision does not exist without sessions.
    #[error("Unsupported protocol version")]
    Version(String),
    /// The `_meta` of the body is invalid.
    #[error("Invalid params: {0}")]
    Meta(#[from] MetaProblem),
    /// The body names an unknown log level.
    #[error("Invalid params: _meta: {LOG_LEVEL} is unknown", LOG_LEVEL = era::LOG_LEVEL)]
    LogLevel,
}

impl Disagreement {
    fn code(&self) -> i64 {
        match self {
            Self::Missing(_) | Self::Duplicate(_) | Self::Unreadable(_) | Self::Contradicts(_) => {
                HEADER_MISMATCH
            }
            Self::Version(_) => UNSUPPORTED_VERSION,
            Self::Meta(_) | Self::LogLevel => code::INVALID_PARAMS,
        }
    }

    /// Returns the response to the request.
    pub(super) fn frame(&self, id: &RequestId) -> Frame {
        let error = ObjectText::new()
            .member("code", &self.code())
            .member("message", &self.to_string());
        let error = match self {
            Self::Version(requested) => {
                let data = era::unsupported_version_data(requested, &[MODERN_REVISION]);
                error.raw("data", &data)
            }
            _ => error,
        };
        wire::error_as_sent(id, &error.finish())
    }
}

/// A request that was posted, with the outline of its parameters.
pub(super) struct PostedRequest<'a> {
    pub(super) request: &'a Request,
    pub(super) outline: &'a CallOutline<'static>,
}

impl<'a> PostedRequest<'a> {
    /// Returns the member `name` of the parameters.
    pub(super) fn name(&self) -> Option<Cow<'a, str>> {
        let params = self.request.params.as_ref()?;
        match self.outline.text(params, Outlined::Name) {
            Some(name) if self.outline.is_usual() => Some(Cow::Borrowed(name)),
            _ => Some(Cow::Owned(params.member("name")?.as_text()?.into_owned())),
        }
    }

    /// Returns the text of a member that may appear once. Duplicates have no outline.
    fn sole_text(&self, member: &str) -> Result<Option<Cow<'a, str>>, Disagreement> {
        if member == "name" && self.outline.is_usual() {
            return Ok(self.name());
        }
        let value = sole(self.request.params.as_ref(), member, headers::NAME)?;
        let text = value.as_ref().and_then(RawJson::as_text);
        Ok(text.map(|text| Cow::Owned(text.into_owned())))
    }
}

/// Checks the headers and members that every request without a session must have.
pub(super) fn check(headers: &HeaderMap, posted: &PostedRequest<'_>) -> Result<(), Disagreement> {
    let request = posted.request;
    let mut meta =
        RequestMeta::of_request(request.params.as_ref(), posted.outline).unwrap_or_default();
    // First, because the error lists the supported revisions, with which a client of another one can go on.
    check_version(headers, &meta)?;
    let said = meta.take_modern()?;
    if said
        .log_level
        .is_some_and(|it| LogLevel::named(&it).is_none())
    {
        return Err(Disagreement::LogLevel);
    }
    check_value(headers, &METHOD, Some(&request.method))?;
    if let Some(member) = name_member(&request.method) {
        let name = posted.sole_text(member)?;
        check_value(headers, &NAME, name.as_deref())?;
    }
    Ok(())
}

/// Checks the headers of the arguments of a call that the input schema of its tool marks. Other headers are ignored.
pub(super) fn check_parameters(
    headers: &HeaderMap,
    schema: &RawJson,
    params: Option<&RawJson>,
) -> Result<(), Disagreement> {
    // Invalid marks are ignored.
    let marked = ParameterHeader::all_in(schema).unwrap_or_default();
    for parameter in marked {
        let arguments = sole(params, "arguments", &parameter.header)?
            .unwrap_or_else(|| ObjectText::new().finish());
        let given = only(&headers.get_all(&parameter.header), &parameter.header)?;
        if !parameter.agrees(given, &arguments) {
            return Err(match given {
                Some(_) => Disagreement::Contradicts(parameter.header),
                None => Disagreement::Missing(parameter.header),
            });
        }
    }
    Ok(())
}

/// Checks the revision. Members that the body lacks are checked later.
fn check_version(headers: &HeaderMap, meta: &RequestMeta) -> Result<(), Disagreement> {
    let name = PROTOCOL_VERSION.as_str();
    let named = only(&headers.get_all(&PROTOCOL_VERSION), name)?
        .ok_or_else(|| Disagreement::Missing(name.to_owned()))?;
    let in_body = meta.version().and_then(RawJson::as_text);
    if in_body.is_some_and(|version| version != named) {
        return Err(Disagreement::Contradicts(name.to_owned()));
    }
    if named != MODERN_REVISION {
        return Err(Disagreement::Version(named.to_owned()));
    }
    Ok(())
}

/// Checks that a header has the value of the body. Neither may have a value alone.
fn check_value(
    headers: &HeaderMap,
    header: &HeaderName,
    in_body: Option<&str>,
) -> Result<(), Disagreement> {
    let name = header.as_str();
    match (only(&headers.get_all(header), name)?, in_body) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Disagreement::Missing(name.to_owned())),
        (Some(given), in_body) => match decode(given) {
            None => Err(Disagreement::Unreadable(name.to_owned())),
            Some(given) if Some(&*given) == in_body => Ok(()),
            Some(_) => Err(Disagreement::Contradicts(name.to_owned())),
        },
    }
}

/// Returns the member that a header repeats. Duplicates are an error, because a later reader of the body may use a
/// different one.
fn sole(
    object: Option<&RawJson>,
    name: &str,
    header: &str,
) -> Result<Option<RawJson>, Disagreement> {
    let members = object.and_then(RawJson::members).unwrap_or_default();
    let mut named = members.into_iter().filter(|member| member.key == name);
    let value = named.next().map(|member| member.value);
    match named.next() {
        Some(_) => Err(Disagreement::Contradicts(header.to_owned())),
        None => Ok(value),
    }
}

/// Returns the value of a header without the space around it. Duplicates are an error.
fn only<'a>(values: &GetAll<'a, HeaderValue>, name: &str) -> Result<Option<&'a str>, Disagreement> {
    let mut values = values.iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Disagreement::Duplicate(name.to_owned()));
    }
    let value = value
        .to_str()
        .map_err(|_| Disagreement::Unreadable(name.to_owned()))?;
    Ok(Some(value.trim_matches([' ', '\t'])))
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
