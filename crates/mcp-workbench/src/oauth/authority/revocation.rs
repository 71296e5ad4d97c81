//! Having an authorization server forget a token.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::header::{AUTHORIZATION, HeaderValue};
use serde_json::Value;
use url::form_urlencoded;

use super::{Authority, post};
use crate::oauth::record::Record;

impl Authority {
    /// Has it forget a token, where it can.
    pub(in crate::oauth) async fn revoke(&self, record: &Record) {
        let endpoint = self.metadata.additional_fields.get("revocation_endpoint");
        let Some((endpoint, token)) = endpoint.and_then(Value::as_str).zip(record.token.as_ref())
        else {
            return;
        };
        let client = self.client_of(record);
        let (kind, value) = match &token.refresh {
            Some(refresh) => ("refresh_token", refresh),
            None => ("access_token", &token.access),
        };
        let mut form = vec![
            ("token", value.as_str()),
            ("token_type_hint", kind),
            ("client_id", &client.id),
        ];
        let secret = client.secret.as_ref();
        let posted = secret.filter(|_| self.wants_posted_secrets());
        form.extend(posted.map(|secret| ("client_secret", secret.as_str())));
        if let Some(mut request) = post(endpoint, &form) {
            if let Some(basic) = secret.filter(|_| posted.is_none()) {
                let basic = basic_credentials(&client.id, basic);
                request.headers_mut().extend([(AUTHORIZATION, basic)]);
            }
            // It is forgotten here in any case.
            let _ = self.fetcher.fetch(request).await;
        }
    }

    /// Whether it takes the secret of a client only in a form; else in a header, as for tokens.
    fn wants_posted_secrets(&self) -> bool {
        let field = "token_endpoint_auth_methods_supported";
        let methods = self.metadata.additional_fields.get(field);
        let has = |method: &str| {
            let methods = methods.and_then(Value::as_array).into_iter().flatten();
            methods.into_iter().any(|it| it == method)
        };
        has("client_secret_post") && !has("client_secret_basic")
    }
}

/// The id and the secret of a client as a header has them.
fn basic_credentials(id: &str, secret: &str) -> HeaderValue {
    let written = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", written(id), written(secret)));
    let value = HeaderValue::try_from(format!("Basic {pair}"));
    let mut value = value.expect("Base64 can stand in a header");
    value.set_sensitive(true);
    value
}
