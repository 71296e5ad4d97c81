//! Reads pasted lines while the command waits for something else.

use std::{
    io::{self, BufRead, Read},
    thread,
};

use tokio::sync::mpsc;

/// The length beyond which a line is cut.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// The lines of stdin, which may end at once.
pub(super) struct Paste(mpsc::Receiver<String>);

impl Paste {
    /// Starts to read. The reading thread ends with stdin or with the process.
    pub(super) fn start() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        let read = move || {
            while let Some(line) = next_line(&mut io::stdin().lock()) {
                if !line.is_empty() && sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        // Without the thread an address cannot be pasted, but the browser can still redirect.
        let _ = thread::Builder::new().name("paste".into()).spawn(read);
        Self(receiver)
    }

    /// Waits for the next line that is not empty; forever if there can be none. Cancel-safe.
    pub(super) async fn next(&mut self) -> String {
        match self.0.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }
}

/// Returns the next line without white space around it, or `None` at the end.
fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let read = input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
    let line = read.ok().filter(|read| *read > 0).map(|_| line)?;
    Some(String::from_utf8_lossy(&line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_trimmed_and_bounded() {
        let mut input: &[u8] = b"  http://x \r\n\n\xff";
        assert_eq!(next_line(&mut input).as_deref(), Some("http://x"));
        assert_eq!(next_line(&mut input).as_deref(), Some(""));
        assert_eq!(next_line(&mut input).as_deref(), Some("\u{fffd}"));
        assert_eq!(next_line(&mut input), None);
        let long = vec![b'x'; 70_000];
        let line = next_line(&mut long.as_slice()).unwrap();
        assert_eq!(line.len(), 65_536);
    }
}
