//! Signing in at a certified authorization server, in a browser that fills in its forms, to a server of the official
//! SDK that takes nothing but its tokens.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::packages;
use crate::process::Process;
use crate::session::{Answer, Session};
use crate::workbench::{ConfigFile, TOOLBOX, use_tool};

/// The name of the protected server in the configuration.
const SERVER: &str = "notes";

/// How long the browser may take to show a page, and the interval for polling it.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// The authority and the server that it protects; both end with the value.
struct Authority {
    process: Process,
    url: String,
}

impl Authority {
    fn start() -> Self {
        let mut command = Command::new(packages::newer_node());
        command
            .arg(packages::beside("servers/authority.mjs"))
            .arg(packages::folder());
        let mut process = Process::start(command);
        let url = process.read_line().expect("it prints where it listens");
        Self { process, url }
    }

    /// Has it do something, and returns how often it did what since the last time.
    fn tell(&mut self, what: &str) -> BTreeMap<String, usize> {
        self.process.write_line(what);
        let mut did = BTreeMap::new();
        loop {
            let line = self.process.read_line().expect("it answers");
            if line == "done" {
                return did;
            }
            *did.entry(line).or_default() += 1;
        }
    }

    /// Makes all access tokens void, which is what a server sees of one that is over.
    fn expire(&mut self) {
        self.tell("expire");
    }

    /// Returns its actions since the last call.
    fn did(&mut self) -> BTreeMap<String, usize> {
        self.tell("nothing")
    }
}

fn times<const N: usize>(did: [(&str, usize); N]) -> BTreeMap<String, usize> {
    did.map(|(what, times)| (what.to_owned(), times)).into()
}

/// Somebody with the protected server in a configuration, a terminal and a browser.
struct User {
    config: ConfigFile,
}

#[derive(Debug)]
struct Ended {
    status: i32,
    stdout: String,
    stderr: String,
}

impl User {
    fn of(authority: &Authority) -> Self {
        let servers = json!({ SERVER: { "type": "http", "url": authority.url } });
        let toolbox = json!({ "description": "Protected", "mcpServers": servers });
        Self {
            config: ConfigFile::new(&json!({ "toolboxes": { TOOLBOX: toolbox } })),
        }
    }

    /// A command of the workbench, with this user's browser.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.config.command_with(arguments);
        command
            .env("BROWSER", packages::beside("clients/browser.py"))
            .env("SEEN", self.seen());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        Ended {
            status: output.status.code().expect("nothing kills it"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Signs in, and returns the page that the browser shows in the end.
    fn sign_in(&self) -> String {
        let _ = std::fs::remove_file(self.seen());
        let ended = self.run(&["login", TOOLBOX, SERVER]);
        assert_eq!(ended.status, 0, "{ended:?}");
        // The page may be shown a moment later.
        let end = Instant::now() + LIMIT;
        loop {
            let seen = std::fs::read_to_string(self.seen()).unwrap_or_default();
            if seen.ends_with('\n') {
                return seen;
            }
            assert!(Instant::now() < end, "the browser shows nothing");
            std::thread::park_timeout(PAUSE);
        }
    }

    fn call(&self, tool: &str, arguments: &[&str]) -> Ended {
        self.run(&[&["call", TOOLBOX, SERVER, tool], arguments].concat())
    }

    /// Returns the file in which the browser stores its pages.
    fn seen(&self) -> PathBuf {
        self.config.path().with_file_name("seen")
    }

    /// A session in which the toolbox is open.
    fn serve(&self) -> Session {
        let mut session = Session::start(self.command(&["serve"]));
        let opened = session.call("open_toolbox", &json!({ "toolbox": TOOLBOX }));
        let opened = opened.value();
        assert_ne!(opened["isError"], true, "{opened}");
        session
    }
}

/// Uses the tool that everybody may use who is signed in.
fn read(session: &mut Session) -> Value {
    call(session, "read", &json!({})).value()
}

fn call(session: &mut Session, tool: &str, arguments: &Value) -> Answer {
    session.call("use_tool", &use_tool(SERVER, tool, arguments))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// That this failed because nobody is signed in, and that it says what to do.
fn assert_wants_sign_in(words: &str) {
    let command = format!(" login {TOOLBOX} {SERVER}`");
    assert!(words.contains(&command), "{words}");
}

#[test]
fn sign_in_use_and_sign_out() {
    let mut authority = Authority::start();
    let user = User::of(&authority);
    let refused = user.call("read", &[]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert_wants_sign_in(&refused.stderr);
    assert_eq!(authority.did(), times([]));

    let page = user.sign_in();
    assert!(page.starts_with("200 http://127.0.0.1:"), "{page}");
    assert_eq!(authority.did(), times([("registered", 1), ("granted", 1)]));
    let called = user.call("read", &[]);
    assert_eq!(
        (called.status, called.stdout.trim()),
        (0, "ada has 0 notes")
    );

    let signed_out = user.run(&["logout", TOOLBOX, SERVER]);
    assert_eq!(signed_out.status, 0, "{signed_out:?}");
    assert_eq!(authority.did(), times([("revoked", 1)]));
    let refused = user.call("read", &[]);
    assert_wants_sign_in(&refused.stderr);
}

#[test]
fn an_expired_token_is_refreshed_with_a_one_time_refresh_token() {
    let mut authority = Authority::start();
    let user = User::of(&authority);
    user.sign_in();
    let mut session = user.serve();
    assert_eq!(text(&read(&mut session)), "ada has 0 notes");
    authority.did();

    authority.expire();
    assert_eq!(text(&read(&mut session)), "ada has 0 notes");
    assert_eq!(authority.did(), times([("refreshed", 1), ("rotated", 1)]));
    // Another process finds what the first one was given,
    assert_eq!(user.call("read", &[]).status, 0);
    assert_eq!(authority.did(), times([]));

    // and the first one what another was given for that.
    authority.expire();
    assert_eq!(user.call("read", &[]).status, 0);
    assert_eq!(authority.did(), times([("refreshed", 1), ("rotated", 1)]));
    assert_eq!(text(&read(&mut session)), "ada has 0 notes");
    assert_eq!(authority.did(), times([]));
    session.finish();
}

#[test]
fn concurrent_calls_with_an_expired_token_refresh_once() {
    let mut authority = Authority::start();
    let user = User::of(&authority);
    user.sign_in();
    authority.expire();

    let calls = [(); 4].map(|()| Process::start(user.command(&["call", TOOLBOX, SERVER, "read"])));
    for call in calls {
        assert_eq!(call.finish(), ["ada has 0 notes"]);
    }
    let did = authority.did();
    assert_eq!(did, times([("refreshed", 1), ("rotated", 1)]));
}

#[test]
fn a_tool_that_needs_more_scopes_works_after_a_new_sign_in() {
    let mut authority = Authority::start();
    let user = User::of(&authority);
    user.sign_in();
    let mut session = user.serve();
    let note = json!({ "note": "buy milk" });
    let refused = call(&mut session, "write", &note).value();
    assert_eq!(
        refused["_meta"]["mcp-workbench/error"]["code"],
        "auth_required"
    );
    assert_wants_sign_in(text(&refused));
    // What was granted is as good as before.
    assert_eq!(text(&read(&mut session)), "ada has 0 notes");

    user.sign_in();
    let wrote = call(&mut session, "write", &note).value();
    assert_eq!(text(&wrote), "ada wrote buy milk");
    assert_eq!(text(&read(&mut session)), "ada has 1 notes");
    assert_eq!(authority.did()["granted"], 2);
    session.finish();
}

#[test]
fn a_revoked_client_must_sign_in_again() {
    let mut authority = Authority::start();
    let user = User::of(&authority);
    user.sign_in();
    let mut session = user.serve();
    read(&mut session);
    authority.tell("forget");
    let refused = read(&mut session);
    assert_eq!(refused["isError"], true, "{refused}");
    assert_wants_sign_in(text(&refused));

    user.sign_in();
    assert_eq!(text(&read(&mut session)), "ada has 0 notes");
    session.finish();
}
