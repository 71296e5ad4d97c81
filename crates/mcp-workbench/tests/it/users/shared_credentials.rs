//! Credentials of users on replicas with a store: signed in on one, used on all, refreshed once.

use std::{path::Path, thread};

use pretty_assertions::assert_eq;
use serde_json::json;
use tempfile::TempDir;

use super::{
    browser::{Browser, PUBLIC},
    credentials::{Client, ERAS, Era, last_access, per_user, serve, sign_in, tokens_of_calls},
    issuer::Issuer,
};
use crate::{
    harness::{Served, TIMEOUT, authority::Protected, poll, use_arguments},
    oauth::served::protected,
    replicas::team::{Part, redis, store_url},
};

const AWAY: &str = "the store cannot be reached";

/// Two replicas that share nothing but the store.
fn replicas(server: &Protected, issuer: &Issuer, redis: &Part) -> [(Served, TempDir); 2] {
    [(), ()].map(|()| {
        let state = TempDir::new().unwrap();
        let setup = per_user(server).top("store", json!(store_url(redis)));
        (serve(setup, issuer, state.path()), state)
    })
}

fn has_records(state: &Path) -> bool {
    state.join("mcp-workbench/signin").exists()
}

#[test]
fn a_user_signs_in_on_one_replica_and_calls_on_all() {
    for era in ERAS {
        let Some(redis) = redis() else { return };
        let (authority, server) = protected();
        let issuer = Issuer::start();
        let [(one, first), (other, second)] = replicas(&server, &issuer, &redis);
        let mut tokens = Vec::new();
        // The browser of Ada comes to the other replica than her call.
        for (user, browser) in [("ada", &other), ("bob", &one)] {
            let client = Client::new(&one, &issuer, user, era);
            let opened = client.open(sign_in(browser, user));
            assert_eq!(opened.tool_names(), ["t", "u"], "{era:?} {user}");
            tokens.push(last_access(&authority));
        }
        let mut expected = Vec::new();
        for replica in [&one, &other] {
            for (user, token) in ["ada", "bob"].iter().zip(&tokens) {
                let client = Client::new(replica, &issuer, user, era);
                client.open(|address| panic!("offered {address}"));
                assert!(!client.use_tool().failed(), "{era:?} {user}");
                expected.push(token.clone());
            }
        }
        assert_eq!(tokens_of_calls(&server), expected, "{era:?}");
        // Somebody else has nothing of theirs.
        let mut is_offered = false;
        let eve = Client::new(&other, &issuer, "eve", era);
        eve.open(|address| {
            is_offered = true;
            sign_in(&one, "eve")(address);
        });
        assert!(is_offered, "{era:?}");
        assert!(!tokens.contains(&last_access(&authority)), "{era:?}");
        assert_eq!(authority.asked("/register").len(), 1, "one client for all");
        assert!(!has_records(first.path()) && !has_records(second.path()));
    }
}

#[test]
fn a_redirect_counts_once_on_all_replicas() {
    let Some(redis) = redis() else { return };
    let (_authority, server) = protected();
    let issuer = Issuer::start();
    let [(one, _first), (other, _second)] = replicas(&server, &issuer, &redis);
    let mut ada = Browser::new(&one, "ada");
    let redirect = ada.come_back(&format!("{PUBLIC}/oauth/sign-in/dev/fs"));
    ada.move_to(&other);
    assert!(ada.get(&redirect).body.contains("You are signed in"));
    ada.move_to(&one);
    assert_eq!(ada.get(&redirect).head.status, 400, "used before");
}

#[test]
fn a_token_is_refreshed_once_for_all_replicas() {
    let Some(redis) = redis() else { return };
    let (authority, server) = protected();
    let issuer = Issuer::start();
    let mut replicas = replicas(&server, &issuer, &redis);
    for (round, user) in (1..).zip(["ada", "bob", "eve"]) {
        for (replica, _) in &replicas {
            let client = Client::new(replica, &issuer, user, Era::Modern);
            client.open(sign_in(replica, user));
            assert!(!client.use_tool().failed());
        }
        let token = issuer.token(&json!({"sub": user, "scope": "tools"}));
        let refused = last_access(&authority);
        authority.end_access();
        authority.set(|knobs| knobs.held = vec!["/token"]);
        thread::scope(|scope| {
            for (replica, _) in &mut replicas {
                let token = token.clone();
                scope.spawn(move || {
                    let client = Client::with(replica, token, Era::Modern, "{}");
                    let result = client.use_tool();
                    assert!(!result.failed(), "{}", result.raw);
                });
            }
            // Both replicas need a new token before one of them gets it.
            let both = || {
                let tokens = tokens_of_calls(&server);
                let count = tokens.iter().filter(|it| **it == refused).count();
                let is_asked = authority.token_requests("refresh_token").len() == round;
                (count >= 2 * 2 && is_asked).then_some(())
            };
            poll(TIMEOUT, both).expect("two refused calls");
            authority.set(|knobs| knobs.held.clear());
        });
        let refreshes = authority.token_requests("refresh_token");
        assert_eq!(refreshes.len(), round, "one for each user");
        let renewed = last_access(&authority);
        let tokens = tokens_of_calls(&server);
        let accepted = tokens.iter().filter(|it| **it == renewed);
        assert_eq!(accepted.count(), 2, "both replicas use it");
    }
}

#[test]
fn without_the_store_valid_tokens_are_used_and_the_rest_waits_for_it() {
    let Some(mut redis) = redis() else { return };
    let (authority, server) = protected();
    let issuer = Issuer::start();
    let [(one, _first), (other, _second)] = replicas(&server, &issuer, &redis);
    let ada = [&one, &other].map(|it| Client::new(it, &issuer, "ada", Era::Modern));
    ada[0].open(sign_in(&one, "ada"));
    ada[1].open(|address| panic!("offered {address}"));
    redis.stop();
    for client in &ada {
        assert!(!client.use_tool().failed());
    }
    let bob = Client::new(&one, &issuer, "bob", Era::Legacy);
    let opened = bob.open(|address| panic!("offered {address}"));
    assert!(opened.error().contains(AWAY), "{}", opened.error());
    let page = format!("{PUBLIC}/oauth/sign-in/dev/fs");
    let (_, failed) = Browser::new(&one, "bob").visit(&page);
    assert_eq!(failed.head.status, 502, "{}", failed.body);
    authority.end_access();
    for client in &ada {
        let refused = client.use_tool();
        assert!(refused.error().contains(AWAY), "{}", refused.error());
    }
    assert_eq!(authority.token_requests("refresh_token").len(), 0);
    redis.restart();
    // The restarted store is empty: Ada signs in again, for all replicas.
    let arguments = use_arguments(["dev", "fs", "t"], Some("{}"));
    let again = || {
        let result = ada[0].call("use_tool", &arguments, sign_in(&one, "ada"));
        (!result.failed()).then_some(())
    };
    poll(TIMEOUT, again).expect("the store is used again");
    poll(TIMEOUT, || (!ada[1].use_tool().failed()).then_some(())).expect("the other too");
}
