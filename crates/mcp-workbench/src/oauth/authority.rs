//! The authorization server of a server: found, checked, and asked.

mod endpoints;

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::{
    Account, Challenge,
    discovery::{self, Discovery, discover},
    error::{FetchFault, OAuthCode, SignInError},
    fetch::{Fetcher, JSON, post, refusal},
    metadata::Metadata,
    record::{Record, RegisteredClient},
};
use crate::{alarm::timeout, config::Auth, dial::Guard, sha256::Sha256};

pub(super) use endpoints::IssuedToken;

/// Upper bound on the time for discovery, with every address that metadata may be at.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(45);
/// The name under which the workbench registers.
const OUR_NAME: &str = "MCP Workbench";
/// The scope for tokens that outlive the user's presence, at servers that have it.
pub(super) const OFFLINE: &str = "offline_access";

/// An authorization server, as discovery has just found it.
pub(super) struct Authority {
    account: Account,
    fetcher: Fetcher,
    found: Discovery,
}

/// A client that was registered before, and where.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct KnownClient {
    pub(super) issuer: Option<String>,
    pub(super) client: RegisteredClient,
}

/// The values of one attempt that the address to sign in at contains.
pub(super) struct AuthorizationRequest<'a> {
    pub(super) client_id: &'a str,
    pub(super) redirect_uri: &'a str,
    pub(super) scopes: &'a [String],
    pub(super) state: &'a str,
    /// The secret that the code is bound to (PKCE). Only its digest is sent.
    pub(super) verifier: &'a str,
}

impl Authority {
    /// Finds the authorization server of an account's server, beginning with a challenge of the server, or with the
    /// known address of its resource metadata.
    pub(super) async fn find(
        account: &Account,
        challenge: Option<&Challenge>,
        known: Option<&str>,
    ) -> Result<Self, SignInError> {
        let fetcher = Fetcher::new(account.url());
        let found = timeout(DISCOVERY_TIMEOUT, discover(&fetcher, challenge, known))
            .await
            .unwrap_or_else(|_| {
                let host = account.url().host_str().unwrap_or_default().to_owned();
                Err(FetchFault::TooSlow { host }.into())
            })?;
        let authority = Self {
            account: account.clone(),
            fetcher,
            found,
        };
        // Here and not in the callers, so that nobody can have an authority that must not be asked.
        authority.check_trust()?;
        authority.check_endpoints()?;
        Ok(authority)
    }

    /// Returns the authorization server of the users, for tokens of a resource. Its address is that of the configuration, so
    /// nothing that a server says leads to it.
    pub(super) async fn of_users(
        account: &Account,
        auth: &Auth,
        resource: &str,
    ) -> Result<Self, SignInError> {
        let fetcher = Fetcher::new(&auth.issuer_url);
        let metadata = timeout(DISCOVERY_TIMEOUT, discovery::metadata(&fetcher))
            .await
            .unwrap_or_else(|_| {
                let host = auth.issuer_url.host_str().unwrap_or_default().to_owned();
                Err(FetchFault::TooSlow { host }.into())
            })?;
        let authority = Self {
            account: account.clone(),
            fetcher,
            found: Discovery {
                metadata,
                is_described: true,
                resource: resource.to_owned(),
                scopes: Vec::new(),
                challenge: None,
            },
        };
        if authority.issuer() != Some(&*auth.issuer) {
            return Err(SignInError::WrongIssuer);
        }
        authority.check_endpoints()?;
        Ok(authority)
    }

    /// Refuses any authority but the one that the entry trusts, if it names one: no other may get the entry's secrets.
    fn check_trust(&self) -> Result<(), SignInError> {
        let trusted = self.account.settings().issuer.as_deref();
        if trusted.is_none() || trusted == self.issuer() {
            Ok(())
        } else {
            Err(SignInError::UntrustedIssuer)
        }
    }

    /// Refuses an authority whose endpoints must not be asked. They are checked again when they are dialled.
    fn check_endpoints(&self) -> Result<(), SignInError> {
        if let Some(address) = self.metadata().text("authorization_endpoint") {
            harmless(self.fetcher.server(), address)?;
        }
        for endpoint in ["token_endpoint", "registration_endpoint"] {
            if let Some(endpoint) = self.metadata().text(endpoint) {
                let url = Url::parse(endpoint).map_err(|_| SignInError::Metadata)?;
                self.fetcher.check(&url)?;
            }
        }
        Ok(())
    }

    /// Returns the challenge that the server sent during discovery, if it was asked for one.
    pub(super) fn challenge(&self) -> Option<&Challenge> {
        self.found.challenge.as_ref()
    }

    fn metadata(&self) -> &Metadata {
        &self.found.metadata
    }

    /// Returns the issuer; `None` if the server has no metadata (2025-03-26).
    pub(super) fn issuer(&self) -> Option<&str> {
        self.metadata().text("issuer")
    }

    /// Returns true if it promises to name its issuer when it redirects the browser (RFC 9207).
    pub(super) fn names_itself(&self) -> bool {
        let field = "authorization_response_iss_parameter_supported";
        self.metadata().flag(field)
    }

    /// Refuses an authority that does not issue codes or does not protect them with PKCE. One without metadata cannot
    /// say so; the challenge is still sent to it.
    pub(super) fn check_support(&self) -> Result<(), SignInError> {
        let methods = "code_challenge_methods_supported";
        if self.found.is_described && self.metadata().lists(methods, "S256") != Some(true) {
            return Err(SignInError::NoPkce);
        }
        match self.metadata().lists("response_types_supported", "code") {
            Some(false) => Err(SignInError::Metadata),
            _ => Ok(()),
        }
    }

    /// Returns the scopes to request: those of the entry, or those that the server names, and those that were asked for
    /// since. A step-up adds the scopes that the user has.
    pub(super) fn scopes(&self, record: Option<&Record>, is_step_up: bool) -> Vec<String> {
        let mut scopes = self.account.settings().scopes.clone();
        if scopes.is_empty() {
            scopes.clone_from(&self.found.scopes);
        }
        scopes.extend_from_slice(self.account.more_scopes());
        if let Some(record) = record.filter(|it| is_step_up || !it.needed.is_empty()) {
            scopes.extend(record.scopes.iter().chain(&record.needed).cloned());
        }
        let has_offline = self.metadata().lists("scopes_supported", OFFLINE);
        // Without any scope the server uses its default ones, and `offline_access` alone would replace them.
        if !scopes.is_empty() && has_offline == Some(true) {
            scopes.push(OFFLINE.to_owned());
        }
        unique(scopes)
    }

    /// Returns the client to sign in as: the entry's, the one that a document describes, the one of the last sign-in, or
    /// a new one.
    pub(super) async fn client(
        &self,
        redirect_uri: &str,
        scopes: &[String],
        known: Option<&KnownClient>,
    ) -> Result<RegisteredClient, SignInError> {
        let settings = self.account.settings();
        let client = |id: &str, secret: Option<&String>| RegisteredClient {
            id: id.to_owned(),
            secret: secret.cloned(),
            redirect_uri: None,
        };
        let supports_documents = self
            .metadata()
            .flag("client_id_metadata_document_supported");
        let document = settings.client_metadata_url.as_ref();
        // A client that was registered for another redirect address or at another authority is of no use.
        let is_reusable = |it: &&KnownClient| {
            it.client.redirect_uri.as_deref() == Some(redirect_uri)
                && it.issuer.as_deref() == self.issuer()
        };
        if let Some(id) = &settings.client_id {
            Ok(client(id, settings.client_secret.as_ref()))
        } else if let Some(url) = document.filter(|_| supports_documents) {
            Ok(client(url, None))
        } else if let Some(known) = known.filter(is_reusable) {
            Ok(known.client.clone())
        } else {
            self.register(redirect_uri, scopes).await
        }
    }

    /// Registers the workbench as a new client (RFC 7591).
    async fn register(
        &self,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<RegisteredClient, SignInError> {
        let endpoint = self
            .metadata()
            .text("registration_endpoint")
            .ok_or(SignInError::NoRegistration)?;
        let url = Url::parse(endpoint).map_err(|_| SignInError::Metadata)?;
        // A program on the user's machine cannot keep a secret, so a public client is registered.
        let mut request = json!({
            "client_name": OUR_NAME,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": application_type(redirect_uri),
        });
        if !scopes.is_empty() {
            request["scope"] = scopes.join(" ").into();
        }
        let response = self
            .fetcher
            .fetch(&url, post(JSON, request.to_string()))
            .await?;
        let body = serde_json::from_slice::<Value>(response.body()).unwrap_or_default();
        match (refusal(&response), body["client_id"].as_str()) {
            (None, Some(id)) => Ok(RegisteredClient {
                id: id.to_owned(),
                // Some servers send an empty secret to clients that have none.
                secret: body["client_secret"]
                    .as_str()
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned),
                redirect_uri: Some(redirect_uri.to_owned()),
            }),
            // Without metadata the endpoint was only a guess.
            _ if !self.found.is_described => Err(SignInError::NotDescribed),
            (code, _) => Err(SignInError::RegistrationRefused {
                code: code.unwrap_or(OAuthCode::Other),
            }),
        }
    }

    /// Returns the address to sign in at.
    pub(super) fn address(&self, request: &AuthorizationRequest<'_>) -> Result<Url, SignInError> {
        let endpoint = self.metadata().text("authorization_endpoint");
        let mut url = harmless(
            self.fetcher.server(),
            endpoint.ok_or(SignInError::Metadata)?,
        )?;
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(request.verifier));
        let mut query = url.query_pairs_mut();
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", request.client_id),
            ("redirect_uri", request.redirect_uri),
            ("state", request.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &self.found.resource),
        ]);
        if !request.scopes.is_empty() {
            query.append_pair("scope", &request.scopes.join(" "));
        }
        if request.scopes.iter().any(|scope| scope == OFFLINE) {
            // Else OpenID providers leave the scope out (OpenID Connect Core, section 11).
            query.append_pair("prompt", "consent");
        }
        drop(query);
        Ok(url)
    }
}

/// Returns the kind of application with a redirect address: native ones have a port of this machine.
fn application_type(redirect_uri: &str) -> &'static str {
    // OpenID providers treat a client without a type as `web`, and refuse redirects over http for those.
    if redirect_uri.starts_with("https:") {
        "web"
    } else {
        "native"
    }
}

/// Returns the texts without repetitions, in their order.
fn unique(texts: Vec<String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::with_capacity(texts.len());
    for text in texts {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    unique
}

/// Parses an address that the user may be sent to: https, or http to this machine for a server on this machine, without
/// a user name, and in plain characters only.
pub(super) fn harmless(server: &Url, address: &str) -> Result<Url, SignInError> {
    let url = Url::parse(address).map_err(|_| SignInError::HostileAddress)?;
    let is_allowed = Guard::new(server).check(&url).is_ok();
    // A user name can pose as the host, as in `https://bank.example@evil.example`.
    let has_user = !url.username().is_empty() || url.password().is_some();
    // The address is printed in terminals and passed to the program that opens browsers.
    let is_plain = url.as_str().bytes().all(|byte| byte.is_ascii_graphic());
    if is_allowed && is_plain && !has_user {
        Ok(url)
    } else {
        Err(SignInError::HostileAddress)
    }
}
