//! The task of one server: waits until it is needed, starts it, serves it, and starts over when it ends. Commands
//! that arrive meanwhile are never lost: they wait for the next start or are refused with the reason.

pub(crate) mod adapt;
pub(crate) mod cached_list;
pub(crate) mod limiter;
pub(crate) mod pinning;
pub(crate) mod start;
pub(crate) mod waiting;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ident::{ServerIdentifier, ToolboxName};
use tokio::{
    sync::{broadcast, mpsc, watch},
    time::Instant,
};

use crate::{
    alarm::timeout,
    contain::{Panicked, contain},
    downstream::{
        deferred_writes::DeferredWrites,
        error::{CallError, ConnectError},
        event::{Change, EventSource, ServerEvent},
        instances::Instances,
        introduction::ServerFamily,
        link::LinkContext,
        listing::{Cause, ToolList},
        oauth::ServerOAuth,
        pool::Shutdown,
        server::{About, Command, Phase, ServerHandle, Status},
        session::{Session, SessionContext, SessionEnd, hops},
        stray::StrayText,
        supervisor::{
            adapt::{Entry, EntryChange},
            cached_list::{CacheWriter, CachedList},
            limiter::{StartLimiter, Verdict},
            pinning::record_later,
            start::{KnownProtocol, Started, start},
            waiting::WaitingCommands,
        },
        tool_cache::ToolCache,
    },
    events::{EndedSession, Event, Events, Peer, ServerChange, ServerPhase, Side, TrustChange},
    lock::{Pins, ServerPins},
    seal::Sealer,
    store::Store,
};

/// The number of servers created in this process.
static SERVERS: AtomicU64 = AtomicU64::new(0);

/// The parts of the workbench that all servers share.
#[derive(Clone)]
pub(crate) struct SupervisorContext {
    pub(crate) links: LinkContext,
    pub(crate) shutdown: Arc<Shutdown>,
    /// The channel for events that concern all clients.
    pub(crate) events: broadcast::Sender<ServerEvent>,
    pub(crate) observed: Arc<Events>,
    pub(crate) tool_cache: Arc<ToolCache>,
    /// Seals task names.
    pub(crate) sealer: Sealer,
    /// The store that replicas share.
    pub(crate) store: Option<Store>,
    pub(crate) pins: Arc<Pins>,
    pub(crate) deferred_writes: Arc<DeferredWrites>,
    /// The servers of all clients of this process.
    pub(crate) instances: Arc<Instances>,
}

/// The task that owns one server.
pub(crate) struct Supervisor {
    about: Arc<About>,
    context: SupervisorContext,
    commands: mpsc::UnboundedReceiver<Command>,
    status: watch::Sender<Status>,
    waiting: WaitingCommands,
    limiter: StartLimiter,
    protocol: KnownProtocol,
    /// The change of the entry during a start.
    adapted: Option<EntryChange>,
}

impl Supervisor {
    /// Creates a supervisor and the handle to it. The task ends when the last handle is dropped.
    pub(crate) fn new(
        toolbox: &ToolboxName,
        entry: Entry,
        known: Status,
        context: SupervisorContext,
    ) -> (Self, ServerHandle) {
        let (commands, requested) = mpsc::unbounded_channel();
        let (status, known) = watch::channel(known);
        let identifier = ServerIdentifier {
            toolbox: toolbox.clone(),
            server: entry.server.name.clone(),
        };
        let pins = ServerPins::at_rest(Arc::clone(&context.pins), identifier.clone());
        let about = Arc::new(About {
            tickets: AtomicU64::new(0),
            identifier,
            entry: Mutex::new(Arc::new(entry)),
            asks_back: AtomicBool::new(false),
            cached_list: CachedList::new(Arc::clone(&context.tool_cache), pins),
            sealer: context.sealer.clone(),
            oauth: ServerOAuth::default(),
            open_wait: Mutex::default(),
            stray: StrayText::default(),
            activity: Mutex::default(),
            process: Mutex::default(),
            number: SERVERS.fetch_add(1, Ordering::Relaxed),
            observed: Arc::clone(&context.observed),
        });
        let supervisor = Self {
            about: Arc::clone(&about),
            context,
            commands: requested,
            status,
            waiting: WaitingCommands::default(),
            limiter: StartLimiter::default(),
            protocol: KnownProtocol::default(),
            adapted: None,
        };
        let handle = ServerHandle {
            commands,
            status: known,
            about,
        };
        (supervisor, handle)
    }

    /// Runs until the workbench ends or the server is retired.
    pub(crate) async fn run(mut self) {
        while let Some(need) = self.next_action().await {
            match need {
                NextAction::Start => {
                    if let Err(Panicked) = contain(Box::pin(self.start_and_serve())).await {
                        // The session was dropped by the panic, and its callers got an error.
                        self.fail(ConnectError::Internal);
                    }
                }
                NextAction::Refuse(error) => self.waiting.refuse(&Arc::new(error)),
            }
        }
        // From here on no command can be added, so the loop takes all of them and none waits forever.
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            self.waiting.add(command);
        }
        self.waiting.refuse(&Arc::new(ConnectError::ShuttingDown));
        // Handles may live longer than the task.
        self.about.oauth.end();
    }

    /// Waits until the server is needed and may be started; returns `None` if that can no longer happen.
    async fn next_action(&mut self) -> Option<NextAction> {
        loop {
            let now = Instant::now();
            let pause = match self.limiter.verdict(now) {
                // First, because a waiting call must not start a server during the shutdown.
                _ if self.context.shutdown.has_begun() => return None,
                _ if self.waiting.is_empty() => None,
                // A call waits out the back-off. Somebody who asks for the server itself does not.
                Verdict::NotBefore(moment) if !self.waiting.is_asked_for() => Some(moment),
                Verdict::Now | Verdict::NotBefore(_) => return Some(NextAction::Start),
                Verdict::Refused(until) => {
                    return Some(NextAction::Refuse(self.unavailable(until - now)));
                }
            };
            tokio::select! {
                command = self.commands.recv() => self.take(command?),
                () = sleep_until(pause), if pause.is_some() => {}
                () = self.context.shutdown.begun() => return None,
            }
        }
    }

    fn take(&mut self, command: Command) {
        // The change itself is applied at the next start. But the tools of a resting server are still shown and
        // searched.
        let is_outdated = match &command {
            Command::Adapt(adaption) => adaption.narrow(&self.status),
            Command::Recheck => true,
            _ => false,
        };
        if is_outdated {
            self.outdate();
        }
        self.waiting.add(command);
    }

    fn unavailable(&self, retry_after: Duration) -> ConnectError {
        let last = match &self.status.borrow().phase {
            Phase::Failed(error) => Arc::clone(error),
            _ => Arc::new(ConnectError::Internal),
        };
        ConnectError::Unavailable {
            failures: StartLimiter::FAILURES,
            last,
            retry_after,
        }
    }

    async fn start_and_serve(&mut self) {
        self.set_phase(Phase::Starting);
        let mut started = self.start().await;
        // Two launchers of one package can race when they first download it; the second attempt succeeds.
        if matches!(&started, Err(error) if error.is_silent_exit()) {
            started = self.start().await;
        }
        match started {
            Ok(started) => {
                self.limiter.succeeded();
                self.serve(started).await;
            }
            // No caller is left.
            Err(ConnectError::Retired) => {}
            Err(error) => self.fail(error),
        }
    }

    /// Records the failed start and refuses the waiting callers.
    fn fail(&mut self, error: ConnectError) {
        tracing::warn!("failed to start: {error}");
        if error.is_failed_start() {
            self.limiter.failed(Instant::now());
            // A wrong protocol may be the reason.
            if self.protocol.forget() {
                let cache = Arc::clone(&self.context.tool_cache);
                let (about, server) = (Arc::clone(&self.about), self.about.entry());
                self.context.deferred_writes.add(move || {
                    cache.forget_protocol(&server.server, about.oauth.grant().as_deref());
                });
            }
        }
        let error = Arc::new(error);
        self.set_phase(Phase::Failed(Arc::clone(&error)));
        self.waiting.refuse(&error);
    }

    async fn start(&mut self) -> Result<Started, ConnectError> {
        let entry = self.about.entry();
        // Earlier changes are part of the entry.
        self.adapted = None;
        let limit = entry.server.times.connect;
        let client = self.waiting.client();
        let started = start(
            &entry,
            &self.context,
            &self.about,
            client.as_ref(),
            &mut self.protocol,
        );
        let started = timeout(limit, started);
        // Commands are taken during the start. They wait for its end, change the entry, or stop it.
        tokio::pin!(started);
        loop {
            tokio::select! {
                started = &mut started => {
                    return started.unwrap_or(Err(ConnectError::Timeout(limit)));
                }
                command = self.commands.recv() => match command {
                    // A caller that waits for the start holds a handle, so there is none.
                    None => return Err(ConnectError::Retired),
                    Some(Command::Adapt(adaption)) => {
                        self.adapted = Some(adaption.after(self.adapted.take()));
                    }
                    Some(Command::Stop) => return Err(ConnectError::Stopped),
                    Some(command) => self.waiting.add(command),
                },
                () = self.context.shutdown.begun() => return Err(ConnectError::ShuttingDown),
            }
        }
    }

    /// Serves the server until it ends or is stopped.
    async fn serve(&mut self, mut started: Started) {
        let client = self.waiting.client();
        // Before the new list replaces it.
        let known = self.status.borrow().tools.clone();
        let tools = self.publish_up(&mut started);
        record_later(&self.context);
        // After the list is published, because these callers read the status next.
        self.waiting.tell(&tools);
        let resubscriptions = std::mem::take(&mut self.waiting.resubscriptions);
        let entry = self.about.entry();
        let protocol = self.protocol.get().cloned();
        let cache_writer = CacheWriter::new(&self.about, &self.context, protocol);
        cache_writer.write(&entry.server, &started.snapshot, &started.link.secrets());
        let measured = self.about.observed.begin_session();
        let peer = hops::peer(
            &self.about,
            started.snapshot.era,
            &started.link,
            Some(&tools),
        );
        let mut session = Session::new(
            &self.about,
            started,
            client,
            resubscriptions,
            self.status.subscribe(),
        );
        // The configuration changed during the start, which used the earlier entry.
        if let Some(adaption) = self.adapted.take() {
            adapt::adapt(&mut session, &adaption, &self.status);
        }
        // After the change, so that no call is checked against the earlier entry.
        for call in self.waiting.calls.drain(..) {
            session.take_call(call);
        }
        let tell = |change| {
            // Without subscribers the event is dropped.
            let _ = self.context.events.send(ServerEvent {
                source: EventSource::Server(self.about.number),
                server: self.about.identifier.clone(),
                change,
            });
        };
        // Clients may have listed prompts and resources of the earlier process.
        known
            .iter()
            .flat_map(|known| changes_of_restart(known, &tools))
            .for_each(tell);
        let context = SessionContext {
            status: &self.status,
            shutdown: &self.context.shutdown,
            tell: &tell,
            cache_writer: &cache_writer,
        };
        self.about.record_start();
        let end = session.run(&mut self.commands, &context).await;
        self.about.record_end();
        measured.end(|duration| ended_session(peer, &end, duration));
        // Calls that the session could not send wait for the next start.
        self.waiting = end_session(session, end).await;
        self.set_phase(Phase::Resting);
    }

    /// Publishes the list of a server that came up. A list that equals the last one is not replaced.
    fn publish_up(&self, started: &mut Started) -> Arc<ToolList> {
        let tools = std::mem::take(&mut started.tools);
        let known = self.status.borrow().tools.clone();
        // At the first start of this run the cached list is the earlier one.
        let known = known.or_else(|| self.about.cached_list.get());
        let tools = match &known {
            Some(known) => tools.after(known, &self.about.entry().server.permissions),
            None => tools,
        };
        let tools = match known {
            Some(known) if *known == tools => known,
            _ => Arc::new(tools),
        };
        self.report(&Phase::Up);
        report_trust(&self.about, &tools, 0);
        self.status.send_replace(Status {
            phase: Phase::Up,
            tools: Some(Arc::clone(&tools)),
            stale: false,
            from_cache: false,
        });
        tools
    }

    /// Marks the list as stale, so that it is not shown before the server has listed its tools again. Unapproved tools
    /// are removed at once.
    fn outdate(&self) {
        let entry = self.about.entry();
        self.status.send_modify(|status| {
            status.stale = status.tools.is_some();
            let tools = status.tools.take();
            status.tools = tools.map(|tools| self.about.cached_list.ruled(&entry.server, &tools));
        });
    }

    fn set_phase(&self, phase: Phase) {
        self.report(&phase);
        self.status.send_modify(|status| status.phase = phase);
    }

    /// Reports a phase to the event stream.
    fn report(&self, phase: &Phase) {
        let change = || ServerChange {
            server: self.about.identifier.clone(),
            phase: match phase {
                Phase::Starting => ServerPhase::Starting,
                Phase::Up => ServerPhase::Up,
                Phase::Untried | Phase::Resting => ServerPhase::Resting,
                Phase::Failed(_) => ServerPhase::Failed,
            },
            reason: match phase {
                Phase::Failed(error) => Some(error.to_string()),
                _ => None,
            },
        };
        let observed = &self.about.observed;
        observed.emit_with(|| Event::Server(change()));
    }
}

/// Returns the lists that may have changed during a restart: those that the server had before, or has now.
fn changes_of_restart(before: &ToolList, now: &ToolList) -> impl Iterator<Item = Change> {
    let families = [
        (ServerFamily::Prompts, Change::Prompts),
        (ServerFamily::Resources, Change::Resources),
    ];
    let had = families.map(|(family, change)| {
        let is_declared = before.introduction.has(family) || now.introduction.has(family);
        is_declared.then_some(change)
    });
    had.into_iter().flatten()
}

/// Returns the number of tools that wait for an approval.
pub(crate) fn unapproved(tools: &ToolList) -> usize {
    let withheld = tools.withheld.iter();
    withheld.filter(|it| it.cause == Cause::NotApproved).count()
}

/// Reports to the event stream that a list differs from the lock file, or that the tools that were withheld before are
/// approved.
pub(crate) fn report_trust(about: &About, tools: &ToolList, withheld_before: usize) {
    let withheld = unapproved(tools);
    if withheld == 0 && withheld_before == 0 && tools.notices.is_empty() {
        return;
    }
    let change = || TrustChange {
        server: about.identifier.clone(),
        withheld,
        notices: tools.notices.clone(),
    };
    about.observed.emit_with(|| Event::Trust(change()));
}

/// Returns the session with a server that has ended, for the event stream.
fn ended_session(peer: Peer, end: &SessionEnd, duration: Duration) -> EndedSession {
    EndedSession {
        side: Side::Server,
        era: peer.era,
        carrier: peer.carrier,
        revision: peer.revision,
        server: Some(peer.server),
        address: peer.address,
        duration,
        error: end.error_type(),
    }
}

/// Fails the calls that reached the server; returns those that wait for the next start.
async fn end_session(mut session: Session, end: SessionEnd) -> WaitingCommands {
    match end {
        SessionEnd::Exited(exit) => {
            tracing::info!("{exit}");
            let stderr = session.stderr_tail().await;
            session.end(|outcome| CallError::Exited {
                exit,
                stderr: stderr.clone(),
                outcome,
            })
        }
        SessionEnd::Lost(fault) => {
            tracing::info!("{fault}");
            session.end(|outcome| CallError::Http {
                fault: Box::new(fault.clone()),
                outcome,
            })
        }
        SessionEnd::GivenUp(why) => {
            tracing::warn!("stopping the server: it {why}");
            let stderr = session.stderr_tail().await;
            session.end(|outcome| CallError::GivenUp {
                why,
                stderr: stderr.clone(),
                outcome,
            })
        }
        // An idle server has no calls, so nobody sees this error.
        SessionEnd::Idle => {
            tracing::info!("stopped because it was idle");
            session.end(|_| CallError::Internal)
        }
        SessionEnd::Stopped => {
            tracing::info!("stopped by a command");
            session.end(|outcome| CallError::Stopped { outcome })
        }
        // The last handle is gone, and every caller has one.
        SessionEnd::Retired => {
            tracing::info!("stopped because its configuration changed");
            session.end(|_| CallError::Internal)
        }
        // The session waited until no call was left.
        SessionEnd::Replaced => {
            tracing::info!("protocol version changed; reconnecting");
            session.end(|_| CallError::Internal)
        }
        SessionEnd::Shutdown(since) => {
            session.closing_since(since);
            session.end(|outcome| CallError::ShuttingDown { outcome })
        }
    }
}

/// The next action of the task.
enum NextAction {
    Start,
    /// Refuse the waiting callers, because the server must not be started.
    Refuse(ConnectError),
}

/// Sleeps until a moment; forever if there is none.
async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
