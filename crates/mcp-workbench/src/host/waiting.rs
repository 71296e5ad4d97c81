//! The process that a client starts: finds the host or starts it, passes stdin and stdout on, and waits for the end. If the
//! host is killed, it starts a new one and passes the journal on, so that the session continues.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    thread::park_timeout,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};
use thiserror::Error;

use super::{
    build::Build,
    launch,
    link::{Attach, BlockingLink, Demand, Greeting, HostAnswer, LINK_VERSION, LinkError},
    place::HostFolder,
};
use crate::{config::Environment, serve::journal::JournalFiles};

/// How long a host that is not busy may take to respond. After that the client is served alone.
const REACH_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a host may take to start, and an established host to load the configuration for a client.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(2);
/// The number of hosts in a row that may end within [`QUICK_END`] after the client was attached.
const MAX_QUICK_ENDS: u32 = 5;
const QUICK_END: Duration = Duration::from_millis(100);

/// Reasons why a client is not attached to a host.
#[derive(Debug, Error)]
pub(crate) enum AttachError {
    #[error("timed out after {} ms waiting for the host to respond", REACH_TIMEOUT.as_millis())]
    Silent,
    #[error("the host uses a different link ({theirs}) than this program ({LINK_VERSION})")]
    OtherLink { theirs: u32 },
    #[error("the host refused: {reason}")]
    Refused { reason: String },
    #[error("the host cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("the host cannot be reached: {0}")]
    NotReached(io::Error),
    #[error("the link to the host failed: {0}")]
    Link(#[from] LinkError),
    #[error("timed out after {} s waiting for the host to accept the client", START_TIMEOUT.as_secs())]
    NotTaken,
    #[error("the host of an older version keeps accepting clients")]
    NotDrained,
    #[error("the host ended {MAX_QUICK_ENDS} times in a row")]
    KeepsEnding,
}

impl AttachError {
    /// Returns whether the host ended before it answered.
    fn is_end_of_host(&self) -> bool {
        let Self::Link(error) = self else {
            return false;
        };
        match error {
            LinkError::Closed => true,
            LinkError::Io(error) => error.kind() == io::ErrorKind::BrokenPipe,
            LinkError::Malformed => false,
        }
    }
}

/// A client that no host serves.
pub(crate) struct NotAttached {
    pub(crate) error: AttachError,
    /// The journal of its last host, if it had one.
    pub(crate) journal: Option<JournalFiles>,
}

/// A connection to a host that has said who it is.
pub(crate) struct Connected {
    pub(crate) link: BlockingLink,
    pub(crate) greeting: Greeting,
}

/// Connects to a socket of a place.
pub(crate) fn connect(place: &HostFolder, socket: &Path) -> Result<Connected, AttachError> {
    ReachTimeout::new(place).connect(socket)
}

/// The time that a host may take to respond. It restarts while the host is busy: many clients may start at the same
/// moment.
struct ReachTimeout<'a> {
    place: &'a HostFolder,
    since: Instant,
    deadline: Instant,
}

impl<'a> ReachTimeout<'a> {
    fn new(place: &'a HostFolder) -> Self {
        let since = Instant::now();
        Self {
            place,
            since,
            deadline: since + REACH_TIMEOUT,
        }
    }

    fn left(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // A socket takes no timeout of zero.
        left.max(RETRY_INTERVAL)
    }

    fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now < self.deadline {
            return false;
        }
        self.deadline = now + REACH_TIMEOUT;
        // A busy host gets another round, for as long as a start may take.
        self.since.elapsed() > START_TIMEOUT || !self.place.is_host_busy()
    }

    /// Connects to a host and waits until it has said who it is.
    fn connect(&mut self, socket: &Path) -> Result<Connected, AttachError> {
        let stream = loop {
            match HostFolder::connect(socket) {
                Err(error) if is_timeout(&error) => {
                    if self.is_over() {
                        return Err(AttachError::Silent);
                    }
                    park_timeout(RETRY_INTERVAL);
                }
                stream => break stream.map_err(AttachError::NotReached)?,
            }
        };
        let mut link = BlockingLink::new(stream);
        loop {
            let greeting = match greeting(&mut link, self.left()) {
                Err(AttachError::Silent) if !self.is_over() => continue,
                // A host that is no longer busy has just said who it is, or never will.
                Err(AttachError::Silent) => greeting(&mut link, RETRY_INTERVAL)?,
                greeting => greeting?,
            };
            return Ok(Connected { link, greeting });
        }
    }
}

impl Connected {
    /// Sends a request and returns the answer.
    pub(crate) fn ask(&mut self, demand: &Demand) -> Result<HostAnswer, LinkError> {
        self.link.send(demand, &[], START_TIMEOUT)?;
        self.link.receive(Some(START_TIMEOUT))?.parse()
    }

    /// Waits until the host has ended, up to a time limit.
    pub(crate) fn wait_for_end(&mut self, limit: Duration) {
        let _ = self.link.receive(Some(limit));
    }
}

fn greeting(link: &mut BlockingLink, limit: Duration) -> Result<Greeting, AttachError> {
    match link.receive(Some(limit)) {
        Ok(received) => Ok(received.parse()?),
        Err(LinkError::Io(error)) if is_timeout(&error) => Err(AttachError::Silent),
        Err(error) => Err(error.into()),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// A process that waits for the host of its client.
pub(crate) struct Waiting {
    pub(crate) place: HostFolder,
    /// The configuration file, as an absolute path.
    pub(crate) config: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) attach: Attach,
    /// Reads the configuration again and returns the context that follows from it; `None` if the file cannot be used.
    pub(crate) describe: Describe,
}

/// Returns the context of a client.
pub(crate) type Describe = Box<dyn Fn() -> Option<Attach>>;

enum LinkEnd {
    /// The client has ended, with the exit code of its process.
    Client(u8),
    Stopped,
    Killed,
}

impl Waiting {
    /// Attaches the client and waits for its end. Returns the exit code.
    pub(crate) fn run(&mut self) -> Result<u8, NotAttached> {
        let mut journal = None;
        let mut quick_ends = 0;
        loop {
            let (since, end) = match self.attach(journal.as_ref()) {
                Ok(mut link) => (Instant::now(), self.wait(&mut link, &mut journal)),
                Err(error) if error.is_end_of_host() => (Instant::now(), LinkEnd::Killed),
                Err(error) => return Err(NotAttached { error, journal }),
            };
            match end {
                LinkEnd::Client(code) => return Ok(code),
                LinkEnd::Stopped => {
                    // The user stopped the host. A new one starts when the client needs it, not before.
                    if !wait_for_input() {
                        return Ok(0);
                    }
                    quick_ends = 0;
                }
                // A host that ends at once, again and again, is broken by its configuration or by this client.
                LinkEnd::Killed if since.elapsed() > QUICK_END => quick_ends = 0,
                LinkEnd::Killed => quick_ends += 1,
            }
            if quick_ends >= MAX_QUICK_ENDS {
                let error = AttachError::KeepsEnding;
                return Err(NotAttached { error, journal });
            }
            self.describe_again();
        }
    }

    /// Waits for the end of the link, and stores the last journal that came over it.
    fn wait(&mut self, link: &mut BlockingLink, journal: &mut Option<JournalFiles>) -> LinkEnd {
        while let Ok(received) = link.receive(None) {
            match received.parse() {
                Ok(HostAnswer::Journal) => {
                    let files = JournalFiles::of(received.descriptors);
                    // The earlier files stay in use if the new ones did not arrive whole.
                    *journal = files.or(journal.take());
                }
                Ok(HostAnswer::Changed) => {
                    self.describe_again();
                    let context = Demand::Context(Box::new(self.attach.clone()));
                    // A host that has gone is noticed by the next receive.
                    let _ = link.send(&context, &[], START_TIMEOUT);
                }
                Ok(HostAnswer::Ended { code }) => return LinkEnd::Client(code),
                Ok(HostAnswer::Stopped) => return LinkEnd::Stopped,
                // A newer host may send more.
                _ => {}
            }
        }
        LinkEnd::Killed
    }

    /// Updates the context of the client: the configuration may name different variables now.
    fn describe_again(&mut self) {
        if let Some(attach) = (self.describe)() {
            self.attach = attach;
        }
    }

    /// Attaches the client to a host, and starts one if there is none.
    fn attach(&self, journal: Option<&JournalFiles>) -> Result<BlockingLink, AttachError> {
        let mut reach = ReachTimeout::new(&self.place);
        let own = &self.attach.build;
        let mut drained = None;
        loop {
            // Each turn attaches the client, asks an older host to drain, starts a host, or waits for what another
            // process has begun. The socket alone says which, so clients that start together need no further
            // agreement.
            match reach.connect(&self.place.socket()) {
                Ok(Connected { link, greeting }) if !greeting.draining => {
                    if greeting.link > LINK_VERSION {
                        return Err(AttachError::OtherLink {
                            theirs: greeting.link,
                        });
                    }
                    // A newer build must not wait for the clients of an older host to end before it is used.
                    if greeting.link == LINK_VERSION && !own.is_newer_than(&greeting.build) {
                        return self.attach_to(link, journal);
                    }
                    // The same host is still there after it was asked to drain.
                    if drained.replace(greeting.pid) == Some(greeting.pid) {
                        return Err(AttachError::NotDrained);
                    }
                    drain(link)?;
                    reach = ReachTimeout::new(&self.place);
                }
                Ok(_) | Err(AttachError::Link(LinkError::Closed)) => {}
                Err(AttachError::NotReached(error)) if is_absent(&error) => {
                    // Only the holder of the lock starts a host, so many clients that start together start one.
                    let lock = self.place.try_lock().map_err(AttachError::NotStarted)?;
                    if let Some(lock) = lock {
                        launch::start(&self.place, &lock, &self.config, &self.environment)
                            .map_err(AttachError::NotStarted)?;
                        reach = ReachTimeout::new(&self.place);
                    }
                }
                Err(error) => return Err(error),
            }
            if reach.is_over() {
                return Err(AttachError::Silent);
            }
            park_timeout(RETRY_INTERVAL);
        }
    }

    /// Passes stdin, stdout and the journal to a host.
    fn attach_to(
        &self,
        link: BlockingLink,
        journal: Option<&JournalFiles>,
    ) -> Result<BlockingLink, AttachError> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let mut descriptors = vec![stdin.as_fd(), stdout.as_fd()];
        descriptors.extend(journal.iter().flat_map(|it| it.descriptors()));
        attach_streams(link, &self.attach, &descriptors)
    }

    /// Attaches a command to the host that runs. Returns the link and the command's end of the stream; `None` if no host takes
    /// clients. No host is started or drained for a command.
    pub(crate) fn attach_command(&self) -> Result<Option<(BlockingLink, UnixStream)>, AttachError> {
        let connected = match connect(&self.place, &self.place.socket()) {
            Err(AttachError::NotReached(error)) if is_absent(&error) => return Ok(None),
            connected => connected?,
        };
        let Connected { link, greeting } = connected;
        if greeting.draining {
            return Ok(None);
        }
        if greeting.link != LINK_VERSION {
            return Err(AttachError::OtherLink {
                theirs: greeting.link,
            });
        }
        // One socket in place of stdin and stdout. The command reads and writes the other end.
        let (ours, theirs) = UnixStream::pair().map_err(AttachError::NotReached)?;
        let stream = theirs.as_fd();
        let link = attach_streams(link, &self.attach, &[stream, stream])?;
        Ok(Some((link, ours)))
    }
}

/// Asks a host to serve a client over these descriptors.
fn attach_streams(
    mut link: BlockingLink,
    attach: &Attach,
    descriptors: &[BorrowedFd<'_>],
) -> Result<BlockingLink, AttachError> {
    let demand = Demand::Attach(Box::new(attach.clone()));
    link.send(&demand, descriptors, START_TIMEOUT)?;
    let answer = match link.receive(Some(START_TIMEOUT)) {
        Err(LinkError::Io(error)) if is_timeout(&error) => return Err(AttachError::NotTaken),
        answer => answer?,
    };
    match answer.parse()? {
        HostAnswer::Attached => Ok(link),
        HostAnswer::Refused { reason } => Err(AttachError::Refused { reason }),
        _ => Err(LinkError::Malformed.into()),
    }
}

/// Asks an older host to take no new clients, and waits until it has released its socket.
fn drain(mut link: BlockingLink) -> Result<(), AttachError> {
    link.send(&Demand::Drain, &[], START_TIMEOUT)?;
    link.receive(Some(START_TIMEOUT))?;
    Ok(())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// Waits until the client writes something. Returns false if it has gone.
fn wait_for_input() -> bool {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    // Not read: the bytes are for the next host.
    while poll(&mut polled, None) == Err(rustix::io::Errno::INTR) {}
    polled[0].revents().contains(PollFlags::IN)
}

impl Attach {
    /// Describes the client of this process. Returns `None` if a part is not UTF-8 text.
    pub(crate) fn of_process(
        config: &Path,
        environment: &Environment,
        fingerprint: String,
    ) -> Option<Self> {
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let variables = environment
            .variables()
            .map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
        Some(Self {
            build: Build::of_process(),
            config: text(config)?,
            fingerprint,
            client: None,
            native: None,
            only: None,
            folder: text(environment.start_directory())?,
            home: match environment.home() {
                Some(home) => Some(text(home)?),
                None => None,
            },
            variables: variables.collect::<Option<_>>()?,
            pid: std::process::id(),
            program: super::status::parent_program(),
        })
    }

    /// Returns the environment of the client.
    pub(crate) fn environment(&self) -> Environment {
        let variables = self.variables.iter();
        Environment::new(
            variables.map(|(name, value)| (name.into(), value.into())),
            self.folder.clone().into(),
            self.home.clone().map(PathBuf::from),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starting_host_gets_more_time() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = [("XDG_RUNTIME_DIR".into(), folder.path().into())];
        let environment = Environment::new(runtime, "/".into(), None);
        let place = HostFolder::of(Path::new("/a.json"), &environment).unwrap();
        let now = Instant::now();
        let long_ago = now.checked_sub(2 * START_TIMEOUT).unwrap();
        let rows = [
            ("", now, false),
            ("not a process\n", now, true),
            ("", long_ago, true),
        ];
        for (owner, since, is_over) in rows {
            std::fs::write(place.folder().join("lock"), owner).unwrap();
            let mut reach = ReachTimeout {
                place: &place,
                since,
                deadline: now,
            };
            assert_eq!(reach.is_over(), is_over, "{owner:?}");
        }
        assert!(!ReachTimeout::new(&place).is_over());
    }
}
