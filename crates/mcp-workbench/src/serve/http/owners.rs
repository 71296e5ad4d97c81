//! Finds the replica that a request belongs to: the one that has parked a call, runs a task, asked a question or has begun a
//! stream. If it cannot be reached, the outcome is unknown.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use rawjson::RawJson;

use super::{
    forward::{self, Forwarded},
    guard::Sender,
    response::Response,
};
use crate::{
    era::REQUEST_STATE,
    meta,
    seal::SealPurpose,
    serve::{
        modern::replica_gone,
        replica::{Elsewhere, HandleOwner, Replica},
        tasks::TASK_ID,
    },
    wire::{self, Frame, Request, RequestId, Response as Answer, code},
};

/// The sender of a request that may be forwarded.
#[derive(Clone, Copy)]
pub(super) struct Forwarder<'a> {
    pub(super) sender: &'a Sender,
    pub(super) headers: &'a HeaderMap,
}

/// The part of a request that is forwarded besides its headers.
pub(super) struct Posting {
    method: Method,
    body: Bytes,
    lost: Option<(RequestId, Frame)>,
}

impl Posting {
    /// Creates a request of a client without a session.
    pub(super) fn request(body: Bytes, request: &Request) -> Self {
        let lost = replica_gone(&request.method).to(&request.id).into_frame();
        Self {
            method: Method::POST,
            body,
            lost: Some((request.id.clone(), lost)),
        }
    }

    /// Creates the answer of a client to a question.
    pub(super) fn answer(body: Bytes) -> Self {
        Self {
            method: Method::POST,
            body,
            lost: None,
        }
    }

    /// Creates a request for the rest of a stream.
    pub(super) fn reading() -> Self {
        Self {
            method: Method::GET,
            body: Bytes::new(),
            lost: None,
        }
    }
}

/// Forwards a request to its replica. Returns `None` if there is none that can be reached, or if another replica has
/// forwarded it to us: it is gone from there.
pub(super) async fn forward_to(
    replica: &Arc<Replica>,
    from: Forwarder<'_>,
    elsewhere: Elsewhere,
    posting: Posting,
) -> Option<Response> {
    let address = elsewhere.address?;
    if forward::is_forwarded(from.headers) {
        return None;
    }
    // The id of an event says what its request was, so that this replica can answer for one that it has never seen.
    let lost = posting.lost.or_else(|| {
        let (_, id) = parse_about(&elsewhere.about)?;
        Some((id, lost_answer(&elsewhere.about)?))
    });
    let forwarded = Forwarded {
        method: posting.method,
        headers: from.headers,
        body: posting.body,
        sender: from.sender,
        lost,
    };
    forward::send(replica, &address, forwarded).await
}

/// Returns the replica that has parked the call, or runs the task, that a request is about.
pub(super) fn parked_elsewhere(replica: &Replica, request: &Request) -> Option<Elsewhere> {
    if !replica.has_others() {
        return None;
    }
    let params = request.params.as_ref()?;
    let (member, purpose) = if request.method.starts_with("tasks/") {
        (TASK_ID, SealPurpose::Run)
    } else {
        (REQUEST_STATE, SealPurpose::ParkedCall)
    };
    elsewhere(replica, purpose, &params.member(member)?)
}

/// Returns the replica that has asked the question of an answer.
pub(super) fn asked_elsewhere(replica: &Replica, answer: &Answer) -> Option<Elsewhere> {
    if !replica.has_others() {
        return None;
    }
    let id = answer.id.as_ref()?.to_json();
    elsewhere(replica, SealPurpose::Question, &id)
}

fn elsewhere(replica: &Replica, purpose: SealPurpose, handle: &RawJson) -> Option<Elsewhere> {
    match replica.place(purpose, &handle.as_text()?)? {
        HandleOwner::Elsewhere(elsewhere) => Some(elsewhere),
        HandleOwner::Here(_) => None,
    }
}

/// Returns the words about a request in the ids of its events.
pub(super) fn about(request: &Request) -> String {
    format!("{} {}", request.method, request.id.to_json().as_str())
}

fn parse_about(about: &str) -> Option<(&str, RequestId)> {
    let (method, id) = about.split_once(' ')?;
    let id = RawJson::parse(&Bytes::copy_from_slice(id.as_bytes())).ok()?;
    Some((method, RequestId::from_json(id)?))
}

/// Returns the answer to a request of a session whose replica is gone; `None` if the words are about no request.
pub(super) fn lost_answer(about: &str) -> Option<Frame> {
    let (method, id) = parse_about(about)?;
    Some(if method == "tools/call" {
        wire::result(&id, &meta::replica_gone())
    } else {
        wire::error(Some(&id), code::INTERNAL_ERROR, meta::REPLICA_GONE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_about_a_request_are_enough_for_its_answer() {
        for (about, expected) in [
            ("", None),
            ("tools/call", None),
            ("tools/call 7", Some(r#""id":7,"result":"#)),
            (r#"tools/call "a b""#, Some(r#""id":"a b","result":"#)),
            (r#"tools/list "x""#, Some(r#""id":"x","error":"#)),
        ] {
            let answer = lost_answer(about).map(|it| String::from_utf8(it.to_vec()).unwrap());
            match expected {
                Some(expected) => assert!(answer.unwrap().contains(expected), "{about}"),
                None => assert_eq!(answer, None, "{about}"),
            }
        }
    }
}
