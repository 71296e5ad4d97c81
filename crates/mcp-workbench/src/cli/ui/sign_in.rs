//! Signs in to a server for the page, by running `login`. The page shows the address that the command prints, and the
//! command waits for the browser to come back.

use std::time::Duration;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStderr},
};

use crate::alarm::timeout;

/// How long finding the address may take: it asks the server and its authorization server.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the user may take in the browser. The command itself gives up a little earlier.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(11);
/// The most output that is read.
const MAX_OUTPUT: u64 = 64 * 1024;

/// A sign-in that waits for the browser. Dropping it ends the command.
pub(super) struct SignIn {
    child: Child,
    lines: Lines<BufReader<tokio::io::Take<ChildStderr>>>,
    /// The address that the user has to open.
    pub(super) address: String,
}

impl SignIn {
    /// Waits until the command has printed the address. The error is the text of the command.
    pub(super) async fn begin(mut child: Child) -> Result<Self, String> {
        let stderr = child.stderr.take().ok_or("the command has no output")?;
        let mut lines = BufReader::new(stderr.take(MAX_OUTPUT)).lines();
        let found = timeout(ADDRESS_TIMEOUT, address(&mut lines)).await;
        let address = found.map_err(|_| "timed out looking up how to sign in")??;
        Ok(Self {
            child,
            lines,
            address,
        })
    }

    /// Waits until the user has come back from the browser. The error is the text of the command.
    pub(super) async fn wait(mut self) -> Result<(), String> {
        let ended = timeout(LOGIN_TIMEOUT, async {
            let mut text = String::new();
            while let Ok(Some(line)) = self.lines.next_line().await {
                // The last line is the error, if there is one.
                text = line;
            }
            (self.child.wait().await, text)
        });
        match ended.await {
            Ok((Ok(status), _)) if status.success() => Ok(()),
            Ok((_, text)) => Err(text),
            Err(_) => Err("timed out waiting for the browser".to_owned()),
        }
    }
}

/// Returns the address that the command prints on a line of its own.
async fn address(
    lines: &mut Lines<BufReader<tokio::io::Take<ChildStderr>>>,
) -> Result<String, String> {
    let mut text = String::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = line.trim();
        if line.starts_with("https://") || line.starts_with("http://") {
            return Ok(line.to_owned());
        }
        text = format!("{text}{line}\n");
    }
    Err(text.trim().to_owned())
}
