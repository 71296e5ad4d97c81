//! The process that a client starts: finds the host or starts it, passes stdin and stdout on, and waits for the end. If the
//! host is killed, it starts a new one and passes the journal on, so that the session continues.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    thread::park_timeout,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};
use thiserror::Error;

use super::{
    build::Build,
    launch,
    link::{Attach, BlockingLink, Demand, Greeting, HostAnswer, LINK_VERSION, LinkError},
    place::Place,
};
use crate::config::Environment;

/// How long a host may take to be reached. After that the client is served alone.
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
    #[error("the host did not respond within {} ms", REACH_TIMEOUT.as_millis())]
    Silent,
    #[error("the host uses a newer link ({theirs}) than this program ({LINK_VERSION})")]
    NewerLink { theirs: u32 },
    #[error("the host refused: {reason}")]
    Refused { reason: String },
    #[error("the host cannot be started: {0}")]
    NotStarted(io::Error),
    #[error("the host cannot be reached: {0}")]
    NotReached(io::Error),
    #[error("the link to the host failed: {0}")]
    Link(#[from] LinkError),
    #[error("the host ended {MAX_QUICK_ENDS} times in a row")]
    KeepsEnding,
}

/// A connection to a host that has said who it is.
pub(crate) struct Connected {
    pub(crate) link: BlockingLink,
    pub(crate) greeting: Greeting,
}

/// Connects to the socket of a host.
pub(crate) fn connect(socket: &std::path::Path) -> Result<Connected, AttachError> {
    let stream = Place::connect(socket).map_err(AttachError::NotReached)?;
    let mut link = BlockingLink::new(stream);
    let greeting = greeting(&mut link, REACH_TIMEOUT)?;
    Ok(Connected { link, greeting })
}

impl Connected {
    /// Sends a request and returns the answer.
    pub(crate) fn ask(&mut self, demand: &Demand) -> Result<HostAnswer, LinkError> {
        self.link.send(demand, &[], START_TIMEOUT)?;
        self.link.receive(Some(START_TIMEOUT))?.parse()
    }

    /// Waits until the host has ended, at most so long.
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
    pub(crate) place: Place,
    /// The configuration file, as an absolute path.
    pub(crate) config: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) attach: Attach,
}

/// The end of a link.
enum LinkEnd {
    /// The client has ended, with the exit code of its process.
    Client(u8),
    /// The host was stopped.
    Stopped,
    /// The host was killed.
    Killed,
}

impl Waiting {
    /// Attaches the client and waits for its end. Returns the exit code. An error means that the client was never attached,
    /// unless `has_begun` is set.
    pub(crate) fn run(&self, has_begun: &mut bool) -> Result<u8, AttachError> {
        let mut journal = None;
        let mut quick_ends = 0;
        loop {
            let mut link = self.attach(journal.as_ref())?;
            *has_begun = true;
            let since = Instant::now();
            match wait(&mut link, &mut journal) {
                LinkEnd::Client(code) => return Ok(code),
                LinkEnd::Stopped => {
                    if !wait_for_input() {
                        return Ok(0);
                    }
                    quick_ends = 0;
                }
                LinkEnd::Killed if since.elapsed() > QUICK_END => quick_ends = 0,
                LinkEnd::Killed => quick_ends += 1,
            }
            if quick_ends >= MAX_QUICK_ENDS {
                return Err(AttachError::KeepsEnding);
            }
        }
    }

    /// Attaches the client to a host, and starts one if there is none.
    fn attach(&self, journal: Option<&File>) -> Result<BlockingLink, AttachError> {
        let mut deadline = Instant::now() + REACH_TIMEOUT;
        let own = &self.attach.build;
        loop {
            match self.reach(deadline) {
                Ok(Connected { link, greeting }) if !greeting.draining => {
                    if greeting.link > LINK_VERSION {
                        return Err(AttachError::NewerLink {
                            theirs: greeting.link,
                        });
                    }
                    if greeting.link == LINK_VERSION && !own.is_newer_than(&greeting.build) {
                        return self.attach_to(link, journal);
                    }
                    drain(link)?;
                    deadline = Instant::now() + REACH_TIMEOUT;
                }
                Ok(_) | Err(AttachError::Link(LinkError::Closed)) => {}
                Err(AttachError::NotReached(error)) if is_absent(&error) => {
                    let lock = self.place.try_lock().map_err(AttachError::NotStarted)?;
                    if let Some(lock) = lock {
                        launch::start(&self.place, &lock, &self.config, &self.environment)
                            .map_err(AttachError::NotStarted)?;
                        deadline = Instant::now() + START_TIMEOUT;
                    }
                }
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Err(AttachError::Silent);
            }
            park_timeout(RETRY_INTERVAL);
        }
    }

    /// Connects to the host. A host that is starting gets more time than one that is up.
    fn reach(&self, deadline: Instant) -> Result<Connected, AttachError> {
        let stream = Place::connect(&self.place.socket()).map_err(AttachError::NotReached)?;
        let mut link = BlockingLink::new(stream);
        let left = deadline.saturating_duration_since(Instant::now());
        let greeted = match greeting(&mut link, left.max(RETRY_INTERVAL)) {
            Err(AttachError::Silent) if self.place.is_starting() => {
                greeting(&mut link, START_TIMEOUT)
            }
            greeted => greeted,
        };
        Ok(Connected {
            greeting: greeted?,
            link,
        })
    }

    /// Passes stdin, stdout and the journal to a host.
    fn attach_to(
        &self,
        mut link: BlockingLink,
        journal: Option<&File>,
    ) -> Result<BlockingLink, AttachError> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let mut descriptors = vec![stdin.as_fd(), stdout.as_fd()];
        descriptors.extend(journal.map(AsFd::as_fd));
        let demand = Demand::Attach(Box::new(self.attach.clone()));
        link.send(&demand, &descriptors, START_TIMEOUT)?;
        match link.receive(Some(START_TIMEOUT))?.parse()? {
            HostAnswer::Attached => Ok(link),
            HostAnswer::Refused { reason } => Err(AttachError::Refused { reason }),
            _ => Err(LinkError::Malformed.into()),
        }
    }
}

/// Asks an older host to take no new clients, and waits until it has given up its socket.
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

/// Waits for the end of the link, and keeps the last journal that came over it.
fn wait(link: &mut BlockingLink, journal: &mut Option<File>) -> LinkEnd {
    while let Ok(mut received) = link.receive(None) {
        match received.parse() {
            Ok(HostAnswer::Journal) => {
                let file: Option<OwnedFd> = received.descriptors.pop();
                *journal = file.map(File::from).or(journal.take());
            }
            Ok(HostAnswer::Ended { code }) => return LinkEnd::Client(code),
            Ok(HostAnswer::Stopped) => return LinkEnd::Stopped,
            // A newer host may send more.
            _ => {}
        }
    }
    LinkEnd::Killed
}

/// Waits until the client writes something. Returns false if it has gone.
fn wait_for_input() -> bool {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    while poll(&mut polled, None) == Err(rustix::io::Errno::INTR) {}
    polled[0].revents().contains(PollFlags::IN)
}

impl Attach {
    /// Describes the client of this process. Returns `None` if a part is not UTF-8 text.
    pub(crate) fn of_process(
        config: &std::path::Path,
        environment: &Environment,
        fingerprint: String,
        native: Option<String>,
    ) -> Option<Self> {
        let text = |path: &std::path::Path| path.to_str().map(str::to_owned);
        let variables = environment
            .variables()
            .map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
        Some(Self {
            build: Build::of_process(),
            config: text(config)?,
            fingerprint,
            native,
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
