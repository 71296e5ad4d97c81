//! Requests to the endpoints of an authorization server that issue and revoke tokens, and the authentication of the
//! client in them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{
    Response,
    header::{AUTHORIZATION, HeaderValue},
};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{Authority, OFFLINE, unique};
use crate::{
    config::AuthClient,
    oauth::{
        assertion::Signer,
        error::{OAuthCode, SignInError},
        fetch::{FORM, post, refusal},
        record::{Record, RegisteredClient, Token},
    },
};

/// The type of a signed assertion (RFC 7523).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The grant and the type of token of an exchange (RFC 8693).
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// The type of an assertion about a user for another authorization server (draft-ietf-oauth-identity-assertion-authz-grant),
/// and the grant by which that server takes it (RFC 7523).
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A token that was issued.
pub(in crate::oauth) struct IssuedToken {
    pub(in crate::oauth) token: Token,
    /// The scopes, if the response names them. Else they are the requested ones.
    pub(in crate::oauth) scopes: Option<Vec<String>>,
}

/// The result that an exchange is to have.
struct Wanted<'a> {
    /// The type of token.
    kind: &'static str,
    audience: Option<&'a str>,
    /// The scopes beside those of the entry.
    needed: &'a [String],
}

/// The proof of who sends a request.
enum Proof<'a> {
    /// The id of a client, and its secret if it has one.
    Client(&'a RegisteredClient, SecretPlace),
    /// A signed assertion, which also names the client (RFC 7523, section 3).
    Assertion(&'a str),
}

/// The place of a client's secret in a request, unless the authorization server supports only the other one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretPlace {
    Form,
    Header,
}

impl Authority {
    /// Exchanges an authorization code for a token. The verifier and the redirect address are those that it is bound to.
    pub(in crate::oauth) async fn exchange(
        &self,
        client: &RegisteredClient,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<IssuedToken, SignInError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", redirect_uri),
        ];
        let proof = Proof::Client(client, SecretPlace::Header);
        self.request_token(&form, &proof).await
    }

    /// Gets a new token with a refresh token. Only called with a record of this authority. No scopes are sent, so that
    /// the new token has those of the old one.
    pub(in crate::oauth) async fn refresh(
        &self,
        record: &Record,
    ) -> Result<IssuedToken, SignInError> {
        let token = record.token.as_ref().and_then(|it| it.refresh.as_deref());
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.ok_or(SignInError::Over)?),
        ];
        let client = self.client_of(record);
        let proof = Proof::Client(&client, SecretPlace::Header);
        self.request_token(&form, &proof).await
    }

    /// Gets a token with the credentials of the entry: its secret, or a signature with its private key.
    pub(in crate::oauth) async fn client_credentials(
        &self,
        needed: &[String],
    ) -> Result<IssuedToken, SignInError> {
        let mut scopes = self.scopes(None, false);
        // A client with its own credentials asks for a new token instead of refreshing, so it needs no offline access.
        scopes.retain(|scope| scope != OFFLINE);
        scopes.extend_from_slice(needed);
        let scopes = unique(scopes).join(" ");
        let form = [("grant_type", "client_credentials"), ("scope", &*scopes)];
        let form = &form[..if scopes.is_empty() { 1 } else { 2 }];
        self.request_as_entry(form).await
    }

    /// Gets a token with an assertion about a user that another authorization server has issued.
    pub(in crate::oauth) async fn by_assertion(
        &self,
        assertion: &str,
    ) -> Result<IssuedToken, SignInError> {
        let form = [("grant_type", JWT_BEARER), ("assertion", assertion)];
        self.request_as_entry(&form).await
    }

    /// Requests a token as the client of the entry, which proves itself by its secret or a signature with its private key.
    async fn request_as_entry(&self, form: &[(&str, &str)]) -> Result<IssuedToken, SignInError> {
        let settings = self.account.settings();
        let id = settings.client_id.as_deref().unwrap_or_default();
        if let Some(key) = &settings.private_key {
            let signer = Signer {
                key,
                algorithm: settings.signing_algorithm,
            };
            // The issuer is preferred: an assertion for an endpoint could be passed on to another server that names the same one.
            let audience = self.issuer().unwrap_or(self.token_endpoint());
            let assertion = signer.assertion(id, audience)?;
            return self
                .request_token(form, &Proof::Assertion(&assertion))
                .await;
        }
        // If the server supports neither method, sending the secret would only expose it.
        let methods = ["client_secret_post", "client_secret_basic"];
        if methods
            .iter()
            .all(|it| self.authenticates_by(it) == Some(false))
        {
            let code = OAuthCode::UnauthorizedClient;
            return Err(SignInError::NoToken { code });
        }
        let client = RegisteredClient {
            id: id.to_owned(),
            secret: settings.client_secret.clone(),
            redirect_uri: None,
        };
        let proof = Proof::Client(&client, SecretPlace::Form);
        self.request_token(form, &proof).await
    }

    /// Exchanges the token of a user for one of the server, as the client of the workbench (RFC 8693).
    pub(in crate::oauth) async fn exchange_token(
        &self,
        client: &AuthClient,
        subject: &str,
        needed: &[String],
    ) -> Result<IssuedToken, SignInError> {
        let exchange = self.account.settings().exchange.as_ref();
        let wanted = Wanted {
            kind: ACCESS_TOKEN,
            audience: exchange.and_then(|it| it.audience.as_deref()),
            needed,
        };
        let body = self.exchange_for(client, subject, wanted).await?;
        let code = OAuthCode::Other;
        IssuedToken::parse(&body).ok_or(SignInError::NoToken { code })
    }

    /// Exchanges the token of a user for an assertion about the user that `audience` takes, which is the authorization server of
    /// the server.
    pub(in crate::oauth) async fn exchange_for_assertion(
        &self,
        client: &AuthClient,
        subject: &str,
        audience: &str,
        needed: &[String],
    ) -> Result<String, SignInError> {
        let kinds = "identity_chaining_requested_token_types_supported";
        // A server that does not list the types may still issue assertions.
        if self.metadata().lists(kinds, ID_JAG) == Some(false) {
            return Err(SignInError::NoAssertions);
        }
        let wanted = Wanted {
            kind: ID_JAG,
            audience: Some(audience),
            needed,
        };
        let body = self.exchange_for(client, subject, wanted).await?;
        let body = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        // Anything else, such as an access token of the issuer, must not be sent to another authorization server.
        let is_assertion = body["issued_token_type"] == ID_JAG;
        let assertion = body["access_token"].as_str().filter(|_| is_assertion);
        assertion
            .map(str::to_owned)
            .ok_or(SignInError::NoAssertions)
    }

    /// Exchanges the token of a user. Returns the response, which is not the token that was sent.
    async fn exchange_for(
        &self,
        client: &AuthClient,
        subject: &str,
        wanted: Wanted<'_>,
    ) -> Result<Vec<u8>, SignInError> {
        let scopes = &self.account.settings().scopes;
        let scopes = unique([scopes.as_slice(), wanted.needed].concat()).join(" ");
        let mut form = vec![
            ("grant_type", EXCHANGE),
            ("subject_token", subject),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", wanted.kind),
        ];
        form.extend(wanted.audience.map(|audience| ("audience", audience)));
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let client = RegisteredClient {
            id: client.id.clone(),
            secret: client.secret.clone(),
            redirect_uri: None,
        };
        let proof = Proof::Client(&client, SecretPlace::Header);
        let body = self.request(&form, &proof).await?;
        // A token that comes back unchanged would be the user's own, which nobody else may get.
        let issued = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        if issued["access_token"] == subject {
            let code = OAuthCode::InvalidTarget;
            return Err(SignInError::NoToken { code });
        }
        Ok(body)
    }

    /// Revokes the token of a record, if the authority can. A failure is ignored, since the record is removed in any
    /// case.
    pub(in crate::oauth) async fn revoke(&self, record: &Record) {
        let endpoint = self.metadata().text("revocation_endpoint");
        let Some((endpoint, token)) = endpoint.zip(record.token.as_ref()) else {
            return;
        };
        // Revoking the refresh token also ends the access tokens that came from it (RFC 7009).
        let (kind, value) = match &token.refresh {
            Some(refresh) => ("refresh_token", refresh),
            None => ("access_token", &token.access),
        };
        let form = [("token", value.as_str()), ("token_type_hint", kind)];
        let client = self.client_of(record);
        let proof = Proof::Client(&client, SecretPlace::Header);
        let _ = self.send(endpoint, &form, &proof).await;
    }

    /// Returns the client of a record, with the secret of the entry if it is the entry's client.
    fn client_of(&self, record: &Record) -> RegisteredClient {
        let settings = self.account.settings();
        let mut client = record.client.clone();
        if settings.client_id.as_ref() == Some(&client.id) {
            client.secret.clone_from(&settings.client_secret);
        }
        client
    }

    async fn request_token(
        &self,
        form: &[(&str, &str)],
        proof: &Proof<'_>,
    ) -> Result<IssuedToken, SignInError> {
        let body = self.request(form, proof).await?;
        let code = OAuthCode::Other;
        IssuedToken::parse(&body).ok_or(SignInError::NoToken { code })
    }

    /// Sends a form to the token endpoint. Returns the body of its response.
    async fn request(
        &self,
        form: &[(&str, &str)],
        proof: &Proof<'_>,
    ) -> Result<Vec<u8>, SignInError> {
        let mut form = form.to_vec();
        // The token is bound to this server (RFC 8707): another one that gets hold of it cannot use it.
        form.push(("resource", &self.found.resource));
        let response = self.send(self.token_endpoint(), &form, proof).await?;
        match refusal(&response) {
            Some(code) => Err(SignInError::NoToken { code }),
            None => Ok(response.into_body()),
        }
    }

    async fn send(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
        proof: &Proof<'_>,
    ) -> Result<Response<Vec<u8>>, SignInError> {
        let mut form = form.to_vec();
        let mut header = None;
        match proof {
            Proof::Client(client, place) => match client.secret.as_deref() {
                Some(secret) if self.secret_place(*place) == SecretPlace::Header => {
                    header = Some((AUTHORIZATION, basic_credentials(&client.id, secret)));
                }
                secret => {
                    form.push(("client_id", &client.id));
                    form.extend(secret.map(|secret| ("client_secret", secret)));
                }
            },
            Proof::Assertion(assertion) => form.extend([
                ("client_assertion_type", ASSERTION_TYPE),
                ("client_assertion", assertion),
            ]),
        }
        let url = Url::parse(endpoint).map_err(|_| SignInError::Metadata)?;
        let mut request = post(FORM, encode(&form));
        request.headers_mut().extend(header);
        Ok(self.fetcher.fetch(&url, request).await?)
    }

    fn secret_place(&self, preferred: SecretPlace) -> SecretPlace {
        let has = |method| self.authenticates_by(method) == Some(true);
        match (has("client_secret_post"), has("client_secret_basic")) {
            (true, false) => SecretPlace::Form,
            (false, true) => SecretPlace::Header,
            _ => preferred,
        }
    }

    /// Returns true if clients may authenticate by this method, and `None` if the authority does not say.
    fn authenticates_by(&self, method: &str) -> Option<bool> {
        let methods = "token_endpoint_auth_methods_supported";
        self.metadata().lists(methods, method)
    }

    fn token_endpoint(&self) -> &str {
        self.metadata().text("token_endpoint").unwrap_or_default()
    }
}

impl IssuedToken {
    /// Parses a token response. Returns `None` if it has no bearer token.
    fn parse(body: &[u8]) -> Option<Self> {
        let body = serde_json::from_slice::<Value>(body).ok()?;
        let text = |field: &str| body[field].as_str();
        let is_bearer = text("token_type")?.eq_ignore_ascii_case("bearer");
        let life = &body["expires_in"];
        // Some servers send the number as a text.
        let life = life.as_u64().or_else(|| life.as_str()?.parse().ok());
        let token = Token {
            access: text("access_token")?.to_owned(),
            refresh: text("refresh_token").map(str::to_owned),
            expires_in: life,
            // Callers set it when they store the token.
            received_at: 0,
        };
        // A token of another type, such as DPoP, needs a proof that we cannot give.
        token.bearer().filter(|_| is_bearer)?;
        let scopes =
            text("scope").map(|it| it.split_ascii_whitespace().map(str::to_owned).collect());
        Some(Self { token, scopes })
    }
}

fn encode(form: &[(&str, &str)]) -> String {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form).finish()
}

/// Returns the id and the secret of a client as an `Authorization` header.
fn basic_credentials(id: &str, secret: &str) -> HeaderValue {
    // Both are encoded as in a form (RFC 6749, 2.3.1), so that a colon in the id does not end it.
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", encode(id), encode(secret)));
    let mut value =
        HeaderValue::try_from(format!("Basic {pair}")).expect("Base64 is allowed in a header");
    value.set_sensitive(true);
    value
}
