//! Access to the page: for the holder of the key, which is in a file for the user alone, and browsers that came by a link
//! made with it. A link is good once and for a minute; the browser gets a cookie for it. Tokens of MCP clients do not
//! count here, so nothing that speaks MCP can decide anything on the page.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use hyper::{HeaderMap, header};
use tokio::time::Instant;

use crate::{serve::http::random_id, sha256::Sha256, sync::lock};

/// How long a link is good.
const LINK_LIFETIME: Duration = Duration::from_mins(1);
/// How long a browser may come back.
const COOKIE_LIFETIME: Duration = Duration::from_hours(12);
/// The most links and cookies at once; the oldest is dropped.
const MAX_CODES: usize = 32;
const COOKIE: &str = "mcp-workbench-page";

/// The proofs that let somebody in.
pub(super) struct Access {
    key: Proof,
    codes: Mutex<Codes>,
}

/// The digest of a secret. Comparing digests tells nothing about the secret.
type Proof = [u8; 32];

#[derive(Default)]
struct Codes {
    links: HashMap<Proof, Instant>,
    cookies: HashMap<Proof, Instant>,
}

/// The way in which a request shows that it may see the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageAccess {
    /// By the key: a command of the user.
    Key,
    /// By a cookie: a browser.
    Cookie,
}

impl Access {
    pub(super) fn new(key: &str) -> Self {
        Self {
            key: proof(key),
            codes: Mutex::default(),
        }
    }

    /// Returns how a request is admitted, if it is.
    pub(super) fn page_access(&self, headers: &HeaderMap) -> Option<PageAccess> {
        if let Some(key) = bearer(headers) {
            // A wrong key is refused, whatever cookies come with it.
            return (proof(key) == self.key).then_some(PageAccess::Key);
        }
        let mut codes = self.codes();
        expire(&mut codes.cookies);
        let cookie = cookies(headers).find(|cookie| codes.cookies.contains_key(&proof(cookie)));
        cookie.map(|_| PageAccess::Cookie)
    }

    /// Makes the code of a link.
    pub(super) fn make_link(&self) -> String {
        let code = random_id();
        add(&mut self.codes().links, &code, LINK_LIFETIME);
        code
    }

    /// Exchanges the code of a link for the value of `Set-Cookie`.
    pub(super) fn exchange(&self, code: &str) -> Option<String> {
        let mut codes = self.codes();
        expire(&mut codes.links);
        // Removed by the first use, so that a link that somebody copies is worth nothing afterwards.
        codes.links.remove(&proof(code))?;
        let cookie = random_id();
        add(&mut codes.cookies, &cookie, COOKIE_LIFETIME);
        let seconds = COOKIE_LIFETIME.as_secs();
        // Not `Secure`: the page is on this machine, over http.
        Some(format!(
            "{COOKIE}={cookie}; Path=/ui; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        ))
    }

    fn codes(&self) -> MutexGuard<'_, Codes> {
        lock(&self.codes)
    }
}

fn add(codes: &mut HashMap<Proof, Instant>, code: &str, lifetime: Duration) {
    expire(codes);
    if codes.len() >= MAX_CODES
        && let Some(oldest) = { codes.iter() }.min_by_key(|it| it.1).map(|it| *it.0)
    {
        codes.remove(&oldest);
    }
    codes.insert(proof(code), Instant::now() + lifetime);
}

fn expire(codes: &mut HashMap<Proof, Instant>) {
    let now = Instant::now();
    codes.retain(|_, until| *until > now);
}

fn proof(secret: &str) -> Proof {
    Sha256::digest(secret.as_bytes())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

/// Returns the values of our cookie. A page on another port of this machine may have set one too.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get_all(header::COOKIE).iter();
    let pairs = all
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split("; "));
    pairs.filter_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::try_from(value).unwrap());
        headers
    }

    fn cookie(set: &str) -> HeaderMap {
        let pair = set.split(';').next().unwrap();
        with(header::COOKIE, &format!("{COOKIE}=other; {pair}"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_is_good_once_and_for_a_minute() {
        let access = Access::new("key");
        let link = access.make_link();
        let set = access.exchange(&link).unwrap();
        assert_eq!(access.exchange(&link), None, "used twice");
        assert_eq!(access.page_access(&cookie(&set)), Some(PageAccess::Cookie));
        let late = access.make_link();
        tokio::time::advance(LINK_LIFETIME).await;
        assert_eq!(access.exchange(&late), None, "too late");
        tokio::time::advance(COOKIE_LIFETIME).await;
        assert_eq!(access.page_access(&cookie(&set)), None);
    }

    #[tokio::test]
    async fn only_the_key_and_our_cookies_admit() {
        let access = Access::new("key");
        let key = |key: &str| with(header::AUTHORIZATION, &format!("Bearer {key}"));
        assert_eq!(access.page_access(&key("key")), Some(PageAccess::Key));
        assert_eq!(access.page_access(&key("other")), None);
        assert_eq!(access.page_access(&HeaderMap::new()), None);
        assert_eq!(access.page_access(&cookie("mcp-workbench-page=x")), None);
    }

    #[tokio::test]
    async fn the_number_of_links_is_bounded() {
        let access = Access::new("key");
        let links: Vec<String> = (0..=MAX_CODES).map(|_| access.make_link()).collect();
        let good = links.iter().filter(|it| access.exchange(it).is_some());
        assert_eq!(good.count(), MAX_CODES);
    }
}
