//! A target that is ready to be started: its command, how it is called, and what runs beside it.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    era::{Params, RequestMeta},
    launch::TOOL,
    target::Layout,
    text::Text,
};

/// A target with everything that is needed to start and to call it.
pub struct Prepared {
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// True if its client connects over HTTP.
    pub is_http: bool,
    /// The `_meta` of the client's requests.
    pub meta: RequestMeta,
    /// The request that lists the tools, if they must be listed before a call.
    pub open: Option<(String, String)>,
    /// How many tools that must give.
    pub least_tools: usize,
    /// The text of a call before and after its arguments.
    call: [String; 2],
    pub(crate) folder: TempDir,
    pub(crate) companion: Option<Companion>,
    /// Its address, if the benchmark chooses it.
    pub(crate) address: Option<String>,
}

impl Prepared {
    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.arguments[0]);
        command
            .args(&self.arguments[1..])
            .current_dir(self.folder.path());
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }

    /// The parameters of a call for a result of `bytes` bytes. The usual text is not named, so that usual calls stay small.
    pub fn call(&self, bytes: usize, text: Text) -> Params {
        let [before, after] = &self.call;
        self.params(&match text {
            Text::Smooth => format!(r#"{before}{{"bytes":{bytes}}}{after}"#),
            text => {
                let text = text.name();
                format!(r#"{before}{{"bytes":{bytes},"text":"{text}"}}{after}"#)
            }
        })
    }

    /// The parameters of a request as this client sends them.
    pub fn params(&self, params: &str) -> Params {
        Params::new(params, self.meta)
    }

    /// A target that shows the servers' tools under their own names.
    pub fn plain(arguments: Vec<String>, layout: Layout) -> impl FnOnce(TempDir) -> Self {
        move |folder| Self {
            arguments,
            environment: Vec::new(),
            is_http: false,
            meta: RequestMeta::None,
            open: Some(("tools/list".to_owned(), "{}".to_owned())),
            least_tools: layout.servers * layout.tools,
            call: [format!(r#"{{"name":"{TOOL}","arguments":"#), "}".to_owned()],
            folder,
            companion: None,
            address: None,
        }
    }

    /// Sets how a tool is called: the text before and after its arguments.
    #[must_use]
    pub fn called(mut self, before: &str, after: &str) -> Self {
        self.call = [before.to_owned(), after.to_owned()];
        self
    }

    /// Sets how the tools are listed, where they are not shown under their own names.
    #[must_use]
    pub fn opened_by(mut self, request: (String, String)) -> Self {
        self.open = Some(request);
        self.least_tools = 0;
        self
    }

    /// Has it started by another program.
    #[must_use]
    pub fn under(mut self, program: Vec<String>) -> Self {
        self.arguments.splice(0..0, program);
        self
    }

    /// Adds variables of the environment.
    #[must_use]
    pub fn with_environment(mut self, environment: Vec<(String, String)>) -> Self {
        self.environment = environment;
        self
    }
}

/// A server that is started over HTTP beside a target. Dropping it ends it.
pub(crate) struct Companion(Child);

impl Drop for Companion {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Companion {
    /// Starts a server and waits for its address.
    pub(crate) fn start(command: &[String]) -> io::Result<(Self, String)> {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let companion = Self(child);
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line)?;
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .and_then(|it| it.strip_suffix("/mcp"))
            .ok_or(io::ErrorKind::ConnectionRefused)?
            .to_owned();
        Ok((companion, address))
    }
}

/// The method and the parameters of a call.
pub fn call(name: &str, arguments: &Value) -> (String, String) {
    let params = json!({ "name": name, "arguments": arguments });
    ("tools/call".to_owned(), params.to_string())
}

/// Writes a file of a configuration; returns its path.
pub fn write(folder: &TempDir, name: &str, text: &str) -> io::Result<String> {
    let path: &Path = &folder.path().join(name);
    fs::write(path, text)?;
    Ok(path.to_string_lossy().into_owned())
}
