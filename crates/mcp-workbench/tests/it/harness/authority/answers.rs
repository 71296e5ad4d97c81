//! The answers of an authority: metadata, registration, the page of the user, tokens, revocation.

use serde_json::{Value, json};
use url::Url;

use super::{
    NOISE, Shared,
    grants::{Client, Grant},
    knobs::{Issuer, Knobs, User},
};
use crate::harness::{
    TIMEOUT, poll,
    remote_server::{Out, Seen, Then},
};

/// Answers a request at the origin that it came to.
pub(super) fn answer(shared: &Shared, seen: &Seen, out: &mut Out) -> Then {
    let path = seen.route();
    let is_free = || (!shared.knobs().held.contains(&path)).then_some(());
    let _held_too_long = poll(TIMEOUT, is_free);
    let knobs = shared.knobs();
    if let Some((_, to)) = knobs.redirects.iter().find(|(from, _)| *from == path) {
        return out.reply(&format!("307 Temporary Redirect\nLocation: {to}"), "");
    }
    let origin = format!("http://{}", seen.header("host").unwrap_or_default());
    match (seen.verb.as_str(), path) {
        ("GET", path) if knobs.metadata_paths.iter().any(|it| it == path) => {
            metadata(&knobs, &origin, out)
        }
        ("POST", "/register") => register(shared, &knobs, seen, out),
        ("GET", "/authorize") => authorize(shared, &knobs, &origin, seen, out),
        ("POST", "/token") => token(shared, &knobs, seen, out),
        ("POST", "/revoke") => revoke(shared, seen, out),
        _ => out.reply("404 Not Found", NOISE),
    }
}

/// Puts other members in place of right ones.
pub(super) fn patched(mut right: Value, patches: &[(&'static str, Value)]) -> String {
    let members = right.as_object_mut().expect("metadata are an object");
    for (name, value) in patches {
        members.insert((*name).to_owned(), value.clone());
    }
    members.retain(|_, value| !value.is_null());
    right.to_string()
}

fn metadata(knobs: &Knobs, origin: &str, out: &mut Out) -> Then {
    if let Some((status, body)) = &knobs.metadata_answer {
        return out.reply(&format!("{status}\nContent-Type: application/json"), body);
    }
    let right = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "revocation_endpoint": format!("{origin}/revoke"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported":
            ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256"],
        "authorization_response_iss_parameter_supported": true,
    });
    out.json(&patched(right, &knobs.metadata))
}

fn register(shared: &Shared, knobs: &Knobs, seen: &Seen, out: &mut Out) -> Then {
    let asked = seen.message();
    let redirects = asked["redirect_uris"].as_array().cloned();
    let redirects: Option<Vec<String>> = redirects.and_then(|redirects| {
        let redirects = redirects.iter().map(|it| it.as_str().map(str::to_owned));
        redirects.collect()
    });
    let Some(redirects) = redirects.filter(|redirects| !redirects.is_empty()) else {
        return refuse(out, "invalid_redirect_uri");
    };
    let mut grants = shared.grants();
    let id = format!("registered-{}", grants.clients.len());
    let has_secret = knobs.registers_as != "none";
    let secret = has_secret.then(|| grants.secret("client"));
    let client = Client {
        secret: secret.clone(),
        method: knobs.registers_as,
        redirects: redirects.clone(),
    };
    grants.clients.insert(id.clone(), client);
    let mut answer = json!({
        "client_id": id,
        "client_name": asked["client_name"],
        "redirect_uris": redirects,
        "token_endpoint_auth_method": knobs.registers_as,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    });
    if let Some(secret) = secret {
        answer["client_secret"] = secret.into();
        answer["client_secret_expires_at"] = 0.into();
    }
    out.reply(
        "201 Created\nContent-Type: application/json",
        &answer.to_string(),
    )
}

/// The page of the user. What is wrong with the client or its redirect is never sent to that redirect.
fn authorize(shared: &Shared, knobs: &Knobs, origin: &str, seen: &Seen, out: &mut Out) -> Then {
    let parameter = |name: &str| seen.parameter(name).unwrap_or_default();
    let (client, redirect) = (parameter("client_id"), parameter("redirect_uri"));
    let is_known = match shared.grants().clients.get(&client) {
        Some(known) => known.redirects.is_empty() || known.redirects.contains(&redirect),
        None => client.starts_with("https://"),
    };
    let target = Url::parse(&redirect).ok().filter(is_this_machine);
    let Some(mut target) = target.filter(|_| is_known) else {
        return out.reply("400 Bad Request\nContent-Type: text/plain", NOISE);
    };
    if knobs.user == User::Waits {
        return out.reply("200 OK\nContent-Type: text/html", "<p>Do you agree?</p>");
    }
    let is_right = parameter("response_type") == "code"
        && parameter("code_challenge_method") == "S256"
        && parameter("code_challenge").len() == 43
        && !parameter("resource").is_empty()
        && parameter("state").len() >= 16;
    let state = knobs.redirect_state.clone();
    let (name, value) = if !is_right {
        ("error", "invalid_request".to_owned())
    } else if knobs.user == User::Denies {
        ("error", "access_denied".to_owned())
    } else {
        let mut grants = shared.grants();
        let code = grants.secret("code");
        let grant = Grant {
            client,
            scope: parameter("scope"),
            resource: parameter("resource"),
            challenge: parameter("code_challenge"),
            redirect,
        };
        grants.codes.insert(code.clone(), grant);
        ("code", code)
    };
    let mut query = target.query_pairs_mut();
    query.append_pair(name, &value);
    query.append_pair("state", &state.unwrap_or_else(|| parameter("state")));
    if name == "error" {
        query.append_pair("error_description", NOISE);
    }
    match &knobs.redirect_issuer {
        Issuer::Right => drop(query.append_pair("iss", origin)),
        Issuer::Other(other) => drop(query.append_pair("iss", other)),
        Issuer::Unsaid => {}
    }
    drop(query);
    out.reply(&format!("302 Found\nLocation: {target}"), "")
}

fn is_this_machine(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
}

fn token(shared: &Shared, knobs: &Knobs, seen: &Seen, out: &mut Out) -> Then {
    if let Some((status, body)) = &knobs.token_answer {
        return out.reply(&format!("{status}\nContent-Type: application/json"), body);
    }
    let mut grants = shared.grants();
    let kind = seen.parameter("grant_type").unwrap_or_default();
    let granted = grants
        .client_of(seen)
        .and_then(|client| match kind.as_str() {
            "authorization_code" => grants.redeem(seen, &client),
            "refresh_token" => grants.renew(seen, &client, knobs),
            "client_credentials" => Ok(Grant {
                client,
                scope: seen.parameter("scope").unwrap_or_default(),
                resource: seen.parameter("resource").ok_or("invalid_target")?,
                challenge: String::new(),
                redirect: String::new(),
            }),
            _ => Err("unsupported_grant_type"),
        });
    let mut grant = match granted {
        Ok(grant) => grant,
        Err("invalid_client") => return out.reply(UNKNOWN_CLIENT, &error("invalid_client")),
        Err(word) => return refuse(out, word),
    };
    if let Some(scope) = &knobs.granted {
        scope.clone_into(&mut grant.scope);
    }
    let access = grants.secret("access");
    let mut answer = json!({"access_token": access, "token_type": "Bearer"});
    if !grant.scope.is_empty() {
        answer["scope"] = grant.scope.clone().into();
    }
    if !knobs.expires_in.is_null() {
        answer["expires_in"] = knobs.expires_in.clone();
    }
    if knobs.refreshes && kind != "client_credentials" {
        let refresh = grants.secret("refresh");
        answer["refresh_token"] = refresh.clone().into();
        grants.refresh.insert(refresh, grant.clone());
    }
    grants.access.insert(access, grant);
    out.reply(
        "200 OK\nContent-Type: application/json\nCache-Control: no-store",
        &answer.to_string(),
    )
}

fn revoke(shared: &Shared, seen: &Seen, out: &mut Out) -> Then {
    let mut grants = shared.grants();
    if grants.client_of(seen).is_err() {
        return out.reply(UNKNOWN_CLIENT, &error("invalid_client"));
    }
    let token = seen.parameter("token").unwrap_or_default();
    grants.access.remove(&token);
    grants.refresh.remove(&token);
    out.reply("200 OK", "")
}

const UNKNOWN_CLIENT: &str = "401 Unauthorized\nContent-Type: application/json";

fn refuse(out: &mut Out, word: &str) -> Then {
    out.reply(
        "400 Bad Request\nContent-Type: application/json",
        &error(word),
    )
}

fn error(word: &str) -> String {
    json!({"error": word, "error_description": NOISE}).to_string()
}
