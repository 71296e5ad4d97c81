//! The turns of a session: one for each thing that happens, with all that has come together with it. What is
//! said to the server in a turn is written at its end, in one piece.

use tokio::{sync::mpsc, time::Instant};

use crate::{
    alarm::Alarm,
    downstream::{
        asks::users::wait_for_room,
        error::GiveUp,
        link::LinkEvent,
        server::Command,
        session::{Session, SessionEnd, Surroundings, pending::Asked},
    },
    era::Era,
    wire::ObjectText,
};

impl Session {
    /// Serves until the end.
    pub(crate) async fn run(
        &mut self,
        commands: &mut mpsc::UnboundedReceiver<Command>,
        surroundings: &Surroundings<'_>,
    ) -> SessionEnd {
        let mut alarm = Alarm::default();
        let shutdown = surroundings.shutdown.begun();
        tokio::pin!(shutdown);
        loop {
            if self.is_replaced() {
                return SessionEnd::Replaced;
            }
            self.release_held();
            if self.is_replaced() {
                return SessionEnd::Replaced;
            }
            if let Some(fault) = self.lost.take() {
                return SessionEnd::Lost(fault);
            }
            let held_up = self.users.held_up();
            // A server is not blamed for the time in which nobody listens to it.
            let due = held_up.is_none().then(|| self.due()).flatten();
            tokio::select! {
                () = wait_for_room(held_up.as_ref()), if held_up.is_some() => {
                    self.health.excuse(Instant::now());
                    self.link.excuse_stall();
                }
                event = self.link.next_event(), if held_up.is_none() => {
                    if let Some(end) = self.take_events(event, surroundings) {
                        return end;
                    }
                }
                command = commands.recv() => match command {
                    Some(command) => self.take_commands(command, commands, surroundings),
                    None => return SessionEnd::Retired,
                },
                (answer, client) = self.asks.next_answer() => {
                    self.link.send(answer);
                    self.close_question(client);
                }
                () = alarm.wait(due) => if let Some(end) = self.take_time(surroundings) {
                    return end;
                },
                () = &mut shutdown => {
                    return SessionEnd::Shutdown(surroundings.shutdown.since());
                }
            }
        }
    }

    /// Takes what has happened, and everything that was read together with it.
    fn take_events(
        &mut self,
        first: LinkEvent,
        surroundings: &Surroundings<'_>,
    ) -> Option<SessionEnd> {
        self.calls.begin_turn();
        let mut next = Some(first);
        while let Some(event) = next {
            match event {
                LinkEvent::Ended(exit) => return Some(SessionEnd::Exited(exit)),
                LinkEvent::Lost(fault) => return Some(SessionEnd::Lost(fault)),
                LinkEvent::Nonsense => return Some(SessionEnd::GivenUp(GiveUp::Nonsense)),
                event => self.take_event(event, surroundings),
            }
            next = self.link.ready_event();
        }
        None
    }

    /// Takes a command, and all that wait behind it.
    fn take_commands(
        &mut self,
        first: Command,
        others: &mut mpsc::UnboundedReceiver<Command>,
        surroundings: &Surroundings<'_>,
    ) {
        self.calls.begin_turn();
        let mut next = Some(first);
        while let Some(command) = next {
            self.take_command(command, surroundings.status);
            next = others.try_recv().ok();
        }
    }

    /// When something is to be done without being asked.
    fn due(&self) -> Option<Instant> {
        let moments = [
            self.calls.due(),
            self.refresh.due(),
            self.health.due(),
            self.link.stalls_at(),
            self.subscription.due(),
            self.held.due(),
            self.idle_at(),
        ];
        moments.into_iter().flatten().min()
    }

    fn take_time(&mut self, surroundings: &Surroundings<'_>) -> Option<SessionEnd> {
        self.calls.begin_turn();
        let now = self.calls.now();
        let status = surroundings.status;
        if let Some((page, outcome)) = self.refresh.give_up_if_due(now, status) {
            page.into_iter().for_each(|id| self.calls.forget(id));
            self.settle_page(outcome);
        }
        self.calls.release_progress(now);
        let timeouts = self.calls.expire(now, &mut self.link);
        if timeouts > 0 && self.health.timed_out(timeouts, now) {
            let nothing = ObjectText::new().finish();
            let method = match self.calls.era() {
                Era::Legacy => "ping",
                Era::Modern => "server/discover",
            };
            self.calls
                .ask(&mut self.link, Asked::Ping, method, &nothing);
        }
        if self.subscription.due().is_some_and(|due| due <= now) {
            self.listen_again(surroundings);
        }
        if let Some(params) = self.refresh.begin_if_due(now) {
            self.request_page(&params);
        }
        let stalled = self.link.stalls_at().is_some_and(|at| at <= now);
        let given_up = self
            .health
            .verdict(self.link.oversized_bytes(), now)
            .or(stalled.then_some(GiveUp::NotReading));
        let idle = self.idle_at().is_some_and(|idle| idle <= now);
        given_up
            .map(SessionEnd::GivenUp)
            .or(idle.then_some(SessionEnd::Idle))
    }
}
