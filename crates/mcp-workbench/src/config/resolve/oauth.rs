//! Resolves the OAuth settings of an entry.

use url::Url;

use super::{Resolver, texts::EntryVariables};
use crate::config::{
    literals::is_literal_secret,
    oauth::{CredentialsPer, OAuth, OAuthGrant, OAuthSettings, SigningAlgorithm, TokenExchange},
    problems::{KeyFault, PerUserFault, ValueFault},
    raw::{
        RawAuth, RawExchange, RawGrant, RawOAuth, RawOAuthDetails, RawPer, RawServer,
        RawSigningAlgorithm, Text,
    },
    secrets::Secrets,
};

impl Resolver<'_> {
    /// Returns the OAuth settings. By default the workbench signs in if the entry has no credentials of its own.
    pub(super) fn oauth(
        &mut self,
        variables: &mut EntryVariables,
        raw: &RawServer,
        url: &str,
    ) -> OAuth {
        match &raw.oauth {
            Some(RawOAuth::Used(false)) => OAuth::Off,
            Some(RawOAuth::Details(details)) if details.enabled == Some(false) => OAuth::Off,
            Some(RawOAuth::Details(details)) => {
                OAuth::On(Box::new(self.oauth_settings(variables, raw, details)))
            }
            // An entry with its own credentials would be sent others in their place, so sign-in must be turned on
            // explicitly.
            None if has_credentials(raw, url) => OAuth::Off,
            Some(RawOAuth::Used(true)) | None => OAuth::On(Box::default()),
        }
    }

    fn oauth_settings(
        &mut self,
        variables: &mut EntryVariables,
        raw: &RawServer,
        details: &RawOAuthDetails,
    ) -> OAuthSettings {
        let mut literals = Vec::new();
        let mut secret = |key: &'static str, text: &Option<Text>| {
            let text = text.as_ref()?;
            if is_literal_secret(key, &text.written, &Secrets::default()) {
                literals.push(key);
            }
            let text = self.text(variables, text);
            // Literal or not, it must not appear in messages.
            variables.secrets.add("secret", &text);
            Some(text)
        };
        let client_secret = secret("clientSecret", &details.client_secret);
        let private_key = secret("privateKey", &details.private_key);
        let mut text = |text: &Option<_>| text.as_ref().map(|it| self.text(variables, it));
        let settings = OAuthSettings {
            client_id: text(&details.client_id),
            client_secret,
            client_metadata_url: text(&details.client_metadata_url),
            account: text(&details.account),
            exchange: match &details.exchange {
                Some(RawExchange::Used(true)) => Some(TokenExchange::default()),
                Some(RawExchange::Details(details)) => Some(TokenExchange {
                    audience: text(&details.audience),
                }),
                Some(RawExchange::Used(false)) | None => None,
            },
            issuer: text(&details.issuer),
            scopes: self.texts(variables, details.scopes.as_deref().unwrap_or_default()),
            callback_port: details.callback_port.and_then(|it| it.try_into().ok()),
            grant: match details.grant {
                Some(RawGrant::ClientCredentials) => OAuthGrant::ClientCredentials,
                Some(RawGrant::AuthorizationCode) | None => OAuthGrant::AuthorizationCode,
            },
            per: match details.per {
                Some(RawPer::User) => CredentialsPer::User,
                Some(RawPer::Machine) | None => CredentialsPer::Machine,
            },
            private_key,
            signing_algorithm: signing_algorithm(details.signing_algorithm),
            literals,
        };
        self.check_oauth(raw, details, &settings);
        self.check_per_user(raw, &settings);
        settings
    }

    /// Records settings that contradict credentials of users.
    fn check_per_user(&mut self, raw: &RawServer, settings: &OAuthSettings) {
        let is_per_user = settings.per == CredentialsPer::User;
        let has_exchange = settings.exchange.is_some();
        let issuer = self.auth.and_then(|auth| auth.issuer.as_ref());
        let issuer = issuer.map(|it| self.expanded(&mut EntryVariables::default(), it).text);
        let needs_assertion =
            has_exchange && settings.issuer.is_some() && settings.issuer != issuer;
        let faults = [
            (
                PerUserFault::ClientCredentials,
                is_per_user && settings.grant == OAuthGrant::ClientCredentials,
            ),
            (PerUserFault::Header, is_per_user && has_header(raw)),
            (
                PerUserFault::NoSeal,
                is_per_user && !has_exchange && self.auth.is_some() && self.seal.is_none(),
            ),
            (
                PerUserFault::ExchangeWithoutUser,
                has_exchange && !is_per_user,
            ),
            (
                PerUserFault::ExchangeWithoutClient,
                has_exchange && is_per_user && !self.auth.is_some_and(RawAuth::has_client),
            ),
            (
                PerUserFault::AssertionWithoutClient,
                needs_assertion && settings.client_id.is_none(),
            ),
        ];
        for (fault, _) in faults.into_iter().filter(|(_, is_there)| *is_there) {
            let fault = ValueFault::from(fault);
            self.findings.add(raw.presence.place.clone(), fault);
        }
    }

    /// Records settings that contradict each other.
    fn check_oauth(
        &mut self,
        raw: &RawServer,
        details: &RawOAuthDetails,
        settings: &OAuthSettings,
    ) {
        let needs_id = settings.client_secret.is_some()
            || settings.private_key.is_some()
            || settings.grant == OAuthGrant::ClientCredentials;
        let place = &raw.presence.place;
        if needs_id && settings.client_id.is_none() {
            let fault = KeyFault::Missing { key: "clientId" };
            self.findings.add(place.clone(), fault);
        }
        let has_proof = settings.client_secret.is_some() || settings.private_key.is_some();
        if settings.grant == OAuthGrant::ClientCredentials && !has_proof {
            let fault = KeyFault::Missing {
                key: "clientSecret",
            };
            self.findings.add(place.clone(), fault);
        }
        // A value with a variable is not checked here, because it may fail only its own server.
        if let Some(text) = &details.client_metadata_url
            && let Some(url) = &settings.client_metadata_url
            && !text.written.contains("${")
            && !is_document(url)
        {
            let fault = ValueFault::Url { url: url.clone() };
            self.findings.add(text.place.clone(), fault);
        }
    }
}

/// Returns whether the entry has its own credentials.
fn has_credentials(raw: &RawServer, url: &str) -> bool {
    let has_user = |url: Url| !url.username().is_empty() || url.password().is_some();
    has_header(raw) || Url::parse(url).is_ok_and(has_user)
}

/// Returns whether the entry has an `Authorization` header.
fn has_header(raw: &RawServer) -> bool {
    let mut headers = raw.headers.iter().flatten();
    headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
}

/// Returns whether a URL can be a client id: https, and with a path.
fn is_document(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
}

fn signing_algorithm(raw: Option<RawSigningAlgorithm>) -> SigningAlgorithm {
    match raw {
        Some(RawSigningAlgorithm::Rs256) => SigningAlgorithm::Rs256,
        Some(RawSigningAlgorithm::Rs384) => SigningAlgorithm::Rs384,
        Some(RawSigningAlgorithm::Rs512) => SigningAlgorithm::Rs512,
        Some(RawSigningAlgorithm::Es256) | None => SigningAlgorithm::Es256,
        Some(RawSigningAlgorithm::Es384) => SigningAlgorithm::Es384,
    }
}
