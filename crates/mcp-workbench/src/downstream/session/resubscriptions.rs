//! The requests that are repeated after a restart of the server: resource subscriptions and the log level. Also
//! counts the calls that will be continued.

use std::collections::HashMap;

use rawjson::RawJson;
use tokio::sync::mpsc;

use crate::{
    call::CallRequest,
    downstream::server::{Command, FollowState},
};

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const SET_LEVEL: &str = "logging/setLevel";

/// The subscriptions and the log level that a restart must not lose.
#[derive(Default)]
pub(crate) struct Resubscriptions {
    /// The parameters of the subscriptions, by their targets.
    subscriptions: HashMap<RawJson, RawJson>,
    log_level: Option<RawJson>,
    /// The number of calls that are between two of their requests.
    followed: usize,
}

impl Resubscriptions {
    /// Records a request that the server granted.
    pub(crate) fn record(&mut self, request: &CallRequest) {
        let CallRequest::Relayed { method, params } = request else {
            return;
        };
        match (*method, params.member("uri")) {
            (SUBSCRIBE, Some(uri)) => {
                self.subscriptions.insert(uri, params.clone());
            }
            (UNSUBSCRIBE, Some(uri)) => {
                self.subscriptions.remove(&uri);
            }
            (SET_LEVEL, _) => self.log_level = Some(params.clone()),
            _ => {}
        }
    }

    /// Sends the subscriptions to the server that replaces this one. The calls that will be continued stay here.
    pub(crate) fn hand_over(&self, successor: &mpsc::UnboundedSender<Command>) {
        let inherited = Self {
            subscriptions: self.subscriptions.clone(),
            log_level: self.log_level.clone(),
            followed: 0,
        };
        // If the new server is gone already, it was replaced itself.
        let _ = successor.send(Command::Inherit(inherited));
    }

    /// Adopts the subscriptions of the previous server, unless newer ones are known.
    pub(crate) fn inherit(&mut self, inherited: Self) {
        for (uri, params) in inherited.subscriptions {
            self.subscriptions.entry(uri).or_insert(params);
        }
        self.log_level = self.log_level.take().or(inherited.log_level);
    }

    /// Returns the requests that restore the subscriptions.
    pub(crate) fn requests(&self) -> Vec<(&'static str, RawJson)> {
        let level = self
            .log_level
            .iter()
            .map(|params| (SET_LEVEL, params.clone()));
        let subscriptions = self.subscriptions.values();
        level
            .chain(subscriptions.map(|params| (SUBSCRIBE, params.clone())))
            .collect()
    }

    /// Returns the subscriptions of all clients, in a stable order.
    pub(crate) fn subscribed(&self) -> Vec<RawJson> {
        let mut subscribed: Vec<_> = self.subscriptions.keys().cloned().collect();
        // Callers compare two of these, and a hash map has no order.
        subscribed.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        subscribed
    }

    /// Records that a multi-step call begins or ends a pause between two of its requests.
    pub(crate) fn follow(&mut self, following: FollowState) {
        self.followed = match following {
            FollowState::Began => self.followed + 1,
            FollowState::Ended => self.followed.saturating_sub(1),
        };
    }

    /// Returns true if a client has a subscription, or will continue a call.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.subscriptions.is_empty() || self.followed > 0
    }
}
