//! The requests that a server gets again when it has been restarted: subscriptions to resources and the level of its log
//! messages; and the number of calls that will be continued.

use std::collections::HashMap;

use rawjson::RawJson;
use tokio::sync::mpsc;

use crate::{
    call::CallRequest,
    downstream::server::{Command, Following},
};

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const SET_LEVEL: &str = "logging/setLevel";

/// The subscriptions and the log level that a restart must not lose.
#[derive(Default)]
pub(crate) struct Resubscriptions {
    /// The parameters of the subscriptions, by what they subscribe to.
    subscriptions: HashMap<RawJson, RawJson>,
    log_level: Option<RawJson>,
    /// How many calls are between two of their requests.
    followed: usize,
}

impl Resubscriptions {
    /// Notes a request that the server has granted.
    pub(crate) fn note(&mut self, request: &CallRequest) {
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

    /// Tells the server that takes this one's place. The calls that will be gone on with stay here.
    pub(crate) fn hand_over(&self, heir: &mpsc::UnboundedSender<Command>) {
        let inherited = Self {
            subscriptions: self.subscriptions.clone(),
            log_level: self.log_level.clone(),
            followed: 0,
        };
        // An heir that is gone already has been replaced itself.
        let _ = heir.send(Command::Inherit(inherited));
    }

    /// Takes what held for the server before, where nothing newer is known.
    pub(crate) fn inherit(&mut self, inherited: Self) {
        for (uri, params) in inherited.subscriptions {
            self.subscriptions.entry(uri).or_insert(params);
        }
        self.log_level = self.log_level.take().or(inherited.log_level);
    }

    /// The requests that make it hold again.
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

    /// What clients have subscribed to, in an order that does not change.
    pub(crate) fn subscribed(&self) -> Vec<RawJson> {
        let mut subscribed: Vec<_> = self.subscriptions.keys().cloned().collect();
        subscribed.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
        subscribed
    }

    /// Notes that a call is between two of its requests, or not any more.
    pub(crate) fn follow(&mut self, following: Following) {
        self.followed = match following {
            Following::Began => self.followed + 1,
            Following::Ended => self.followed.saturating_sub(1),
        };
    }

    /// Whether somebody waits for what the server will tell, or will come back with more of a call.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.subscriptions.is_empty() || self.followed > 0
    }
}
