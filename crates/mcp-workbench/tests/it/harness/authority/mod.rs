//! Signing in, with both other sides real sockets: an authorization server (`Authority`), a remote MCP server that it
//! protects (`Protected`) and the user's browser (`Browser`). All three are strict where the specifications are, so
//! that a sign-in that works here was done right; every attack and fault is a knob. What was asked of them is kept.
//!
//! Every secret that is issued begins with `secret-`, and every text of an error is `NOISE`: neither may be
//! found in what the workbench says.

mod answers;
mod browser;
mod grants;
mod knobs;
mod protected;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::form_urlencoded;

use self::grants::Grants;
pub(crate) use self::{
    browser::{Browser, follow},
    grants::Client,
    knobs::{Issuer, Knobs, User},
    protected::Protected,
};
use super::remote_server::{RemoteServer, Seen};

/// A text in errors of the authority and of the server, which must not be repeated.
pub(crate) const NOISE: &str = "noise-from-elsewhere";

/// The prefix of every secret.
pub(crate) const SECRET: &str = "secret-";

/// The path of the metadata of the authority.
pub(crate) const METADATA: &str = "/.well-known/oauth-authorization-server";

/// The state that the responding threads share with the test.
#[derive(Debug, Default)]
struct Shared {
    knobs: Mutex<Knobs>,
    grants: Mutex<Grants>,
}

impl Shared {
    fn knobs(&self) -> Knobs {
        self.knobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Authority {
    server: RemoteServer,
    shared: Arc<Shared>,
}

impl Authority {
    /// One that does everything right, with a user who agrees at once.
    pub(crate) fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let answering = Arc::clone(&shared);
        let server =
            RemoteServer::start(move |seen, out| Some(answers::answer(&answering, seen, out)));
        Self { server, shared }
    }

    /// Turns knobs, from now on.
    pub(crate) fn set(&self, turn: impl FnOnce(&mut Knobs)) {
        turn(&mut self.shared.knobs.lock().unwrap());
    }

    /// Its issuer, which is its origin.
    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.server.authority())
    }

    /// Takes no connections any more.
    pub(crate) fn stop(self) {
        self.server.stop();
    }

    /// Makes a client known, as its operator would by hand; any loopback address is good for its redirects.
    pub(crate) fn know_client(&self, id: &str, client: Client) {
        self.shared.grants().clients.insert(id.to_owned(), client);
    }

    /// Access tokens so far are no longer good, as if their time were over; refresh tokens are.
    pub(crate) fn end_access(&self) {
        self.shared.grants().access.clear();
    }

    /// Nothing that was issued is valid any more.
    pub(crate) fn revoke_all(&self) {
        let mut grants = self.shared.grants();
        grants.access.clear();
        grants.refresh.clear();
    }

    /// How many refresh tokens are good.
    pub(crate) fn refresh_tokens(&self) -> usize {
        self.shared.grants().refresh.len()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.server.seen()
    }

    /// The requests at this path so far.
    pub(crate) fn asked(&self, path: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| seen.route() == path);
        seen
    }

    /// The requests for tokens by this grant so far.
    pub(crate) fn token_requests(&self, grant: &str) -> Vec<Seen> {
        let mut seen = self.asked("/token");
        seen.retain(|seen| seen.parameter("grant_type").as_deref() == Some(grant));
        seen
    }

    /// Every secret that it has issued so far.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.shared.grants().issued.clone()
    }
}

impl Seen {
    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// The parameters of the query and of a form in the body.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let (_, query) = self.path.split_once('?').unwrap_or_default();
        let is_form = self
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        let form = if is_form { self.body.as_str() } else { "" };
        [query, form]
            .into_iter()
            .flat_map(|text| form_urlencoded::parse(text.as_bytes()).into_owned())
            .collect()
    }

    /// A parameter of the query or of a form; a duplicate one counts as missing.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let mut found = self.parameters();
        found.retain(|(known, _)| known == name);
        match found.as_slice() {
            [(_, value)] => Some(value.clone()),
            _ => None,
        }
    }

    /// The token that it carries.
    pub(crate) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }
}
