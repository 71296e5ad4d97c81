//! Resolves the OAuth settings of an entry.

use url::Url;

use super::{Resolver, texts::EntryVariables};
use crate::config::{
    literals::is_literal_secret,
    oauth::{OAuth, OAuthGrant, OAuthSettings, SigningAlgorithm},
    problems::{KeyFault, ValueFault},
    raw::{RawGrant, RawOAuth, RawOAuthDetails, RawServer, RawSigningAlgorithm, Text},
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
            issuer: text(&details.issuer),
            scopes: self.texts(variables, details.scopes.as_deref().unwrap_or_default()),
            callback_port: details.callback_port.and_then(|it| it.try_into().ok()),
            grant: match details.grant {
                Some(RawGrant::ClientCredentials) => OAuthGrant::ClientCredentials,
                Some(RawGrant::AuthorizationCode) | None => OAuthGrant::AuthorizationCode,
            },
            private_key,
            signing_algorithm: signing_algorithm(details.signing_algorithm),
            literals,
        };
        self.check_oauth(raw, details, &settings);
        settings
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
    let headers = raw.headers.iter().flatten();
    let mut names = headers.map(|(name, _)| name);
    let has_user = |url: Url| !url.username().is_empty() || url.password().is_some();
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
        || Url::parse(url).is_ok_and(has_user)
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
