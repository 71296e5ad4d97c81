//! Resource links: the resources that servers have linked to in their results, so that a client can read them without
//! being shown the server.
//!
//! A URI belongs to the server that linked it first to a client, or whose list with it the client was shown before. Any server can
//! write any URI into a result, so a later link of a different server must not take it over, and neither must a flood of links that
//! fills the table.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use ident::{ServerIdentifier, ToolIdentifier};
use rawjson::RawJson;

use crate::{call::Owner, sync::lock};

/// The number of links that are recorded for all clients.
const MAX_LINKS: usize = 10_000;
/// The longest URI that is recorded.
const MAX_URI_BYTES: usize = 8 * 1024;

/// The type of a content that is a link.
const RESOURCE_LINK: &str = "resource_link";

/// The links of all clients.
#[derive(Default)]
pub(crate) struct Links {
    table: Mutex<LinkTable>,
}

#[derive(Default)]
struct LinkTable {
    /// The server of each URI, for each client.
    servers: HashMap<(Owner, Arc<str>), ServerIdentifier>,
    /// The URIs of each server for each client, the oldest first.
    uris: HashMap<(Owner, ServerIdentifier), VecDeque<Arc<str>>>,
}

impl Links {
    /// Records the links in a result of a tool for the client that the result is sent to. `is_taken` returns true for URIs that
    /// the client knows from elsewhere.
    pub(crate) fn record(
        &self,
        owner: Owner,
        tool: &ToolIdentifier,
        result: &RawJson,
        is_taken: impl Fn(&str) -> bool,
    ) {
        let content = result
            .member("content")
            .and_then(|content| content.elements());
        // Before the table is locked, because `is_taken` takes a lock of its own.
        let uris: Vec<Arc<str>> = content
            .unwrap_or_default()
            .iter()
            .filter_map(linked_uri)
            .filter(|uri| !is_taken(uri))
            .collect();
        let server = tool.server_identifier();
        let mut table = self.table();
        for uri in uris {
            table.insert(owner, &server, uri);
        }
    }

    /// Returns the server that a client reads a linked resource from.
    pub(crate) fn server(&self, owner: Owner, uri: &str) -> Option<ServerIdentifier> {
        self.table().servers.get(&(owner, uri.into())).cloned()
    }

    /// Removes the links of a client that has gone.
    pub(crate) fn forget_client(&self, client: Owner) {
        self.table().remove_where(|owner, _| owner == client);
    }

    /// Removes the links of servers that are not configured any more, so that others can link the same resources.
    pub(crate) fn retain_servers(&self, is_configured: impl Fn(&ServerIdentifier) -> bool) {
        self.table()
            .remove_where(|_, server| !is_configured(server));
    }

    fn table(&self) -> MutexGuard<'_, LinkTable> {
        lock(&self.table)
    }
}

impl LinkTable {
    fn insert(&mut self, owner: Owner, server: &ServerIdentifier, uri: Arc<str>) {
        let key = (owner, uri);
        // The first server that linked a URI owns it; see the module header.
        if self.servers.contains_key(&key) {
            return;
        }
        let uris = self.uris.entry((owner, server.clone())).or_default();
        uris.push_back(Arc::clone(&key.1));
        self.servers.insert(key, server.clone());
        if self.servers.len() > MAX_LINKS {
            self.remove_oldest(owner, server);
        }
    }

    /// Makes room at the expense of a server that has more than its share of the table: of the server that has just
    /// linked something, or else of the one with the most links. So no server can push out the few links of another.
    fn remove_oldest(&mut self, owner: Owner, server: &ServerIdentifier) {
        // Not zero: the link that was just added is in the table.
        let share = MAX_LINKS / self.uris.len();
        let newest = (owner, server.clone());
        let key = match self.uris.get(&newest) {
            Some(uris) if uris.len() > share => newest,
            _ => {
                let longest = self.uris.iter().max_by_key(|(_, uris)| uris.len());
                let Some((key, _)) = longest else { return };
                key.clone()
            }
        };
        if let Some(uri) = self.uris.get_mut(&key).and_then(VecDeque::pop_front) {
            self.servers.remove(&(key.0, uri));
        }
    }

    fn remove_where(&mut self, is_gone: impl Fn(Owner, &ServerIdentifier) -> bool) {
        self.uris
            .retain(|(owner, server), _| !is_gone(*owner, server));
        self.servers
            .retain(|(owner, _), server| !is_gone(*owner, server));
    }
}

fn linked_uri(item: &RawJson) -> Option<Arc<str>> {
    let kind = item.member("type")?;
    let uri = item.member("uri")?;
    let uri = (kind.as_text()? == RESOURCE_LINK).then(|| uri.as_text())??;
    (uri.len() <= MAX_URI_BYTES).then(|| uri.as_ref().into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::call::{ClientId, Principal};

    const CLIENT: Owner = Owner::Principal(Principal::Local);

    fn tool(server: &str) -> ToolIdentifier {
        ToolIdentifier {
            toolbox: "dev".into(),
            server: server.into(),
            tool: "link".into(),
        }
    }

    fn record(links: &Links, owner: Owner, server: &str, uris: impl Iterator<Item = String>) {
        let content = uris.map(|uri| json!({"type": RESOURCE_LINK, "uri": uri, "name": "n"}));
        let result = json!({"content": content.collect::<Vec<Value>>()});
        links.record(owner, &tool(server), &RawJson::of(&result), |_| false);
    }

    fn server(links: &Links, owner: Owner, uri: &str) -> Option<String> {
        let found = links.server(owner, uri)?;
        Some(found.server.to_string())
    }

    fn numbered(prefix: &str, count: usize) -> impl Iterator<Item = String> {
        (0..count).map(move |number| format!("{prefix}:{number}"))
    }

    #[test]
    fn a_flood_of_links_removes_only_links_of_the_server_that_sends_it() {
        let links = Links::default();
        record(&links, CLIENT, "git", numbered("g", 10));
        record(&links, CLIENT, "weather", numbered("w", 2 * MAX_LINKS));
        // Now it claims what it hoped to push out.
        record(&links, CLIENT, "weather", numbered("g", 10));
        for uri in numbered("g", 10) {
            assert_eq!(server(&links, CLIENT, &uri).as_deref(), Some("git"));
        }
        let table = links.table();
        assert_eq!(table.servers.len(), MAX_LINKS);
        assert_eq!(
            table.uris.values().map(VecDeque::len).sum::<usize>(),
            MAX_LINKS
        );
    }

    #[test]
    fn a_server_that_comes_later_gets_its_share_of_the_table() {
        let links = Links::default();
        record(&links, CLIENT, "weather", numbered("w", MAX_LINKS));
        record(&links, CLIENT, "git", numbered("g", 100));
        assert_eq!(server(&links, CLIENT, "g:0").as_deref(), Some("git"));
        assert_eq!(server(&links, CLIENT, "w:99"), None);
        assert_eq!(server(&links, CLIENT, "w:100").as_deref(), Some("weather"));
    }

    #[test]
    fn links_of_removed_clients_and_servers_are_removed() {
        let links = Links::default();
        let session = Owner::Session(ClientId(1));
        for owner in [CLIENT, session] {
            for name in ["git", "weather"] {
                record(&links, owner, name, numbered(name, 1));
            }
        }
        links.forget_client(session);
        assert_eq!(server(&links, session, "git:0"), None);
        links.retain_servers(|server| server.server.as_str() != "git");
        assert_eq!(server(&links, CLIENT, "git:0"), None);
        assert_eq!(
            server(&links, CLIENT, "weather:0").as_deref(),
            Some("weather")
        );
        record(&links, CLIENT, "weather", numbered("git", 1));
        assert_eq!(server(&links, CLIENT, "git:0").as_deref(), Some("weather"));
    }

    #[test]
    fn a_uri_that_is_too_long_is_not_recorded() {
        let links = Links::default();
        let longest = format!("u:{}", "x".repeat(MAX_URI_BYTES - 2));
        let too_long = format!("{longest}x");
        record(
            &links,
            CLIENT,
            "git",
            [longest.clone(), too_long.clone()].into_iter(),
        );
        assert_eq!(server(&links, CLIENT, &longest).as_deref(), Some("git"));
        assert_eq!(server(&links, CLIENT, &too_long), None);
    }
}
