//! The user's browser: a program that notes what it is called with, and the test as the one who looks at the page.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use url::Url;

use crate::harness::{HttpConnection, HttpRequest, HttpResponse, Setup, TIMEOUT, poll};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// A browser for `$BROWSER`.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) program: PathBuf,
    noted: PathBuf,
}

impl Browser {
    /// A browser in the directory of a test.
    pub(crate) fn new(setup: &Setup) -> Self {
        Self::in_folder(&setup.path(""))
    }

    /// A browser in a folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let noted = folder.join("browser.args");
        let file = noted.display();
        // The note is there as a whole or not at all.
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{file}.part' && mv '{file}.part' '{file}'\n"
        );
        let program = folder.join("browser");
        fs::write(&program, script).expect("a program");
        let rights = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, rights).expect("a program");
        Self { program, noted }
    }

    /// The arguments that it was called with, if it was.
    pub(crate) fn called(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(&self.noted).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    }

    /// Forgets that it was called.
    pub(crate) fn forget(&self) {
        fs::remove_file(&self.noted).expect("it was called");
    }

    /// Waits for the address that it is called with; there is nothing else.
    pub(crate) fn address(&self) -> String {
        let called = poll(TIMEOUT, || self.called()).expect("the browser is called");
        let [address] = called.as_slice() else {
            panic!("not one argument: {called:?}");
        };
        address.clone()
    }
}

/// The addresses that a browser has visited.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Every address, the last one included.
    pub(crate) addresses: Vec<String>,
    /// The last response, or `None` if no program listens there.
    pub(crate) page: Option<HttpResponse>,
}

impl Visit {
    /// The last address, as the address line shows it.
    pub(crate) fn last(&self) -> &str {
        self.addresses.last().expect("an address")
    }
}

/// Goes to an address and wherever it leads. `until` says where to stop without asking, as a browser does that
/// cannot reach this machine.
pub(crate) fn follow(address: &str, until: impl Fn(&Url) -> bool) -> Visit {
    let mut addresses = vec![address.to_owned()];
    for _ in 0..MAX_REDIRECTS {
        let last = addresses.last().expect("an address");
        let url = Url::parse(last).expect("an address");
        if until(&url) {
            return Visit {
                addresses,
                page: None,
            };
        }
        let response = get(&url);
        let to = response.head.header("location").map(str::to_owned);
        match to {
            Some(to) => addresses.push(url.join(&to).expect("an address").into()),
            None => {
                return Visit {
                    addresses,
                    page: Some(response),
                };
            }
        }
    }
    panic!("too many redirects: {addresses:?}");
}

/// Asks for a page of this machine.
fn get(url: &Url) -> HttpResponse {
    let port = url.port().expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let request = HttpRequest::new("GET", path)
        .header("host", host)
        .header("accept", "text/html")
        .header("connection", "close");
    HttpConnection::open(address).ask(&request)
}
