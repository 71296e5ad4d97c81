//! Signing in to remote servers: the requests, the stored records, and the data that is never shown or sent.

mod accounts;
mod attacks;
mod authority;
mod hostile;
mod login;
mod offering;
mod refreshing;
pub(crate) mod served;
mod serving;
mod streams;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output},
    thread,
};

use pretty_assertions::assert_eq;
use serde_json::Value;
use url::Url;

use crate::harness::{
    Finished, Setup, TIMEOUT, Workbench,
    authority::{Authority, Browser, NOISE, SECRET, follow},
    poll,
};

/// A `login` that runs, and the browser that it may open.
struct Login {
    workbench: Workbench,
    browser: Browser,
}

impl Login {
    /// Begins to sign in to the server `fs` of the toolbox `dev`.
    fn start(setup: Setup, more: &[&str]) -> Self {
        let names = [&["dev", "fs"], more].concat();
        Self::start_with(setup, &names)
    }

    fn start_with(setup: Setup, arguments: &[&str]) -> Self {
        let browser = Browser::new(&setup);
        let setup = setup.env("BROWSER", browser.program.to_str().unwrap());
        setup.write_config();
        let config = setup.config();
        let all = [
            &["login"],
            arguments,
            &["--config", config.to_str().unwrap()],
        ]
        .concat();
        let workbench = setup.start_with(&all);
        Self { workbench, browser }
    }

    /// The address that was printed.
    fn printed(&self) -> String {
        let line = poll(TIMEOUT, || {
            let stderr = self.workbench.stderr();
            let mut lines = stderr.lines();
            lines
                .find_map(|line| line.strip_prefix("  http"))
                .map(|rest| format!("http{rest}"))
        });
        line.expect("an address is printed")
    }

    /// The user goes wherever the address leads; the page at the end.
    fn agree(&self) -> String {
        let visit = follow(&self.browser.address(), |_| false);
        visit.page.expect("a page").body
    }

    /// The address that the browser would be sent back to, without going there.
    fn redirect(&self) -> String {
        follow(&self.printed(), is_callback).last().to_owned()
    }

    fn ended(&mut self) -> Finished {
        let finished = self.workbench.finish();
        let said = format!("{}\n{}", finished.stdout.join("\n"), finished.stderr);
        assert_silent(&said);
        finished
    }

    /// Waits for its end, which is to be a failure that leaves nothing behind. What it said.
    fn refused(&mut self) -> String {
        let finished = self.ended();
        assert_eq!(finished.status.code(), Some(1), "{finished:?}");
        assert_eq!(finished.stdout, [""; 0]);
        assert_eq!(records(&self.workbench.setup), Vec::<PathBuf>::new());
        let (_, error) = finished.stderr.split_once("error: ").unwrap();
        error.trim_end().to_owned()
    }

    /// Signs in once more, to any server, as a user who agrees.
    fn again(&self, names: &[&str]) -> Output {
        self.browser.forget();
        let arguments = [&["login"], names].concat();
        let setup = self.setup();
        thread::scope(|scope| {
            let running = scope.spawn(move || run(setup, &arguments));
            self.agree();
            let output = running.join().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            output
        })
    }

    /// The directory of the test, for further commands.
    fn setup(&self) -> &Setup {
        &self.workbench.setup
    }
}

/// Returns true if an address is that of the listener.
fn is_callback(url: &Url) -> bool {
    url.path() == "/callback"
}

/// Nothing secret and nothing that others have written is in a text.
#[track_caller]
fn assert_silent(text: &str) {
    assert!(!text.contains(SECRET), "{text}");
    assert!(!text.contains(NOISE), "{text}");
}

/// Signs in to the server `fs` of the toolbox `dev`, as a user who agrees.
fn signed_in(setup: Setup) -> Login {
    let mut login = Login::start(setup, &[]);
    login.agree();
    let finished = login.ended();
    assert!(finished.status.success(), "{finished:?}");
    login
}

/// Runs a command in the directory of a test.
fn run(setup: &Setup, arguments: &[&str]) -> Output {
    let mut command: Command = setup.command();
    command.args(arguments).arg("--config").arg(setup.config());
    let output = command.output().unwrap();
    assert_silent(&text(&output.stdout));
    assert_silent(&text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the output of a command that succeeds.
#[track_caller]
fn printed(setup: &Setup, arguments: &[&str]) -> String {
    let output = run(setup, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the output of a command with `--json`.
#[track_caller]
fn json_of(setup: &Setup, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(setup, arguments)).unwrap()
}

/// The files of what is stored.
fn records(setup: &Setup) -> Vec<PathBuf> {
    let folder = setup.path("home/.local/state/mcp-workbench/signin");
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let files = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|it| it == "json"))
        .collect();
    files.sort();
    files
}

/// The rights of a file or folder.
fn rights(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// No code and no token of an authority went to this list of requests.
#[track_caller]
fn assert_no_exchange(authority: &Authority) {
    assert_eq!(authority.token_requests("authorization_code").len(), 0);
}
