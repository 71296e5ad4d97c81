//! The link between a host and the processes that connect to it: lines of JSON over a Unix socket, some with descriptors.
//!
//! The host speaks first and says who it is. The other side sends one request. `status`, `stop` and `drain` mean the same in
//! every version of the link, so that every build can inspect and stop the host of every other. After `attach`, the host
//! sends events until the client has ended.

use std::{
    collections::VecDeque,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::SocketAddr,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

use super::{build::Build, status::HostStatus};

/// The version of `attach` and its events, and of the files of a journal that come with them.
pub(crate) const LINK_VERSION: u32 = 4;
/// Upper bound on a line of the link. The largest part of one is the environment of a client.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;
/// Upper bound on the descriptors that come with one line.
const MAX_DESCRIPTORS: usize = 4;

/// The first line of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) link: u32,
    pub(crate) build: Build,
    pub(crate) pid: u32,
    /// Set if the host takes no new clients.
    #[serde(default)]
    pub(crate) draining: bool,
}

/// The request of a process that has connected.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub(crate) enum Demand {
    /// Serve a client, whose stdin and stdout come with this line; those of its journal too, if an earlier host has
    /// ended.
    Attach(Box<Attach>),
    Status,
    /// Serve the page in the browser, for a user with this context.
    Page(Box<Attach>),
    /// Stop some servers until their next use, or the host with all of them.
    Stop(Selection),
    /// Restart some running servers, or the host.
    Restart(Selection),
    /// Take no new clients, and end with the last one.
    Drain,
    /// The context of the attached client again, after [`HostAnswer::Changed`].
    Context(Box<Attach>),
}

/// The context of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attach {
    pub(crate) build: Build,
    /// The configuration file, as an absolute path.
    pub(crate) config: String,
    /// The fingerprint of the configuration that the client's process has read.
    pub(crate) fingerprint: String,
    /// The client of the configuration that it is, by `--as`.
    #[serde(default, rename = "as")]
    pub(crate) client: Option<String>,
    /// The toolbox of `--native`.
    #[serde(default)]
    pub(crate) native: Option<String>,
    /// The only server that a command uses; absent for any other client.
    #[serde(default)]
    pub(crate) only: Option<Selection>,
    /// The folder in which the client was started.
    pub(crate) folder: String,
    #[serde(default)]
    pub(crate) home: Option<String>,
    /// The variables that the configuration names, and those that every server gets.
    pub(crate) variables: Vec<(String, String)>,
    /// The process that waits.
    pub(crate) pid: u32,
    /// The name of the program that started it.
    #[serde(default)]
    pub(crate) program: Option<String>,
}

/// The servers that a command concerns; all, and the host, if it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Selection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) toolbox: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
}

/// The page of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PageAddress {
    pub(crate) address: SocketAddr,
    /// Lets in whoever has it.
    pub(crate) key: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "camelCase")]
pub(crate) enum HostAnswer {
    Attached,
    /// The host will not do it.
    Refused {
        reason: String,
    },
    Status(Box<HostStatus>),
    Page(PageAddress),
    /// It was done, to so many servers.
    Done {
        servers: usize,
    },
    /// The journal of the client, whose descriptors come with this line, has replaced the last one.
    Journal,
    /// The configuration has changed. The process sends the context of its client again, because the file may name other
    /// variables now.
    Changed,
    /// The client has ended; its process exits with this code.
    Ended {
        code: u8,
    },
    /// The host was stopped. The client is attached again when it writes something.
    Stopped,
}

/// Reasons why the other side of a link was not understood.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the other process closed the connection")]
    Closed,
    #[error("unexpected message from the other process")]
    Malformed,
}

/// A line that was received, with its descriptors.
#[derive(Default)]
pub(crate) struct Received {
    line: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Received {
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, LinkError> {
        serde_json::from_slice(&self.line).map_err(|_| LinkError::Malformed)
    }
}

/// The lines of a link that were received and not taken.
#[derive(Default)]
pub(crate) struct Inbox {
    whole: VecDeque<Received>,
    /// The line that has not ended.
    partial: Received,
}

impl Inbox {
    /// Returns the next whole line.
    pub(crate) fn take(&mut self) -> Option<Received> {
        self.whole.pop_front()
    }

    /// Receives once. The socket may be blocking or not.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut buffer)],
            &mut control,
            receive_flags(),
        )?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                descriptors.extend(passed);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.add(&buffer[..received.bytes], descriptors)
    }

    /// Adds bytes. Their descriptors belong to the line that began last, because the kernel does not read on behind the bytes
    /// that they were sent with.
    fn add(&mut self, bytes: &[u8], descriptors: Vec<OwnedFd>) -> io::Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.whole.push_back(std::mem::take(&mut self.partial));
            }
        }
        let last = match self.whole.back_mut() {
            Some(last) if self.partial.line.is_empty() => last,
            _ => &mut self.partial,
        };
        last.descriptors.extend(descriptors);
        // The other process belongs to the user, but may be anything that has found the socket.
        if last.line.len() > MAX_LINE_BYTES || last.descriptors.len() > MAX_DESCRIPTORS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }
}

/// A descriptor must not reach a server that is started at the same moment.
fn receive_flags() -> RecvFlags {
    #[cfg(target_os = "linux")]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    RecvFlags::empty()
}

/// Returns a message as a line.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a message is plain data");
    line.push(b'\n');
    line
}

/// Sends the beginning of a line with descriptors. Returns the number of bytes that were sent.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, send_flags())?;
    Ok(sent)
}

/// A peer that has gone must not end the process by SIGPIPE.
fn send_flags() -> SendFlags {
    #[cfg(target_os = "linux")]
    return SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    SendFlags::empty()
}

/// The link as the process of a client or a command uses it: blocking, with timeouts.
pub(crate) struct BlockingLink {
    socket: UnixStream,
    inbox: Inbox,
}

impl BlockingLink {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            inbox: Inbox::default(),
        }
    }

    /// Receives the next line. Without a timeout it waits forever.
    pub(crate) fn receive(&mut self, timeout: Option<Duration>) -> Result<Received, LinkError> {
        self.socket.set_read_timeout(timeout)?;
        loop {
            if let Some(received) = self.inbox.take() {
                return Ok(received);
            }
            match self.inbox.receive(self.socket.as_fd()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(closed_or(error)),
            }
        }
    }

    pub(crate) fn send(
        &mut self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(), LinkError> {
        self.socket.set_write_timeout(Some(timeout))?;
        let line = line(message);
        let mut rest = &line[..];
        let mut descriptors = descriptors;
        while !rest.is_empty() {
            match send(self.socket.as_fd(), rest, descriptors) {
                Ok(count) => {
                    rest = &rest[count..];
                    // They went with the first byte. Sent again, the other side would get them twice.
                    descriptors = &[];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns the error of a receive.
pub(crate) fn closed_or(error: io::Error) -> LinkError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => LinkError::Closed,
        io::ErrorKind::InvalidData => LinkError::Malformed,
        _ => LinkError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_descriptor_arrives_with_its_line() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sender = BlockingLink::new(ours);
        let selection = Selection::default();
        let second = Duration::from_secs(1);
        // The lines around it may be read together with it.
        sender.send(&Demand::Status, &[], second).unwrap();
        let stop = Demand::Stop(selection);
        sender.send(&stop, &[writer.as_fd()], second).unwrap();
        sender.send(&Demand::Drain, &[], second).unwrap();
        drop(writer);
        let mut receiver = BlockingLink::new(theirs);
        let first = receiver.receive(None).unwrap();
        assert!(matches!(first.parse(), Ok(Demand::Status)));
        assert!(first.descriptors.is_empty());
        let with_descriptor = receiver.receive(None).unwrap();
        assert!(matches!(with_descriptor.parse(), Ok(Demand::Stop(_))));
        let [passed] = &with_descriptor.descriptors[..] else {
            panic!("one descriptor was sent");
        };
        std::fs::File::from(passed.try_clone().unwrap())
            .write_all(b"x")
            .unwrap();
        let last = receiver.receive(None).unwrap();
        assert!(matches!(last.parse(), Ok(Demand::Drain)));
        assert!(last.descriptors.is_empty());
        drop(with_descriptor);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "x");
    }

    #[test]
    fn a_line_that_does_not_end_is_refused() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let writing = std::thread::spawn(move || {
            let block = vec![b'x'; 64 * 1024];
            while ours.write_all(&block).is_ok() {}
        });
        let mut receiver = BlockingLink::new(theirs);
        assert!(matches!(receiver.receive(None), Err(LinkError::Malformed)));
        drop(receiver);
        writing.join().unwrap();
    }
}
