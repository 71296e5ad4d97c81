//! A fixture server over HTTP.

use std::{
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    Journal, Script, Setup, TIMEOUT, fixture_server, poll, raw_string, transcript::Transcript,
};

/// A fixture server over HTTP, with its journal. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct RemoteFixture {
    child: Child,
    pub(crate) address: SocketAddr,
    journal: Journal,
    _directory: TempDir,
}

impl RemoteFixture {
    /// Starts it at a free port.
    pub(crate) fn start(script: &Script) -> Self {
        Self::start_at(0, script)
    }

    /// Ends it and starts another one in its place.
    pub(crate) fn replaced_by(self, script: &Script) -> Self {
        let port = self.address.port();
        drop(self);
        Self::start_at(port, script)
    }

    fn start_at(port: u16, script: &Script) -> Self {
        let directory = TempDir::new().expect("a directory for the server");
        let file = directory.path().join("journal");
        let path = raw_string(file.to_str().expect("a readable path"));
        let script = script.clone().set("journal", &path).text();
        let mut child = Command::new(fixture_server())
            .args(["http", "--port", &port.to_string(), "--script", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the fixture server starts");
        let stderr = Transcript::default();
        stderr.drain(child.stderr.take().expect("a piped stderr"));
        let address = poll(TIMEOUT, || {
            let text = stderr.text();
            let (_, rest) = text.split_once("listening on http://")?;
            rest.split_once("/mcp\n")?.0.parse().ok()
        });
        Self {
            child,
            address: address.unwrap_or_else(|| panic!("not listening: {}", stderr.text())),
            journal: Journal { file },
            _directory: directory,
        }
    }

    /// Its address for the configuration.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The headers of every request that it got, their names in small letters, in order.
    pub(crate) fn headers(&self) -> Vec<Value> {
        let heads = self.journal.events("http");
        let heads = heads
            .iter()
            .map(|head| serde_json::from_str::<Value>(head).expect("a head"));
        heads.map(|head| head["headers"].clone()).collect()
    }

    /// A toolbox `dev` with this one server, `fs`.
    pub(crate) fn setup(&self) -> Setup {
        Setup::new()
            .toolbox("dev", "Development tools")
            .entry("fs", json!({"url": self.url()}))
    }
}

impl Drop for RemoteFixture {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
