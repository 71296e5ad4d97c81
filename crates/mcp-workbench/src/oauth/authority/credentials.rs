//! Tokens for the credentials of an entry, without a person: by a secret, or by a signature.

use rmcp::transport::auth::{ClientCredentialsConfig, OAuthTokenResponse};
use url::Url;

use super::{Authority, Given, OFFLINE, parameter, post};
use crate::oauth::{
    assertion::Signer,
    error::{OAuthCode, SignInError},
    record::RegisteredClient,
};

/// How a signature is announced.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

impl Authority {
    /// Gets a token with the credentials of the entry alone.
    pub(in crate::oauth) async fn client_credentials(
        &mut self,
        needed: &[String],
    ) -> Result<Given, SignInError> {
        let mut scopes = self.scopes(None, false).await;
        scopes.retain(|scope| scope != OFFLINE);
        for scope in needed {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let resource = self.resource().await;
        let settings = self.account.settings().clone();
        match (
            settings.client_id,
            settings.client_secret,
            settings.private_key,
        ) {
            (Some(id), _, Some(key)) => {
                let signer = Signer {
                    key: &key,
                    algorithm: settings.signing_algorithm,
                };
                self.exchange_assertion(&signer, &id, &scopes, &resource)
                    .await
            }
            (Some(client_id), Some(client_secret), None) => {
                self.exchange_secret(ClientCredentialsConfig::ClientSecret {
                    client_id,
                    client_secret,
                    scopes,
                    resource: Some(resource),
                })
                .await
            }
            _ => Err(SignInError::UnusableKey),
        }
    }

    async fn exchange_secret(
        &mut self,
        config: ClientCredentialsConfig,
    ) -> Result<Given, SignInError> {
        let supported = self.manager.validate_client_credentials_metadata(&config);
        supported.map_err(|_| SignInError::NoToken {
            code: OAuthCode::UnauthorizedClient,
        })?;
        let configured = self.manager.configure_client_credentials(&config);
        configured.map_err(|_| SignInError::Metadata)?;
        let exchanged = self.manager.exchange_client_credentials(&config).await;
        let response = exchanged.map_err(|error| self.fetcher.explain(&error))?;
        Given::of(&response)
    }

    /// Asks for a token with a signature. The client is named by what is signed alone, as RFC 7523 has it.
    async fn exchange_assertion(
        &self,
        signer: &Signer<'_>,
        client: &str,
        scopes: &[String],
        resource: &str,
    ) -> Result<Given, SignInError> {
        let audience = self.issuer().unwrap_or(&self.metadata.token_endpoint);
        let assertion = signer.assertion(client, audience)?;
        let scopes = scopes.join(" ");
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_assertion_type", ASSERTION_TYPE),
            ("client_assertion", &assertion),
            ("resource", resource),
        ];
        if !scopes.is_empty() {
            form.push(("scope", &scopes));
        }
        let request = post(&self.metadata.token_endpoint, &form).ok_or(SignInError::Metadata)?;
        let response = self.fetcher.fetch(request).await?;
        let refused = |code| SignInError::NoToken { code };
        if let Some(code) = self.fetcher.take_code() {
            return Err(refused(code));
        }
        let response = serde_json::from_slice::<OAuthTokenResponse>(response.body());
        Given::of(&response.map_err(|_| refused(OAuthCode::Other))?)
    }

    /// What tokens are asked for: the server as it names itself.
    async fn resource(&mut self) -> String {
        let own = self.account.url().to_string();
        let nobody = RegisteredClient {
            id: "resource".into(),
            secret: None,
            redirect_uri: None,
        };
        // Only an address to sign in at tells what was found out.
        if self.configure(&nobody, &own).is_err() {
            return own;
        }
        let address = self.manager.get_authorization_url(&[]).await;
        let address = address.ok().and_then(|it| Url::parse(&it).ok());
        let resource = address.and_then(|it| parameter(&it, "resource"));
        resource.unwrap_or(own)
    }
}
