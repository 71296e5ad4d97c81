//! Discovery of the authorization server of a server, in the order of the specification: the resource metadata that the
//! server names (RFC 9728) or has at its well-known addresses, then the authorization servers that these name (RFC 8414,
//! OIDC). Without resource metadata the server may be its own authorization server (2025-03-26).

use serde::Deserialize;
use url::Url;

use super::{
    Challenge, challenge::is_scope, error::SignInError, fetch::Fetcher, metadata::Metadata,
};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

pub(super) struct Discovery {
    pub(super) metadata: Metadata,
    /// True if the metadata is the server's own word, false if it is the default of 2025-03-26.
    pub(super) is_described: bool,
    /// The identifier that tokens are requested for (RFC 8707).
    pub(super) resource: String,
    /// The scopes that the server asks for.
    pub(super) scopes: Vec<String>,
    /// The challenge that the server answered with, if it was asked for one.
    pub(super) challenge: Option<Challenge>,
}

/// The metadata of a protected resource.
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: Option<String>,
    /// The name of the list's first member in drafts of RFC 9728.
    authorization_server: Option<String>,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// Finds the authorization server. `known` is the address of the resource metadata of the last sign-in, for callers
/// without a challenge.
pub(super) async fn discover(
    fetcher: &Fetcher,
    challenge: Option<&Challenge>,
    known: Option<&str>,
) -> Result<Discovery, SignInError> {
    let server = fetcher.server();
    // A challenge is the latest word of the server, so that the address of the last sign-in does not count beside it.
    let pointer = match challenge {
        Some(challenge) => challenge.resource_metadata(server),
        None => known.and_then(|it| Url::parse(it).ok()),
    };
    let mut resource = named_resource(fetcher, pointer.as_ref()).await?;
    let mut received = None;
    // No challenge is at hand, so a request without a token makes the server send one.
    if resource.is_none() {
        received = fetcher.probe().await?;
        resource = find_resource(fetcher, received.as_ref()).await?;
    }
    let mut described = None;
    if let Some(resource) = &resource {
        described = named_authority(fetcher, resource).await?;
    }
    if described.is_none() {
        // Servers of the first OAuth revision (2025-03-26) are their own authorization server.
        described = own_authority(fetcher).await?;
    }
    let (own_name, supported) =
        resource.map_or((None, None), |it| (it.resource, it.scopes_supported));
    // The challenge names the scopes of this request; the metadata only lists all that exist.
    let asked = challenge
        .or(received.as_ref())
        .map(Challenge::scopes)
        .filter(|it| !it.is_empty());
    let mut scopes = asked.or(supported).unwrap_or_default();
    scopes.retain(|scope| is_scope(scope));
    Ok(Discovery {
        is_described: described.is_some(),
        metadata: described.unwrap_or_else(|| Metadata::guess(server)),
        resource: own_name.unwrap_or_else(|| server.to_string()),
        scopes,
        challenge: received,
    })
}

/// Fetches the metadata of the authorization server whose address the fetcher has.
pub(super) async fn metadata(fetcher: &Fetcher) -> Result<Metadata, SignInError> {
    let issuer = fetcher.server();
    let found = fetch_metadata(fetcher, &well_known(issuer), issuer).await?;
    found.ok_or(SignInError::Metadata)
}

/// Fetches the resource metadata that the server itself has named. A document about another server is an error: any
/// other way to continue would drop the binding of the token to this server.
async fn named_resource(
    fetcher: &Fetcher,
    url: Option<&Url>,
) -> Result<Option<ResourceMetadata>, SignInError> {
    match url {
        Some(url) => fetch_resource(fetcher, url).await?.transpose(),
        None => Ok(None),
    }
}

/// Looks for the resource metadata where the challenge points, and then at the well-known addresses.
async fn find_resource(
    fetcher: &Fetcher,
    challenge: Option<&Challenge>,
) -> Result<Option<ResourceMetadata>, SignInError> {
    let server = fetcher.server();
    let pointer = challenge.and_then(|it| it.resource_metadata(server));
    if let Some(resource) = named_resource(fetcher, pointer.as_ref()).await? {
        return Ok(Some(resource));
    }
    let path = server.path().trim_matches('/');
    // In this order: the address of the specification for this path, one below the path, and that of the whole
    // origin.
    let mut candidates = vec![at(server, RESOURCE)];
    if !path.is_empty() {
        candidates.insert(0, at(server, &format!("/{path}{RESOURCE}")));
        candidates.insert(0, at(server, &format!("{RESOURCE}/{path}")));
    }
    candidates.retain(|url| pointer.as_ref() != Some(url));
    for url in candidates {
        // These addresses were guessed. A document about another server is skipped here, since nobody has claimed
        // that it is about this one.
        if let Some(Ok(resource)) = fetch_resource(fetcher, &url).await? {
            return Ok(Some(resource));
        }
    }
    Ok(None)
}

/// Fetches a document. `None`: there is no such document; an error inside: it is not about this server.
async fn fetch_resource(
    fetcher: &Fetcher,
    url: &Url,
) -> Result<Option<Result<ResourceMetadata, SignInError>>, SignInError> {
    let document = fetcher
        .get(url)
        .await?
        .and_then(|it| serde_json::from_slice::<ResourceMetadata>(&it).ok());
    Ok(document.map(|document| {
        let resource = document.resource.as_deref().unwrap_or_default();
        if covers(resource, fetcher.server()) {
            Ok(document)
        } else {
            Err(SignInError::Metadata)
        }
    }))
}

/// Returns true if a resource identifier covers a server: it is the same origin, and the same path or one above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let path = resource.path();
    let below = server.path().strip_prefix(path);
    // `/mcp` covers `/mcp/tools`, but not `/mcp-other`.
    let is_above =
        below.is_some_and(|it| it.is_empty() || it.starts_with('/') || path.ends_with('/'));
    is_above && resource.origin() == server.origin() && resource.fragment().is_none()
}

/// Fetches the metadata of the first usable authorization server that the resource metadata names. Returns `None` if it
/// names none. If none of them is usable that is an error: the user is sent nowhere that the server did not name.
async fn named_authority(
    fetcher: &Fetcher,
    resource: &ResourceMetadata,
) -> Result<Option<Metadata>, SignInError> {
    let listed = resource.authorization_servers.iter().flatten();
    let names: Vec<&str> = resource
        .authorization_server
        .iter()
        .chain(listed)
        .map(|it| it.trim())
        .filter(|it| !it.is_empty())
        .collect();
    if names.is_empty() {
        return Ok(None);
    }
    let mut failure = SignInError::Metadata;
    for name in names {
        let Ok(url) = fetcher.server().join(name) else {
            continue;
        };
        if let Err(fault) = fetcher.check(&url) {
            failure = fault.into();
            continue;
        }
        let issuer = issuer_of(&url);
        let mut candidates = well_known(&issuer);
        if !issuer.path().trim_matches('/').is_empty() {
            // Servers with one issuer for several paths have it here.
            candidates.push(at(&issuer, OAUTH));
        }
        if let Some(metadata) = fetch_metadata(fetcher, &candidates, &issuer).await? {
            return Ok(Some(metadata));
        }
    }
    Err(failure)
}

/// Fetches the metadata of a server that is its own authorization server, by its path or for its whole origin.
async fn own_authority(fetcher: &Fetcher) -> Result<Option<Metadata>, SignInError> {
    let server = fetcher.server();
    let own = at(server, server.path().trim_end_matches('/'));
    let origin = at(server, "");
    let mut issuers = vec![own, origin];
    // A server without a path is the same as its origin.
    issuers.dedup();
    for issuer in issuers {
        let candidates = well_known(&issuer);
        if let Some(metadata) = fetch_metadata(fetcher, &candidates, &issuer).await? {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

/// Fetches the metadata of an issuer. A document of another issuer is an error.
async fn fetch_metadata(
    fetcher: &Fetcher,
    candidates: &[Url],
    issuer: &Url,
) -> Result<Option<Metadata>, SignInError> {
    for url in candidates {
        let document = fetcher.get(url).await?;
        let Some(metadata) = document.and_then(|it| Metadata::parse(&it)) else {
            continue;
        };
        // The first document decides. Whoever can answer one of the later addresses must not replace a document of
        // another issuer.
        return match metadata.text("issuer") {
            Some(named) if is_issuer(named, issuer) => Ok(Some(metadata)),
            _ => Err(SignInError::WrongIssuer),
        };
    }
    Ok(None)
}

/// Compares an issuer with the expected one. An issuer without a path has a slash at its end only as a [`Url`].
fn is_issuer(named: &str, expected: &Url) -> bool {
    let text = expected.as_str();
    named == text || (expected.path() == "/" && Some(named) == text.strip_suffix('/'))
}

/// Returns the well-known addresses of an issuer's metadata, in the order of the specification.
fn well_known(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_matches('/');
    if path.is_empty() {
        return vec![at(issuer, OAUTH), at(issuer, OPENID)];
    }
    vec![
        at(issuer, &format!("{OAUTH}/{path}")),
        at(issuer, &format!("{OPENID}/{path}")),
        at(issuer, &format!("/{path}{OPENID}")),
    ]
}

/// Returns the issuer of an authorization server. Some servers list the address of the metadata instead.
fn issuer_of(url: &Url) -> Url {
    let path = url.path();
    if !path.contains("/.well-known/") {
        return url.clone();
    }
    at(url, &path.replacen(OAUTH, "", 1).replacen(OPENID, "", 1))
}

/// Returns an address of the same origin.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(path);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_specification() {
        let paths = |issuer: &str| well_known(&url(issuer)).into_iter().map(String::from);
        assert_eq!(
            paths("https://as.example").collect::<Vec<_>>(),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            paths("https://as.example/a/b/?x").collect::<Vec<_>>(),
            [
                "https://as.example/.well-known/oauth-authorization-server/a/b",
                "https://as.example/.well-known/openid-configuration/a/b",
                "https://as.example/a/b/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn a_listed_metadata_address_identifies_its_issuer() {
        for (listed, issuer) in [
            ("https://as.example/a", "https://as.example/a"),
            (
                "https://as.example/.well-known/openid-configuration",
                "https://as.example/",
            ),
            (
                "https://as.example/.well-known/oauth-authorization-server/a",
                "https://as.example/a",
            ),
            (
                "https://as.example/a/.well-known/openid-configuration",
                "https://as.example/a",
            ),
        ] {
            assert_eq!(issuer_of(&url(listed)).as_str(), issuer);
        }
    }

    #[test]
    fn issuers_are_compared_exactly_but_for_the_slash_of_an_origin() {
        for (named, expected, is_same) in [
            ("https://as.example", "https://as.example/", true),
            ("https://as.example/", "https://as.example/", true),
            ("https://as.example/a", "https://as.example/a", true),
            ("https://as.example/a/", "https://as.example/a", false),
            ("https://as.example/a", "https://as.example/a/", false),
            ("https://AS.example", "https://as.example/", false),
            ("", "https://as.example/", false),
        ] {
            assert_eq!(is_issuer(named, &url(expected)), is_same, "{named}");
        }
    }

    #[test]
    fn a_resource_covers_its_own_path_and_those_below() {
        let server = url("https://mcp.example/a/b?x=y");
        for (resource, is_covered) in [
            ("https://mcp.example/a/b", true),
            ("https://mcp.example/a/b?x=z", true),
            ("https://mcp.example/a", true),
            ("https://mcp.example/a/", true),
            ("https://mcp.example", true),
            ("https://mcp.example:443/a", true),
            ("https://mcp.example/a/b/c", false),
            ("https://mcp.example/a/", true),
            ("https://mcp.example/a/bc", false),
            ("https://mcp.example/", true),
            ("https://mcp.example/a/b#c", false),
            ("http://mcp.example/a/b", false),
            ("https://other.example/a/b", false),
            ("/a/b", false),
            ("", false),
        ] {
            assert_eq!(covers(resource, &server), is_covered, "{resource}");
        }
        assert!(!covers(
            "https://mcp.example/a",
            &url("https://mcp.example/ab")
        ));
    }
}
