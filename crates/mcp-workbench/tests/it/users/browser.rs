//! The browser of a user: it keeps cookies, and the authorization server of the users knows whose it is.

use std::net::SocketAddr;

use url::Url;

use crate::harness::{HttpConnection, HttpRequest, HttpResponse, Served};

/// The address by which the public knows the workbench. Nothing listens there: a proxy would.
pub(super) const PUBLIC: &str = "http://localhost:1/mcp";

pub(super) struct Browser<'a> {
    served: &'a Served,
    user: &'a str,
    cookies: Vec<(String, String)>,
}

impl<'a> Browser<'a> {
    pub(super) fn new(served: &'a Served, user: &'a str) -> Self {
        Self {
            served,
            user,
            cookies: Vec::new(),
        }
    }

    /// Sends the next requests to another replica.
    pub(super) fn move_to(&mut self, served: &'a Served) {
        self.served = served;
    }

    /// Forgets all cookies.
    pub(super) fn forget(&mut self) {
        self.cookies.clear();
    }

    /// Goes to an address and wherever it leads. Returns all addresses and the last page.
    pub(super) fn visit(&mut self, address: &str) -> (Vec<String>, HttpResponse) {
        let mut addresses = vec![address.to_owned()];
        for _ in 0..8 {
            let response = self.get(addresses.last().unwrap());
            let Some(to) = response.head.header("location") else {
                return (addresses, response);
            };
            addresses.push(to.to_owned());
        }
        panic!("too many redirects: {addresses:?}");
    }

    /// Goes to the page that begins a sign-in, and as far as the redirect of the server's authorization server.
    pub(super) fn come_back(&mut self, address: &str) -> String {
        let mut address = address.to_owned();
        let mut redirects = 0;
        loop {
            let response = self.get(&address);
            let to = response.head.header("location").map(str::to_owned);
            address = to.expect("a redirect");
            redirects += usize::from(address.starts_with(PUBLIC));
            if redirects == 2 {
                return address;
            }
        }
    }

    pub(super) fn get(&mut self, address: &str) -> HttpResponse {
        let url = Url::parse(address).unwrap();
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let request = HttpRequest::new("GET", path)
            .header("host", host)
            .header("accept", "text/html");
        if !address.starts_with(PUBLIC) {
            let request = request.header("cookie", &format!("user={}", self.user));
            let address = SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()));
            return HttpConnection::open(address).ask(&request.header("connection", "close"));
        }
        let cookies = self.cookies.iter();
        let cookies = cookies.map(|(name, value)| format!("{name}={value}"));
        let cookies = cookies.collect::<Vec<_>>().join("; ");
        let response = self
            .served
            .connection()
            .ask(&request.header("cookie", &cookies));
        if let Some(cookie) = response.head.header("set-cookie") {
            assert!(cookie.contains("; Path=/mcp/oauth; "), "{cookie}");
            assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
            let (name, rest) = cookie.split_once('=').unwrap();
            let value = rest.split_once(';').unwrap().0;
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        response
    }
}
