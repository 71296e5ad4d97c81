//! The task of one server: rests until somebody needs it, starts it, serves it, and begins anew. What
//! was asked for meanwhile is never forgotten: it waits for the next start or is refused with the
//! reason.

use std::{collections::VecDeque, sync::Arc};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};

use super::{
    Command, ConnectReply, Phase, QueuedCall, ServerHandle, Status,
    session::{Session, SessionEnd},
    start::{Started, start},
};
use crate::{
    call::Outcome,
    config::Server,
    downstream::{
        error::{CallError, ConnectError},
        listing::ToolList,
        pool::Shutdown,
        process::ProcessTable,
    },
};

/// What all servers of a workbench share.
#[derive(Clone)]
pub(in crate::downstream) struct SupervisorContext {
    pub(in crate::downstream) processes: Arc<ProcessTable>,
    pub(in crate::downstream) shutdown: Arc<Shutdown>,
}

/// The owner of one server.
pub(in crate::downstream) struct Supervisor {
    server: Arc<Server>,
    context: SupervisorContext,
    commands: mpsc::UnboundedReceiver<Command>,
    status: watch::Sender<Status>,
    waiting: Waiting,
}

/// What was asked for while the server was not up.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) connects: Vec<ConnectReply>,
    pub(super) calls: VecDeque<QueuedCall>,
}

impl Waiting {
    pub(super) fn add(&mut self, command: Command) {
        match command {
            Command::Connect(reply) => self.connects.push(reply),
            Command::Call(call) => self.calls.push_back(call),
            Command::Cancel(ticket) => self.calls.retain(|call| call.ticket != ticket),
        }
    }

    fn is_empty(&self) -> bool {
        self.connects.is_empty() && self.calls.is_empty()
    }

    fn refuse(&mut self, error: &Arc<ConnectError>) {
        for reply in self.connects.drain(..) {
            let _ = reply.send(Err(Arc::clone(error)));
        }
        for call in self.calls.drain(..) {
            call.answer(Err(CallError::Connect(Arc::clone(error))));
        }
    }
}

impl Supervisor {
    /// A supervisor, and the way to it.
    pub(in crate::downstream) fn new(
        server: Arc<Server>,
        context: SupervisorContext,
    ) -> (Self, ServerHandle) {
        let (commands, requested) = mpsc::unbounded_channel();
        let (status, known) = watch::channel(Status::default());
        let supervisor = Self {
            server,
            context,
            commands: requested,
            status,
            waiting: Waiting::default(),
        };
        let handle = ServerHandle {
            commands,
            status: known,
            tickets: Arc::default(),
        };
        (supervisor, handle)
    }

    /// Runs until the workbench ends.
    pub(in crate::downstream) async fn run(mut self) {
        while self.is_needed().await {
            self.set_phase(Phase::Starting);
            match self.start().await {
                Ok(started) => self.serve(started).await,
                Err(error) => {
                    tracing::warn!("not started: {error}");
                    let error = Arc::new(error);
                    self.set_phase(Phase::Failed(Arc::clone(&error)));
                    self.waiting.refuse(&error);
                }
            }
        }
        self.waiting.refuse(&Arc::new(ConnectError::ShuttingDown));
    }

    /// Waits until somebody needs the server; false if nobody will any more.
    async fn is_needed(&mut self) -> bool {
        while self.waiting.is_empty() {
            let command = tokio::select! {
                command = self.commands.recv() => command,
                () = self.context.shutdown.begun() => None,
            };
            match command {
                Some(command) => self.waiting.add(command),
                None => return false,
            }
        }
        !self.context.shutdown.has_begun()
    }

    async fn start(&mut self) -> Result<Started, ConnectError> {
        let limit = self.server.times.connect;
        let started = timeout(limit, start(&self.server, &self.context.processes));
        tokio::pin!(started);
        loop {
            tokio::select! {
                started = &mut started => {
                    return started.unwrap_or(Err(ConnectError::Timeout(limit)));
                }
                Some(command) = self.commands.recv() => self.waiting.add(command),
                () = self.context.shutdown.begun() => return Err(ConnectError::ShuttingDown),
            }
        }
    }

    /// Serves the server until it ends or is ended.
    async fn serve(&mut self, started: Started) {
        let tools = self.publish_up(started.tools);
        for reply in self.waiting.connects.drain(..) {
            let _ = reply.send(Ok(Arc::clone(&tools)));
        }
        let mut session = Session::new(&self.server, started.link, started.next_id);
        for call in self.waiting.calls.drain(..) {
            session.take_call(call, &tools);
        }
        let end = session
            .run(&mut self.commands, &self.status, &self.context.shutdown)
            .await;
        match end {
            SessionEnd::Exited(exit) => {
                let stderr = session.stderr_tail().await;
                tracing::info!("{exit}");
                session.fail_sent(|| CallError::Exited {
                    exit,
                    stderr: stderr.clone(),
                });
            }
            SessionEnd::Idle => tracing::info!("stopped: nobody used it"),
            SessionEnd::Shutdown(since) => {
                session.closing_since(since);
                session.fail_sent(|| CallError::ShuttingDown {
                    outcome: Outcome::Unknown,
                });
            }
        }
        self.set_phase(Phase::Resting);
        self.waiting = session.into_waiting();
    }

    /// Publishes the list of a server that came up; one that is equal to the last keeps its identity.
    fn publish_up(&self, tools: ToolList) -> Arc<ToolList> {
        let known = self.status.borrow().tools.clone();
        let tools = match known {
            Some(known) if *known == tools => known,
            _ => Arc::new(tools),
        };
        self.status.send_replace(Status {
            phase: Phase::Up,
            tools: Some(Arc::clone(&tools)),
            stale: false,
        });
        tools
    }

    fn set_phase(&self, phase: Phase) {
        self.status.send_modify(|status| {
            status.phase = phase;
            status.stale = false;
        });
    }
}

/// The earliest of the moments that are there; for ever if none is.
pub(super) async fn earliest(moments: [Option<Instant>; 3]) {
    match moments.into_iter().flatten().min() {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
