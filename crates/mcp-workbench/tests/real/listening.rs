//! The workbench as a child process that serves over HTTP, with a token of the test's own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::process::LIMIT;
use crate::workbench::ConfigFile;

/// The token that the workbench wants to see.
pub(crate) const TOKEN: &str = "a-token-that-only-these-tests-know";

/// A workbench that listens on a port of this machine; it ends with the value.
pub(crate) struct Listening {
    /// The address that it reports.
    pub(crate) url: String,
    child: Child,
    // Kept for its file.
    _config: ConfigFile,
}

impl Listening {
    /// Serves the configuration for clients, with these further options.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::serve(ConfigFile::for_clients(), options)
    }

    /// Serves a configuration, with these further options.
    pub(crate) fn serve(config: ConfigFile, options: &[&str]) -> Self {
        let mut child = config
            .command_with(&["serve", "--http", "127.0.0.1:0"])
            .args(options)
            .env("WORKBENCH_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // It is read to its end, also when nobody listens any more.
                let _ = sender.send(line);
            }
        });
        let mut workbench = Self {
            url: String::new(),
            child,
            _config: config,
        };
        let mut said = Vec::new();
        while workbench.url.is_empty() {
            let Ok(line) = lines.recv_timeout(LIMIT) else {
                panic!("the workbench does not listen; it said {said:?}");
            };
            if let Some(url) = line.strip_prefix("listening on ") {
                url.clone_into(&mut workbench.url);
            }
            said.push(line);
        }
        workbench
    }
}

/// Tells a client the token, and that there is no proxy between it and this machine.
pub(crate) fn introduce(client: &mut Command) {
    client
        .env("WORKBENCH_TOKEN", TOKEN)
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1");
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
