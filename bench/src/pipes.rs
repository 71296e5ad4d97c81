//! JSON-RPC lines over the pipes of a process. Every message is one write, as clients do it.

use std::{
    io,
    process::{ChildStdin, ChildStdout, Stdio},
    time::Instant,
};

use crate::{
    era::Params,
    lines::LineBuffer,
    prepared::Prepared,
    session::{Budget, GRACE, SessionError, read_answer, write_request},
    watchdog::Watched,
};

/// A process and its pipes. Dropping it ends the process.
pub struct Pipes {
    pub(crate) process: Watched,
    /// Gone when the end has begun.
    input: Option<ChildStdin>,
    output: LineBuffer<ChildStdout>,
    message: Vec<u8>,
}

impl Pipes {
    pub fn spawn(prepared: &Prepared) -> io::Result<Self> {
        let mut child = prepared
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self {
            process: Watched::new(child),
            input: Some(input),
            output: LineBuffer::new(output),
            message: Vec::new(),
        })
    }

    /// Sends a message that is not answered.
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<(), SessionError> {
        self.message.clear();
        self.message.extend_from_slice(message);
        self.flush()
    }

    /// Waits for the answer to a request that was sent.
    pub(crate) fn wait<T>(&mut self, id: u64, read: impl Fn(&str) -> T) -> Result<T, SessionError> {
        loop {
            let line = self.output.next_line()?.ok_or(SessionError::Ended)?;
            match read_answer(line)? {
                Some((answered, result)) if answered == id => return Ok(read(result)),
                _ => {}
            }
        }
    }

    /// Keeps `count` calls in flight until the budget is used up; returns how many were answered.
    pub(crate) fn in_flight(
        &mut self,
        first: u64,
        params: &Params,
        count: usize,
        budget: Budget,
    ) -> Result<usize, SessionError> {
        let began = Instant::now();
        let mut sent = 0;
        let mut done = 0;
        let mut over = false;
        while sent < count {
            self.request(first + sent as u64, "tools/call", params)?;
            sent += 1;
        }
        while done < sent {
            let line = self.output.next_line()?.ok_or(SessionError::Ended)?;
            let Some((id, _)) = read_answer(line)? else {
                continue;
            };
            if !(first..first + sent as u64).contains(&id) {
                return Err(SessionError::Unexpected(format!("the id {id}")));
            }
            done += 1;
            over = over || sent >= budget.calls || began.elapsed() >= budget.time;
            if !over {
                self.request(first + sent as u64, "tools/call", params)?;
                sent += 1;
            }
        }
        Ok(done)
    }

    pub(crate) fn request(
        &mut self,
        id: u64,
        method: &str,
        params: &Params,
    ) -> Result<(), SessionError> {
        self.message.clear();
        write_request(&mut self.message, id, method, params);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), SessionError> {
        let input = self.input.as_ref().ok_or(SessionError::Ended)?;
        self.message.push(b'\n');
        let mut rest = &self.message[..];
        while !rest.is_empty() {
            let written = rustix::io::write(input, rest).map_err(|_| SessionError::Ended)?;
            rest = &rest[written..];
        }
        Ok(())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        self.input = None;
        self.process.limit(GRACE);
        // Its pipes end before it does; what it still says is not wanted.
        while let Ok(Some(_)) = self.output.next_line() {}
        self.process.wait(GRACE);
    }
}
