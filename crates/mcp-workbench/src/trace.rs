//! The place of a span in a trace, as `traceparent` and `tracestate` carry it (W3C Trace Context).

use std::fmt;

use rawjson::RawJson;
use tokio::time::Instant;

/// The key of the trace context in `_meta`.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// The longest `tracestate` that is passed on.
const MAX_TRACESTATE: usize = 512;

/// The place of one of our own spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub trace_id: u128,
    pub span_id: u64,
    pub is_sampled: bool,
    pub state: Option<String>,
}

/// The operation that a call belongs to, while anybody listens to the event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallSpan {
    /// The number of the operation.
    pub operation: u64,
    /// The time at which it began.
    pub began: Instant,
    /// Its span, while tracing is on.
    pub trace: Option<TraceContext>,
}

/// The span of a client that a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteParent(pub TraceContext);

impl RemoteParent {
    /// Reads the trace context in the `_meta` of a request. An invalid one counts as missing.
    pub(crate) fn of(meta: Option<&RawJson>) -> Option<Self> {
        let meta = meta?;
        let parent = meta.member(TRACEPARENT)?;
        let mut context = TraceContext::parse(&parent.as_text()?)?;
        let state = meta.member(TRACESTATE);
        let state = state.as_ref().and_then(RawJson::as_text);
        context.state = state
            .filter(|it| !it.is_empty() && it.len() <= MAX_TRACESTATE)
            .map(std::borrow::Cow::into_owned);
        Some(Self(context))
    }
}

impl TraceContext {
    /// Parses a `traceparent`. Versions after 00 may have more parts.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace_id = hexadecimal(parts.next()?, 32)?;
        let span_id = u64::try_from(hexadecimal(parts.next()?, 16)?).ok()?;
        let flags = hexadecimal(parts.next()?, 2)?;
        let has_more = parts.next().is_some();
        // The specification rules out version ff and ids of zero.
        if version == 0xff || (version == 0 && has_more) || trace_id == 0 || span_id == 0 {
            return None;
        }
        Some(Self {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
            state: None,
        })
    }

    /// Returns `_meta` with this span as the parent.
    pub(crate) fn put_on(&self, meta: &RawJson) -> RawJson {
        let meta = meta.with_member(TRACEPARENT, &RawJson::of(&self.to_string()));
        match &self.state {
            Some(state) => meta.with_member(TRACESTATE, &RawJson::of(state)),
            // A state that is there belongs to another span.
            None => meta.without_members(&[TRACESTATE]),
        }
    }
}

/// Writes the `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(
            formatter,
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }
}

/// Parses lower-case hexadecimal digits, exactly so many.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_valid = text.len() == digits
        && text
            .bytes()
            .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    is_valid.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn meta(text: &str) -> RawJson {
        RawJson::parse(&text.to_owned().into()).unwrap()
    }

    #[test]
    fn a_trace_parent_is_read_and_written() {
        let context = TraceContext::parse(PARENT).unwrap();
        assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.span_id, 0x00f0_67aa_0ba9_02b7);
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), PARENT);
    }

    #[test]
    fn invalid_trace_parents_count_as_missing() {
        let invalid = [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        for text in invalid {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more";
        assert!(TraceContext::parse(later).is_some());
    }

    #[test]
    fn our_span_replaces_the_parent_and_leaves_the_rest() {
        let sent = meta(r#"{"a":1,"traceparent":"x","tracestate":"b=2"}"#);
        let context = TraceContext::parse(PARENT).unwrap();
        let expected = format!(r#"{{"a":1,"traceparent":"{PARENT}"}}"#);
        assert_eq!(context.put_on(&sent).as_str(), expected);
        let state = Some("vendor=1".to_owned());
        let context = TraceContext { state, ..context };
        let expected = format!(r#"{{"a":1,"traceparent":"{PARENT}","tracestate":"vendor=1"}}"#);
        assert_eq!(context.put_on(&sent).as_str(), expected);
    }

    #[test]
    fn the_parent_of_a_request_is_in_its_meta() {
        let text = format!(r#"{{"traceparent":"{PARENT}","tracestate":"b=2"}}"#);
        let parent = RemoteParent::of(Some(&meta(&text))).unwrap();
        assert_eq!(parent.0.state.as_deref(), Some("b=2"));
        assert_eq!(RemoteParent::of(Some(&meta(r#"{"traceparent":7}"#))), None);
        assert_eq!(RemoteParent::of(None), None);
    }
}
