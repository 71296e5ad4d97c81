//! Merges the lists of several servers, and maps a shown name or URI back to its server.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use ident::{ServerIdentifier, ServerName};
use indexmap::IndexMap;
use rawjson::{Kind, ObjectText, RawJson};

use super::{
    ui_claims::{UiClaims, is_ours},
    uri_template,
};
use crate::{downstream::ServerFamily, era::CacheHints, toolbox::unique_name};

/// A kind of list that servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Prompts,
    Resources,
    Templates,
}

impl Family {
    /// Returns the method that lists it.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Returns the member of a page that has the items.
    pub(super) fn items(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Returns the capability that a server must have declared to be asked for it.
    pub(super) fn declared_by(self) -> ServerFamily {
        match self {
            Self::Prompts => ServerFamily::Prompts,
            Self::Resources | Self::Templates => ServerFamily::Resources,
        }
    }
}

/// Merged lists of servers, which are identified by `S`.
#[derive(Debug)]
pub(super) struct Merged<S = ServerName> {
    /// The items that the client sees.
    pub(super) shown: Vec<RawJson>,
    /// The cache hints: the strictest of all lists that it was made from.
    pub(super) hints: CacheHints,
    /// The routes by the name that the client uses, in the order of `shown`.
    routes: IndexMap<Arc<str>, Route<S>>,
    /// The names or URIs that several servers use, so that none of them has it.
    shared: HashSet<Arc<str>>,
}

/// The list of one server.
#[derive(Debug)]
pub(super) struct ServerItems<S = ServerName> {
    pub(super) server: S,
    pub(super) items: Vec<RawJson>,
    /// The cache hints of the server.
    pub(super) hints: CacheHints,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route<S = ServerName> {
    /// The name, URI or template that the client uses.
    pub(super) shown: Arc<str>,
    /// The name, URI or template that the server uses. Almost all are the same, and share their text: there may be many
    /// thousands.
    pub(crate) original: Arc<str>,
    pub(crate) server: S,
}

impl<S> Route<S> {
    /// Creates a route to an item that has the same name on both sides.
    pub(super) fn unchanged(shown: &str, server: S) -> Self {
        Self::shared(shown.into(), server)
    }

    fn shared(shown: Arc<str>, server: S) -> Self {
        Self {
            original: Arc::clone(&shown),
            shown,
            server,
        }
    }
}

impl Merged {
    /// Merges lists whose items have names. The first server keeps a name; an item of another server with the same
    /// name gets the server's name as a prefix.
    pub(super) fn by_name(lists: Vec<ServerItems>, limit: usize) -> Self {
        let mut merged = Self::empty(&lists);
        for (server, item) in each(lists) {
            let Some(name) = text(&item, "name") else {
                continue;
            };
            // One server may list a name twice, and a prefixed name may equal the name of a later item, so it must differ from
            // all shown names.
            let taken = &merged.routes;
            if !taken.contains_key(&*name) {
                merged.show(item, Route::shared(name, server));
                continue;
            }
            let plain = format!("{server}__{name}");
            let shown = unique_name(&plain, &[server.as_str(), &name], limit, |name| {
                !taken.contains_key(name)
            });
            let item = item.with_member("name", &RawJson::of(&shown));
            let route = Route {
                shown: shown.into(),
                original: name,
                server,
            };
            merged.show(item, route);
        }
        merged
    }

    /// Merges lists whose items are identified by a key. The first server that lists a key owns it, unless `owner` says
    /// whose it is.
    pub(super) fn by_key(
        lists: Vec<ServerItems>,
        key: &str,
        owner: impl Fn(&str) -> Option<ServerName>,
    ) -> Self {
        let mut merged = Self::empty(&lists);
        for (server, item) in each(lists) {
            let Some(value) = text(&item, key) else {
                continue;
            };
            let is_of_another = owner(&value).is_some_and(|owner| owner != server);
            if !is_of_another && !merged.routes.contains_key(&*value) {
                merged.show(item, Route::shared(value, server));
            }
        }
        merged
    }
}

impl Merged<ServerIdentifier> {
    /// Merges lists of servers that come and go. An item keeps its own name or URI if no other server uses it;
    /// otherwise each gets the one that `rename` returns. No server takes a name over from another in this way. A user
    /// interface that only one server claims stays that server's. Each item says whose it is.
    pub(super) fn distinct(
        lists: Vec<ServerItems<ServerIdentifier>>,
        key: &str,
        claims: Option<&UiClaims>,
        rename: impl Fn(&ServerIdentifier, &str) -> String,
    ) -> Self {
        let mut merged = Self::empty(&lists);
        let mut owners: HashMap<Arc<str>, ServerIdentifier> = HashMap::new();
        // Before anything is renamed, all lists have to be known: the second server with a name changes what the
        // first one gets.
        for list in &lists {
            for value in list.items.iter().filter_map(|item| text(item, key)) {
                let owner = owners.entry(value.clone());
                if *owner.or_insert_with(|| list.server.clone()) != list.server {
                    merged.shared.insert(value);
                }
            }
        }
        for (server, item) in each(lists) {
            let Some(value) = text(&item, key) else {
                continue;
            };
            // A user interface belongs to the server whose tools name it, whichever server lists it.
            let claimed = claims.and_then(|claims| claims.first(&value));
            let is_claimed = claims.is_some_and(|it| it.only(&value) == Some(&server));
            let is_of_another = claimed.is_some() && !is_claimed || is_ours(&value);
            let is_shared = merged.shared.contains(&*value) && !is_claimed;
            let shown: Arc<str> = if is_shared || is_of_another {
                rename(&server, &value).into()
            } else {
                Arc::clone(&value)
            };
            // A server may list an item twice.
            if merged.routes.contains_key(&shown) {
                continue;
            }
            let item = if shown == value {
                item
            } else {
                item.with_member(key, &RawJson::of(&&*shown))
            };
            let item = with_origin(&item, &server);
            let route = Route {
                shown,
                original: value,
                server,
            };
            merged.show(item, route);
        }
        merged
    }

    /// Returns true if several servers use a name or URI.
    pub(super) fn is_shared(&self, name: &str) -> bool {
        self.shared.contains(name)
    }

    /// Returns the server whose templates a URI matches; `None` if none does, or those of several.
    pub(super) fn only_match(&self, uri: &str) -> Option<&ServerIdentifier> {
        let routes = self.routes.values();
        let matching = routes.filter(|route| uri_template::matches(&route.original, uri));
        let mut servers = matching.map(|route| &route.server);
        let first = servers.next()?;
        servers.all(|server| server == first).then_some(first)
    }
}

impl<S> Merged<S> {
    /// Creates an empty list with the cache hints of these lists.
    fn empty(lists: &[ServerItems<S>]) -> Self {
        let hints = lists.iter().map(|list| list.hints);
        let count = lists.iter().map(|list| list.items.len()).sum();
        Self {
            shown: Vec::with_capacity(count),
            hints: hints.reduce(CacheHints::and).unwrap_or(CacheHints::NONE),
            routes: IndexMap::with_capacity(count),
            shared: HashSet::new(),
        }
    }

    /// Adds an item with its route.
    fn show(&mut self, item: RawJson, route: Route<S>) {
        self.shown.push(item);
        self.routes.insert(Arc::clone(&route.shown), route);
    }

    /// Returns the route of a name or URI.
    pub(super) fn route(&self, shown: &str) -> Option<&Route<S>> {
        self.routes.get(shown)
    }

    /// Returns the names or URIs that the client sees.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(AsRef::as_ref)
    }

    /// Returns the item that the client sees under a name or URI.
    pub(super) fn item(&self, shown: &str) -> Option<&RawJson> {
        self.shown.get(self.routes.get_index_of(shown)?)
    }

    /// Returns the route of the first template that a URI matches.
    pub(super) fn matching(&self, uri: &str) -> Option<&Route<S>> {
        self.routes
            .values()
            .find(|route| uri_template::matches(&route.original, uri))
    }
}

/// Returns an item with the names of its toolbox and its server in `_meta`.
fn with_origin(item: &RawJson, server: &ServerIdentifier) -> RawJson {
    let meta = item
        .member("_meta")
        .filter(|it| it.kind() == Kind::Object)
        .unwrap_or_else(|| ObjectText::new().finish());
    let meta = meta
        .with_member("toolbox", &RawJson::of(&server.toolbox.as_str()))
        .with_member("server", &RawJson::of(&server.server.as_str()));
    item.with_member("_meta", &meta)
}

fn each<S: Clone>(lists: Vec<ServerItems<S>>) -> impl Iterator<Item = (S, RawJson)> {
    lists
        .into_iter()
        .flat_map(|ServerItems { server, items, .. }| {
            let items = items.into_iter();
            items.map(move |item| (server.clone(), item))
        })
}

fn text(item: &RawJson, key: &str) -> Option<Arc<str>> {
    Some(item.member(key)?.as_text()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::CacheScope;

    fn list(server: &str, items: &[&str]) -> ServerItems {
        let items = items
            .iter()
            .map(|item| RawJson::parse(&(*item).to_owned().into()).unwrap());
        ServerItems {
            server: server.into(),
            items: items.collect(),
            hints: CacheHints::NONE,
        }
    }

    fn shown(merged: &Merged) -> Vec<&str> {
        merged.shown.iter().map(RawJson::as_str).collect()
    }

    #[test]
    fn duplicate_names_get_the_server_as_prefix() {
        let merged = Merged::by_name(
            vec![
                list("a", &[r#"{"name":"x","n":1e400}"#, r#"{"name":"y"}"#]),
                list("b", &[r#"{"z":1, "name":"x"}"#, r#"{"title":"no name"}"#]),
                list("c c", &[r#"{"name":"x"}"#]),
            ],
            64,
        );
        let hashed = merged.routes[3].shown.clone();
        assert!(hashed.starts_with("c_c__x_"), "{hashed}");
        let last = format!(r#"{{"name":"{hashed}"}}"#);
        assert_eq!(
            shown(&merged),
            [
                r#"{"name":"x","n":1e400}"#,
                r#"{"name":"y"}"#,
                r#"{"z":1,"name":"b__x"}"#,
                &last
            ]
        );
        let route = merged.route("b__x").unwrap();
        assert_eq!((route.server.as_str(), &*route.original), ("b", "x"));
        assert_eq!(merged.route("x").unwrap().server.as_str(), "a");
        assert!(merged.route("c__x").is_none());
    }

    #[test]
    fn an_assigned_name_is_not_assigned_again() {
        let merged = Merged::by_name(
            vec![
                list("a", &[r#"{"name":"b__x"}"#, r#"{"name":"x"}"#]),
                list("b", &[r#"{"name":"x"}"#]),
            ],
            64,
        );
        let names: HashSet<_> = merged.routes.values().map(|route| &route.shown).collect();
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn a_merged_list_has_the_strictest_cache_hints() {
        let hinted = |ttl_ms, scope| ServerItems {
            hints: CacheHints { ttl_ms, scope },
            ..list("a", &[])
        };
        let hints = |lists| Merged::by_key(lists, "uri", |_| None).hints;
        let both = vec![
            hinted(900, CacheScope::Public),
            hinted(500, CacheScope::Private),
        ];
        let expected = CacheHints {
            ttl_ms: 500,
            scope: CacheScope::Private,
        };
        assert_eq!(hints(both), expected);
        let one = hinted(900, CacheScope::Public);
        assert_eq!(hints(vec![one, list("b", &[])]), CacheHints::NONE);
        assert_eq!(hints(Vec::new()), CacheHints::NONE);
    }

    #[test]
    fn a_uri_belongs_to_the_first_server_that_lists_it() {
        let merged = Merged::by_key(
            vec![
                list("a", &[r#"{"uri":"u:1"}"#]),
                list("b", &[r#"{"uri":"u:1"}"#, r#"{"uri":"u:2"}"#]),
            ],
            "uri",
            |_| None,
        );
        assert_eq!(shown(&merged), [r#"{"uri":"u:1"}"#, r#"{"uri":"u:2"}"#]);
        assert_eq!(merged.route("u:1").unwrap().server.as_str(), "a");
        assert_eq!(merged.route("u:2").unwrap().server.as_str(), "b");
    }
}
