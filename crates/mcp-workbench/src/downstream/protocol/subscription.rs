//! The subscription to a modern server: one `subscriptions/listen` for all clients, opened at the start, reopened
//! with a new filter when clients subscribe to other resources, and reopened when it ends.

use std::time::Duration;

use rawjson::{ObjectText, RawJson};
use tokio::time::Instant;

use crate::{
    downstream::{
        link::Link,
        protocol::conversation::error_code,
        session::{calls::Calls, pending::PendingRequest, resubscriptions::Resubscriptions},
    },
    wire::{Answer, FrameTicket, code},
};

/// The pause before a subscription that ended is reopened. Each early end doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// A subscription that was open for this long did not end early.
const STABLE_AFTER: Duration = Duration::from_mins(1);

/// The notifications that a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OfferedNotifications {
    /// The lists whose changes it reports, by their names in a subscription request.
    lists: Vec<&'static str>,
    /// Set if it reports changes of single resources.
    pub(crate) subscriptions: bool,
}

/// The families with lists, and their names in a subscription request.
const LISTS: [(&str, &str); 3] = [
    ("tools", "toolsListChanged"),
    ("prompts", "promptsListChanged"),
    ("resources", "resourcesListChanged"),
];

impl OfferedNotifications {
    /// Reads the capabilities in a response to `server/discover`.
    pub(crate) fn of(said: &RawJson) -> Self {
        let capabilities = said.member("capabilities");
        let says = |family: &str, what: &str| {
            let family = capabilities.as_ref().and_then(|it| it.member(family));
            let what = family.and_then(|family| family.member(what));
            what.is_some_and(|it| it.is_true())
        };
        let lists = LISTS
            .into_iter()
            .filter(|(family, _)| says(family, "listChanged"));
        Self {
            lists: lists.map(|(_, name)| name).collect(),
            subscriptions: says("resources", "subscribe"),
        }
    }
}

/// The one subscription to a server.
#[derive(Debug, Default)]
pub(crate) struct Subscription {
    announced: OfferedNotifications,
    open: Option<ListenRequest>,
    /// The number of consecutive early ends.
    ends: u32,
    /// Set if changes may have been missed that were not announced yet.
    missed: bool,
    /// The time to reopen it.
    due: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenRequest {
    pub(crate) id: u64,
    pub(crate) frame: FrameTicket,
    pub(crate) since: Instant,
}

impl Subscription {
    /// Creates the state without an open subscription, for a server with these notifications.
    pub(crate) fn new(announced: OfferedNotifications) -> Self {
        Self {
            announced,
            ..Self::default()
        }
    }

    pub(crate) fn announced(&self) -> &OfferedNotifications {
        &self.announced
    }

    /// Returns the parameters of the request; `None` if there is nothing to subscribe to.
    pub(crate) fn params(&self, resubscriptions: &Resubscriptions) -> Option<RawJson> {
        let lists = &self.announced.lists;
        let mut filter = lists
            .iter()
            .fold(ObjectText::new(), |filter, list| filter.member(list, &true));
        let resources = if self.announced.subscriptions {
            resubscriptions.subscribed()
        } else {
            Vec::new()
        };
        let any = !lists.is_empty() || !resources.is_empty();
        if !resources.is_empty() {
            filter = filter.raw("resourceSubscriptions", &RawJson::array(&resources));
        }
        let params = ObjectText::new().raw("notifications", &filter.finish());
        any.then(|| params.finish())
    }

    /// Subscribes to everything that the server offers and clients want. The previous request is withdrawn after
    /// that, so that no change is missed.
    pub(crate) fn listen(&mut self, calls: &mut Calls, link: &mut Link) {
        let params = self.params(calls.resubscriptions());
        let open = params.map(|params| {
            let method = "subscriptions/listen";
            let (id, frame) = calls.ask(link, PendingRequest::Listen, method, &params);
            ListenRequest {
                id,
                frame,
                since: Instant::now(),
            }
        });
        if let Some(before) = self.replace(open) {
            calls.take_back(link, before.id, before.frame);
        }
    }

    /// Handles the response to the request: the subscription ended, or the server does not support it.
    pub(crate) fn take_answer(&mut self, id: u64, answer: &Answer) {
        match answer {
            Answer::Error(error) if error_code(error) == code::METHOD_NOT_FOUND.to_string() => {
                tracing::debug!("the server does not report changes");
                self.refused(id);
            }
            _ => self.ended(id, Instant::now()),
        }
    }

    /// Sets the open request, or none; returns the previous one, which the caller must end.
    pub(crate) fn replace(&mut self, listening: Option<ListenRequest>) -> Option<ListenRequest> {
        self.due = None;
        std::mem::replace(&mut self.open, listening)
    }

    /// Returns true if this is the open request.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.open.is_some_and(|open| open.id == id)
    }

    /// Records the end of a request; a replaced one is ignored.
    pub(crate) fn ended(&mut self, id: u64, now: Instant) {
        let Some(open) = self.open.take_if(|open| open.id == id) else {
            return;
        };
        if now >= open.since + STABLE_AFTER {
            self.ends = 0;
        }
        // Bounded only for the shift: the pause reaches its maximum long before.
        let pause = FIRST_PAUSE.saturating_mul(1 << self.ends.min(16));
        self.ends += 1;
        // Nothing reports the changes between this end and the next grant.
        self.missed = true;
        self.due = Some(now + pause.min(MAX_PAUSE));
    }

    /// Returns true after the first early end.
    pub(crate) fn ended_once(&self) -> bool {
        self.ends == 1
    }

    /// Returns and clears the flag for missed changes; the caller announces them.
    pub(crate) fn take_missed(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    /// Records that the server does not support subscriptions.
    pub(crate) fn refused(&mut self, id: u64) {
        // `due` stays empty, so it is not opened again.
        self.open.take_if(|open| open.id == id);
    }

    /// Returns the time to reopen the subscription.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::call::CallRequest;

    fn json(text: &str) -> RawJson {
        RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn params(capabilities: &str, subscribed: &[&str]) -> Option<String> {
        let said = json(&format!(r#"{{"capabilities":{capabilities}}}"#));
        let mut resubscriptions = Resubscriptions::default();
        for uri in subscribed {
            resubscriptions.record(&CallRequest::Relayed {
                method: "resources/subscribe",
                params: json(&format!(r#"{{"uri":"{uri}"}}"#)),
            });
        }
        let params = Subscription::new(OfferedNotifications::of(&said)).params(&resubscriptions);
        params.map(|params| params.as_str().to_owned())
    }

    #[test]
    fn the_filter_has_what_the_server_offers_and_clients_want() {
        assert_eq!(params("{}", &[]), None);
        assert_eq!(params(r#"{"tools":{"listChanged":false}}"#, &["a"]), None);
        assert_eq!(params(r#"{"resources":{"subscribe":true}}"#, &[]), None);
        let all = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},
            "resources":{"listChanged":true,"subscribe":true}}"#;
        let filter = r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a"]}}"#;
        assert_eq!(params(all, &["a"]).as_deref(), Some(filter));
    }

    #[test]
    fn the_subscription_reopens_after_a_growing_pause() {
        let start = Instant::now();
        let open = |id: u64, since| {
            let frame = FrameTicket::from(id);
            Some(ListenRequest { id, frame, since })
        };
        let mut subscription = Subscription::default();
        assert_eq!(subscription.replace(open(1, start)), None);
        subscription.ended(7, start);
        assert_eq!(subscription.due(), None, "another request is of no concern");
        subscription.ended(1, start);
        assert_eq!(subscription.due(), Some(start + FIRST_PAUSE));
        subscription.replace(open(2, start));
        assert_eq!(subscription.due(), None);
        assert!(subscription.ended_once() && subscription.take_missed());
        assert!(!subscription.take_missed(), "it is reported once");
        subscription.ended(2, start);
        assert_eq!(subscription.due(), Some(start + FIRST_PAUSE * 2));
        assert!(!subscription.ended_once() && subscription.take_missed());
        subscription.replace(open(3, start));
        let later = start + STABLE_AFTER;
        subscription.ended(3, later);
        assert_eq!(subscription.due(), Some(later + FIRST_PAUSE));
        assert_eq!(subscription.replace(open(4, later)), None);
        assert_eq!(subscription.replace(open(5, later)).unwrap().id, 4);
        subscription.ended(4, later);
        assert_eq!(
            subscription.due(),
            None,
            "one that was replaced is of no concern"
        );
    }
}
