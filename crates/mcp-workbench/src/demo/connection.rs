//! The demo as a JSON-RPC client: it sends one request at a time and waits for its response until a deadline.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::text::shorten;

const METHOD_NOT_FOUND: i32 = -32601;
/// The number of characters of an invalid line that are shown.
const MAX_SHOWN: usize = 120;

/// Reasons why the demo failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error("cannot start `{program}`")]
    Start { program: PathBuf, source: io::Error },
    #[error("cannot send `{method}` to the workbench")]
    Send { method: String, source: io::Error },
    #[error("cannot read the response to `{method}`")]
    Receive {
        /// The request that was waiting.
        method: String,
        source: io::Error,
    },
    /// The request timed out.
    #[error("timed out after {} s waiting for the response to `{method}`", deadline.as_secs())]
    NoAnswer { method: String, deadline: Duration },
    /// The workbench closed its output.
    #[error("the workbench exited before it answered `{method}`")]
    Ended {
        /// The request that was waiting.
        method: String,
    },
    /// The workbench wrote a line that is not JSON.
    #[error("the workbench wrote a line that is not JSON: `{line}`")]
    NotJson {
        /// The line, shortened.
        line: String,
        source: serde_json::Error,
    },
    /// The response is a JSON-RPC error.
    #[error("`{method}` was refused with error {code}: {message}")]
    Refused {
        method: String,
        code: i64,
        message: String,
    },
    /// The response is not what this step shows.
    #[error("step `{step}` expected {expected}, but the response was: {found}")]
    Unexpected {
        step: &'static str,
        expected: String,
        /// The actual response, shortened.
        found: String,
    },
    /// The workbench did not exit after its input was closed.
    #[error("the workbench is still running {} s after its input was closed", deadline.as_secs())]
    StillRunning { deadline: Duration },
    /// The workbench exited with an error.
    #[error("the workbench exited with {status}")]
    Exit { status: ExitStatus },
    /// The system could not report the exit of the workbench.
    #[error("cannot wait for the workbench")]
    Wait { source: io::Error },
    #[error("cannot write the output of the demo")]
    Output(#[from] io::Error),
}

/// A response with its duration.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) result: Value,
    /// From before the request was written until the response was read.
    pub(super) took: Duration,
}

/// Lines of the workbench's output; the channel closes with the output.
pub(super) type Incoming = Receiver<io::Result<Vec<u8>>>;

/// A connection to a workbench.
pub(super) struct Connection<W> {
    output: W,
    incoming: Incoming,
    last_id: u64,
    deadline: Duration,
}

impl<W: Write> Connection<W> {
    /// Creates a connection that writes to `output`, reads `incoming`, and waits for each response until the
    /// deadline.
    pub(super) fn new(output: W, incoming: Incoming, deadline: Duration) -> Self {
        Self {
            output,
            incoming,
            last_id: 0,
            deadline,
        }
    }

    /// Sends a request and waits for its response. Requests that arrive meanwhile are answered; notifications are
    /// ignored.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Exchange, DemoError> {
        self.last_id += 1;
        let id = json!(self.last_id);
        let started = Instant::now();
        self.send(
            method,
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        )?;
        loop {
            let mut message = self.receive(method, started)?;
            // Requests and notifications of the workbench may arrive before the response.
            if message.get("method").is_some() {
                self.answer_request(&message)?;
            } else if message["id"] == id {
                let took = started.elapsed();
                if let Some(error) = message.get("error") {
                    return Err(refused(method, error));
                }
                return Ok(Exchange {
                    result: message["result"].take(),
                    took,
                });
            }
        }
    }

    pub(super) fn notify(&mut self, method: &str) -> Result<(), DemoError> {
        self.send(method, &json!({"jsonrpc": "2.0", "method": method}))
    }

    /// Closes the output. Returns the input, which must stay open until the other side has exited.
    pub(super) fn hang_up(self) -> Incoming {
        self.incoming
    }

    /// Sends a message. Our messages are far smaller than a pipe's buffer, so this does not block for long even
    /// if nobody reads.
    fn send(&mut self, method: &str, message: &Value) -> Result<(), DemoError> {
        writeln!(self.output, "{message}")
            .and_then(|()| self.output.flush())
            .map_err(|source| DemoError::Send {
                method: method.to_owned(),
                source,
            })
    }

    fn receive(&mut self, method: &str, started: Instant) -> Result<Value, DemoError> {
        let method = || method.to_owned();
        let left = self.deadline.saturating_sub(started.elapsed());
        let line = match self.incoming.recv_timeout(left) {
            Ok(Ok(line)) => line,
            Ok(Err(source)) => {
                return Err(DemoError::Receive {
                    method: method(),
                    source,
                });
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(DemoError::NoAnswer {
                    method: method(),
                    deadline: self.deadline,
                });
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(DemoError::Ended { method: method() });
            }
        };
        serde_json::from_slice(&line).map_err(|source| DemoError::NotJson {
            line: shorten(String::from_utf8_lossy(&line).trim_end(), MAX_SHOWN),
            source,
        })
    }

    /// Answers a `ping`; all other requests are refused.
    fn answer_request(&mut self, request: &Value) -> Result<(), DemoError> {
        let Some(id) = request.get("id") else {
            return Ok(());
        };
        let method = request["method"].as_str().unwrap_or_default();
        let answer = if method == "ping" {
            json!({"jsonrpc": "2.0", "id": id, "result": {}})
        } else {
            let error = json!({"code": METHOD_NOT_FOUND, "message": "the demo offers no methods"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        };
        self.send(method, &answer)
    }
}

fn refused(method: &str, error: &Value) -> DemoError {
    DemoError::Refused {
        method: method.to_owned(),
        code: error["code"].as_i64().unwrap_or_default(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
