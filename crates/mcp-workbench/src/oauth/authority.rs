//! The authorization server of a server: found, checked, and asked. This is where `rmcp` does the protocol.

mod credentials;
mod revocation;

use std::{sync::Arc, time::Duration};

use hyper::{Method, Request, header::CONTENT_TYPE};
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{
    Account, Challenge,
    error::{FetchFault, OAuthCode, SignInError},
    fetch::Fetcher,
    record::{Record, RegisteredClient, Token},
};
use crate::{alarm::timeout, dial::Guard};

/// How long finding it may take in all, with every address that it may be described at.
const PATIENCE: Duration = Duration::from_secs(45);
/// What servers are told our name is.
const OUR_NAME: &str = "MCP Workbench";
/// Asks for tokens that outlive the person's presence, where that is a scope.
pub(super) const OFFLINE: &str = "offline_access";

/// An authorization server that was found by what its server says, just now.
pub(super) struct Authority {
    account: Account,
    fetcher: Arc<Fetcher>,
    manager: AuthorizationManager,
    metadata: AuthorizationMetadata,
    /// Whether it was described, or only guessed by the rules of 2025-03-26.
    is_described: bool,
}

impl Authority {
    /// Finds the authorization server of an account's server.
    pub(super) async fn find(
        account: &Account,
        challenge: Option<&str>,
    ) -> Result<Self, SignInError> {
        let found = timeout(PATIENCE, Self::find_patiently(account, challenge)).await;
        found.unwrap_or_else(|_| {
            let host = account.url().host_str().unwrap_or_default().to_owned();
            Err(FetchFault::TooSlow { host }.into())
        })
    }

    async fn find_patiently(
        account: &Account,
        challenge: Option<&str>,
    ) -> Result<Self, SignInError> {
        let fetcher = Arc::new(Fetcher::new(account.url()));
        let client: Arc<Fetcher> = Arc::clone(&fetcher);
        let manager =
            AuthorizationManager::new_with_oauth_http_client(account.url().as_str(), client);
        let mut manager = manager.await.map_err(|_| SignInError::UnusableUrl)?;
        let resolved = manager.resolve_metadata_from_challenge(challenge).await;
        let resolved = resolved.map_err(|error| fetcher.explain(&error))?;
        let metadata = resolved.metadata;
        manager.set_metadata(metadata.clone());
        let authority = Self {
            account: account.clone(),
            fetcher,
            manager,
            metadata,
            is_described: resolved.source.is_discovered(),
        };
        authority.check_trust()?;
        authority.check_endpoints()?;
        Ok(authority)
    }

    /// Whether it is the one that the entry trusts: secrets of the entry go to nobody else.
    fn check_trust(&self) -> Result<(), SignInError> {
        let trusted = self.account.settings().issuer.as_deref();
        if trusted.is_none() || trusted == self.issuer() {
            Ok(())
        } else {
            Err(SignInError::UntrustedIssuer)
        }
    }

    /// What the server asked for when it was looked for where to sign in.
    pub(super) fn challenge(&self) -> Option<&Challenge> {
        self.fetcher.challenge()
    }

    /// Who it says that it is; none where it was only guessed.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.metadata.issuer.as_deref()
    }

    /// Whether it promises to name itself when it sends the browser back.
    pub(super) fn names_itself(&self) -> bool {
        let field = "authorization_response_iss_parameter_supported";
        self.flag(field)
    }

    /// Whether it protects codes. One that is not described cannot say so; the challenge is sent to it all the same.
    pub(super) fn check_pkce(&self) -> Result<(), SignInError> {
        let methods = self.metadata.code_challenge_methods_supported.as_ref();
        let protects = methods.is_some_and(|methods| methods.iter().any(|it| it == "S256"));
        if protects || !self.is_described {
            Ok(())
        } else {
            Err(SignInError::NoPkce)
        }
    }

    /// The scopes to ask for: the entry's, or those that the server names; and those that were asked for since. With them,
    /// or for somebody who lacks scopes, go those that they have.
    pub(super) async fn scopes(&self, record: Option<&Record>, is_step_up: bool) -> Vec<String> {
        let mut scopes = self.account.settings().scopes.clone();
        if scopes.is_empty() {
            scopes = self.manager.select_initial_scopes(&[]).await;
        }
        scopes.extend_from_slice(self.account.more_scopes());
        if let Some(record) = record.filter(|it| is_step_up || !it.needed.is_empty()) {
            scopes.extend(record.scopes.iter().chain(&record.needed).cloned());
        }
        let supported = self.metadata.scopes_supported.as_ref();
        if !scopes.is_empty() && supported.is_some_and(|it| it.iter().any(|it| it == OFFLINE)) {
            scopes.push(OFFLINE.to_owned());
        }
        let mut unique: Vec<String> = Vec::with_capacity(scopes.len());
        for scope in scopes {
            if !unique.contains(&scope) {
                unique.push(scope);
            }
        }
        unique
    }

    /// Becomes a client of it: the entry's, one that a document describes, the one of last time, or a new one.
    pub(super) async fn become_client(
        &mut self,
        redirect_uri: &str,
        scopes: &[String],
        record: Option<&Record>,
    ) -> Result<RegisteredClient, SignInError> {
        let settings = self.account.settings();
        let client = |id: &str, secret: Option<&String>| RegisteredClient {
            id: id.to_owned(),
            secret: secret.cloned(),
            redirect_uri: None,
        };
        let document = settings.client_metadata_url.as_ref();
        let document = document.filter(|_| self.flag("client_id_metadata_document_supported"));
        let chosen = if let Some(id) = &settings.client_id {
            client(id, settings.client_secret.as_ref())
        } else if let Some(url) = document {
            client(url, None)
        } else if let Some(known) = record.and_then(|it| self.known_client(it, redirect_uri)) {
            known
        } else {
            return self.register(redirect_uri, scopes).await;
        };
        self.configure(&chosen, redirect_uri)?;
        Ok(chosen)
    }

    /// The client of last time, if it is one of this authority and for this address.
    fn known_client(&self, record: &Record, redirect_uri: &str) -> Option<RegisteredClient> {
        let is_same = record.client.redirect_uri.as_deref() == Some(redirect_uri)
            && record.issuer() == self.issuer();
        is_same.then(|| record.client.clone())
    }

    async fn register(
        &mut self,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<RegisteredClient, SignInError> {
        if self.metadata.registration_endpoint.is_none() {
            return Err(SignInError::NoRegistration);
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = self
            .manager
            .register_client(OUR_NAME, redirect_uri, &scopes);
        let registered = registered.await.map_err(|error| {
            match self.fetcher.explain(&error) {
                // Where nothing is described, only a guess was asked.
                SignInError::RegistrationRefused { .. } if !self.is_described => {
                    SignInError::NotDescribed
                }
                error => error,
            }
        })?;
        Ok(RegisteredClient {
            id: registered.client_id,
            secret: registered.client_secret,
            redirect_uri: Some(redirect_uri.to_owned()),
        })
    }

    fn configure(
        &mut self,
        client: &RegisteredClient,
        redirect_uri: &str,
    ) -> Result<(), SignInError> {
        let mut config = OAuthClientConfig::new(&client.id, redirect_uri);
        if let Some(secret) = &client.secret {
            config = config.with_client_secret(secret);
        }
        let configured = self.manager.configure_client(config);
        configured.map_err(|_| SignInError::Metadata)
    }

    /// The address to sign in at.
    pub(super) async fn address(&self, scopes: &[String]) -> Result<Url, SignInError> {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let address = self.manager.get_authorization_url(&scopes).await;
        let address = address.map_err(|error| self.fetcher.explain(&error))?;
        harmless(self.account.url(), &address)
    }

    /// Exchanges a code for a token, and the scopes that came with it.
    pub(super) async fn exchange(
        &self,
        code: &str,
        state: &str,
        issuer: Option<&str>,
    ) -> Result<Given, SignInError> {
        let exchanged = self
            .manager
            .exchange_code_for_token_with_issuer(code, state, issuer);
        let response = exchanged.await.map_err(|it| self.fetcher.explain(&it))?;
        Given::of(&response)
    }

    /// Gets a new token for the old one's refresh token. Only ever called with a record of this authority.
    pub(super) async fn refresh(&mut self, record: &Record) -> Result<Given, SignInError> {
        let token = record.token.as_ref().ok_or(SignInError::Over)?;
        let response = serde_json::json!({
            "access_token": token.access,
            "token_type": "bearer",
            "refresh_token": token.refresh,
        });
        let response = serde_json::from_value::<OAuthTokenResponse>(response).ok();
        let id = record.client.id.clone();
        // Without scopes the new token has those of the old one.
        let credentials = StoredCredentials::new(id, response, Vec::new(), None);
        let store = InMemoryCredentialStore::new();
        let stored = store.save(credentials).await;
        stored.map_err(|_| SignInError::Metadata)?;
        self.manager.set_credential_store(store);
        let client = self.client_of(record);
        let redirect_uri = client.redirect_uri.clone();
        let nowhere = self.account.url().to_string();
        self.configure(&client, &redirect_uri.unwrap_or(nowhere))?;
        let refreshed = self.manager.refresh_token().await;
        let response = refreshed.map_err(|error| self.fetcher.explain(&error))?;
        Given::of(&response)
    }

    /// The client of a record, with the secret of the entry where it is the entry's.
    fn client_of(&self, record: &Record) -> RegisteredClient {
        let settings = self.account.settings();
        let mut client = record.client.clone();
        if settings.client_id.as_ref() == Some(&client.id) {
            client.secret.clone_from(&settings.client_secret);
        }
        client
    }

    fn flag(&self, field: &str) -> bool {
        let field = self.metadata.additional_fields.get(field);
        field.and_then(Value::as_bool).unwrap_or(false)
    }

    /// Refuses an authority whose addresses nobody may ask. They are checked again when they are dialled.
    fn check_endpoints(&self) -> Result<(), SignInError> {
        let guard = Guard::new(self.account.url());
        harmless(self.account.url(), &self.metadata.authorization_endpoint)?;
        let asked = [
            Some(&self.metadata.token_endpoint),
            self.metadata.registration_endpoint.as_ref(),
        ];
        for endpoint in asked.into_iter().flatten() {
            let url = Url::parse(endpoint).map_err(|_| SignInError::Metadata)?;
            let host = url.host_str().unwrap_or_default().to_owned();
            guard
                .check(&url)
                .map_err(|_| FetchFault::Insecure { host })?;
        }
        Ok(())
    }
}

/// A token that was given, and what for.
pub(super) struct Given {
    pub(super) token: Token,
    /// The scopes, where they are not those that were asked for.
    pub(super) scopes: Option<Vec<String>>,
}

impl Given {
    fn of(response: &OAuthTokenResponse) -> Result<Self, SignInError> {
        let refused = SignInError::NoToken {
            code: OAuthCode::Other,
        };
        let value = serde_json::to_value(response).map_err(|_| refused.clone())?;
        let is_bearer = value["token_type"].as_str();
        let is_bearer = is_bearer.is_some_and(|it| it.eq_ignore_ascii_case("bearer"));
        let scopes = value["scope"].as_str();
        let scopes = scopes.map(|it| it.split_ascii_whitespace().map(str::to_owned).collect());
        let token = serde_json::from_value::<Token>(value).ok();
        let token = token.filter(|it| is_bearer && it.bearer().is_some());
        let token = token.ok_or(refused)?;
        Ok(Self { token, scopes })
    }
}

/// An address that a person may be sent to: encrypted, or on this machine for a server of this machine; nothing in it but
/// an address, as it is written by us.
pub(super) fn harmless(server: &Url, address: &str) -> Result<Url, SignInError> {
    let refused = |_| SignInError::HostileAddress;
    let url = Url::parse(address).map_err(|_| SignInError::HostileAddress)?;
    Guard::new(server).check(&url).map_err(refused)?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    let is_plain = url.as_str().bytes().all(|byte| byte.is_ascii_graphic());
    if has_user || !is_plain {
        return Err(SignInError::HostileAddress);
    }
    Ok(url)
}

/// The value of a parameter of an address.
pub(super) fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// A request with a form; none if the address cannot stand in one.
fn post(url: &str, form: &[(&str, &str)]) -> Option<Request<Vec<u8>>> {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    request.body(body.finish().into_bytes()).ok()
}
