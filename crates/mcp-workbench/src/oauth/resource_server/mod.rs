//! The workbench as a resource server (RFC 9728, RFC 6750): checks the tokens that users got from the authorization server
//! of the configuration, and finds out which of its clients they are.

mod claims;
mod introspection;
mod keys;
mod signatures;

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use ident::ClientName;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value, json};
use thiserror::Error;
use url::Url;

use super::{discovery, error::SignInError, fetch::Fetcher};
use crate::{
    config::{Auth, ClientClaims, TokenAlgorithm},
    sha256::Sha256,
};
use claims::{Claims, TokenSubject};
use introspection::Introspector;
use keys::{KeyOwner, KeySet, Keys};

/// The difference between our clock and the issuer's that is tolerated.
const LEEWAY_SECONDS: u64 = 60;
/// The path of the metadata, in front of the path of the resource.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// The longest token that is checked.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// A user who has shown a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// The name that the authorization server has for the user.
    pub subject: Arc<str>,
    /// The client of the configuration that the user is.
    pub client: Option<ClientName>,
    /// A digest of issuer, subject and client, the same in every process.
    pub digest: [u8; 16],
}

/// The reason why a token is refused. It does not say more than the holder of a wrong token may know.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum TokenRefusal {
    /// It is malformed, not the issuer's, not for us, or expired.
    #[error("invalid token")]
    Invalid,
    /// It lacks one of the scopes that it needs, which are all named: a client that asks for a single one may get a token
    /// without the others.
    #[error("the token needs the scopes {}", .0.join(" "))]
    MissingScopes(Vec<String>),
    #[error("no client of the configuration has the claims of this token")]
    NoClient,
    #[error("the authorization server cannot be asked now")]
    Unavailable,
}

pub(crate) struct ResourceServer {
    auth: Auth,
    metadata_url: Url,
    clients: Vec<(ClientName, ClientClaims)>,
    check: TokenCheck,
}

/// The way in which tokens are checked.
enum TokenCheck {
    Signatures(Keys),
    Introspection(Box<Introspector>),
}

/// The task of a resource server. It must run for as long as tokens are checked.
pub(crate) struct ResourceServerTask(Option<KeyOwner>);

impl ResourceServerTask {
    /// Runs until the resource server is dropped, or forever if there is nothing to do.
    pub(crate) async fn run(self) {
        match self.0 {
            Some(owner) => owner.run().await,
            None => std::future::pending().await,
        }
    }
}

impl ResourceServer {
    /// Creates a resource server for the users of these clients, and its task.
    pub(crate) fn new(
        auth: Auth,
        clients: Vec<(ClientName, ClientClaims)>,
    ) -> (Self, ResourceServerTask) {
        let issuer = Issuer::new(&auth.issuer_url);
        let (check, owner) = if let Some(credentials) = auth.introspection.clone() {
            let introspector = Introspector::new(issuer, credentials);
            (TokenCheck::Introspection(Box::new(introspector)), None)
        } else {
            signatures::install();
            let (keys, owner) = keys::keys(issuer);
            (TokenCheck::Signatures(keys), Some(owner))
        };
        let server = Self {
            metadata_url: metadata_url(&auth.resource),
            auth,
            clients,
            check,
        };
        (server, ResourceServerTask(owner))
    }

    /// Checks a token, and returns its user.
    pub(crate) async fn check(&self, token: &str) -> Result<User, TokenRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenRefusal::Invalid);
        }
        let claims = match &self.check {
            TokenCheck::Signatures(keys) => self.signed(keys, token).await?,
            TokenCheck::Introspection(introspector) => {
                introspector.claims(&self.auth, token).await?
            }
        };
        self.user(&Claims::new(claims))
    }

    /// Returns the user with these claims.
    fn user(&self, claims: &Claims) -> Result<User, TokenRefusal> {
        if claims.is_bound() {
            return Err(TokenRefusal::Invalid);
        }
        let subject = claims.subject().ok_or(TokenRefusal::Invalid)?;
        if !claims.have(&self.auth.scopes) {
            return Err(TokenRefusal::MissingScopes(self.auth.scopes.clone()));
        }
        let client = claims.client(&self.clients)?;
        let name = client.as_ref().map(ClientName::as_str);
        let (kind, subject) = match subject {
            TokenSubject::User(name) => ("user", name),
            TokenSubject::Program(name) => ("program", name),
        };
        // JSON keeps the parts apart whatever they contain, and a program with the name of a user is somebody else.
        let identity = json!([self.auth.issuer, kind, subject, name]).to_string();
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(identity)[..16]);
        Ok(User {
            subject: subject.into(),
            client,
            digest,
        })
    }

    /// Returns the claims of a token with a valid signature. If no known key fits, the keys are fetched once.
    async fn signed(&self, keys: &Keys, token: &str) -> Result<Map<String, Value>, TokenRefusal> {
        let header = decode_header(token).map_err(|_| TokenRefusal::Invalid)?;
        // A header that must be understood, and that nobody here understands.
        if header.crit.is_some() || !self.accepts(header.alg) {
            return Err(TokenRefusal::Invalid);
        }
        let id = header.kid.as_deref();
        let has_key = |keys: &KeySet| keys.candidates(id, header.alg).next().is_some();
        // A token that names a known key and has a wrong signature costs no request.
        let known = match keys.known().filter(|keys| has_key(keys)) {
            Some(known) => known,
            None => keys.fetched().await.ok_or(TokenRefusal::Unavailable)?,
        };
        let validation = self.validation(header.alg);
        let claims = known
            .candidates(id, header.alg)
            .find_map(|key| decode::<Map<String, Value>>(token, &key.public, &validation).ok());
        claims.map(|it| it.claims).ok_or(TokenRefusal::Invalid)
    }

    fn accepts(&self, algorithm: Algorithm) -> bool {
        let mut allowed = self.auth.algorithms.iter();
        allowed.any(|it| named(*it) == algorithm)
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.auth.issuer]);
        validation.set_audience(&[&self.auth.audience]);
        // Without this the claims are only checked if the token has them.
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation
    }

    /// Returns the metadata of the workbench for clients that look for the authorization server (RFC 9728).
    pub(crate) fn metadata(&self) -> String {
        let mut metadata = json!({
            "resource": self.auth.resource.as_str(),
            "authorization_servers": [self.auth.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "MCP Workbench",
        });
        let clients = self.clients.iter();
        let of_clients = clients.flat_map(|(_, wanted)| &wanted.scopes);
        let mut scopes: Vec<&String> = self.auth.scopes.iter().chain(of_clients).collect();
        scopes.sort();
        scopes.dedup();
        if !scopes.is_empty() {
            metadata["scopes_supported"] = json!(scopes);
        }
        metadata.to_string()
    }

    /// Returns the address of the metadata, which refused clients get.
    pub(crate) fn metadata_url(&self) -> &Url {
        &self.metadata_url
    }

    /// Returns the path by which clients know the workbench.
    pub(crate) fn public_path(&self) -> &str {
        self.auth.resource.path()
    }

    /// Returns the scopes that every token must have.
    pub(crate) fn scopes(&self) -> &[String] {
        &self.auth.scopes
    }
}

/// Returns the address of the metadata of a resource: its path comes after the well-known one.
fn metadata_url(resource: &Url) -> Url {
    let mut url = resource.clone();
    url.set_query(None);
    url.set_fragment(None);
    let path = resource.path().trim_end_matches('/');
    url.set_path(&format!("{METADATA_PATH}{path}"));
    url
}

/// The authorization server that issues the tokens.
struct Issuer {
    fetcher: Fetcher,
}

impl Issuer {
    fn new(url: &Url) -> Self {
        Self {
            fetcher: Fetcher::new(url),
        }
    }

    /// Returns an address from the metadata of the authorization server.
    async fn endpoint(&self, name: &str) -> Result<Url, SignInError> {
        let metadata = discovery::metadata(&self.fetcher).await?;
        let url = metadata
            .text(name)
            .and_then(|it| Url::parse(it).ok())
            .ok_or(SignInError::Metadata)?;
        self.fetcher.check(&url)?;
        Ok(url)
    }
}

fn named(algorithm: TokenAlgorithm) -> Algorithm {
    match algorithm {
        TokenAlgorithm::Rs256 => Algorithm::RS256,
        TokenAlgorithm::Rs384 => Algorithm::RS384,
        TokenAlgorithm::Rs512 => Algorithm::RS512,
        TokenAlgorithm::Ps256 => Algorithm::PS256,
        TokenAlgorithm::Ps384 => Algorithm::PS384,
        TokenAlgorithm::Ps512 => Algorithm::PS512,
        TokenAlgorithm::Es256 => Algorithm::ES256,
        TokenAlgorithm::Es384 => Algorithm::ES384,
        TokenAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}

fn now_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}

#[cfg(test)]
mod tests;
