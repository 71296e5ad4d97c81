//! Resolves `auth`, and the claims of clients.

use url::Url;

use super::{EntryVariables, Resolver};
use crate::config::{
    auth::{Auth, AuthClient, ClientClaims, Introspection, TokenAlgorithm},
    problems::ValueFault,
    raw::{RawAuth, RawClient, Text},
};

impl Resolver<'_> {
    /// Returns the settings of `auth`. Without an issuer and an audience there are none, which was recorded.
    pub(super) fn auth(&mut self, raw: &RawAuth) -> Option<Auth> {
        let variables = &mut EntryVariables::default();
        let issuer = self.text(variables, raw.issuer.as_ref()?);
        let audience = self.text(variables, raw.audience.as_ref()?);
        let issuer_url = self.url(raw.issuer.as_ref()?, &issuer)?;
        let resource = match &raw.resource {
            Some(text) => {
                let resource = self.text(variables, text);
                self.url(text, &resource)?
            }
            // An audience that is not an address needs one beside it: clients look for the metadata there.
            None => self.url(raw.audience.as_ref()?, &audience)?,
        };
        let client = raw.client_id.as_ref().map(|id| AuthClient {
            id: self.text(variables, id),
            secret: raw
                .client_secret
                .as_ref()
                .map(|it| self.text(variables, it)),
        });
        let introspection = raw.introspection.as_ref().and_then(|raw| {
            let client_secret = self.text(variables, raw.client_secret.as_ref()?);
            Some(Introspection {
                client_id: self.text(variables, raw.client_id.as_ref()?),
                client_secret,
            })
        });
        Some(Auth {
            issuer,
            issuer_url,
            audience,
            resource,
            algorithms: match &raw.algorithms {
                Some(named) => named.clone(),
                None => TokenAlgorithm::ALL.to_vec(),
            },
            scopes: self.texts(variables, raw.scopes.as_deref().unwrap_or_default()),
            client,
            introspection,
        })
    }

    /// Returns the claims of a client; `None` if it does not stand for users.
    pub(super) fn claims(&mut self, raw: &RawClient) -> Option<ClientClaims> {
        let variables = &mut EntryVariables::default();
        let claims = raw
            .claims
            .as_ref()?
            .iter()
            .map(|(name, value)| (name.clone(), self.text(variables, value)));
        Some(ClientClaims {
            claims: claims.collect(),
            scopes: self.texts(variables, raw.scopes.as_deref().unwrap_or_default()),
        })
    }

    /// Returns a text as an address, or records that it is not one.
    pub(super) fn url(&mut self, text: &Text, value: &str) -> Option<Url> {
        let url = Url::parse(value).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if url.is_none() {
            let fault = ValueFault::Url { url: value.into() };
            self.findings.add(text.place.clone(), fault);
        }
        url
    }
}
