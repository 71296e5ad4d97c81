//! Connects to the servers of a toolbox while it is opened, and decides how long to wait for each of them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ident::ServerName;
use tokio::{task::JoinSet, time::Instant};

use super::{contents::Contents, opened::ServerFailure};
use crate::{
    alarm::timeout_at,
    call::ClientHandle,
    config::Connect,
    downstream::{
        ConnectError, OpenWait, Phase, ServerHandle, Status, ToolList, Urgency, load_cached_lists,
    },
};

/// The longest wait for a server that no open has waited for before. Most clients give up after a minute.
const MAX_WAIT: Duration = Duration::from_secs(45);

/// The wait for a server that an earlier open has reported as failed or still starting.
const RETRY_WAIT: Duration = Duration::from_secs(2);

/// The tools of a server, or the reason why it is not up.
type Answer = Result<Arc<ToolList>, Arc<ConnectError>>;

/// The servers of a toolbox when an open stopped waiting for them.
pub(super) struct ConnectOutcome {
    /// The tools of those that are up, in the order of the file.
    pub(super) catalogue: Vec<(ServerName, Arc<ToolList>)>,
    pub(super) failures: Vec<ServerFailure>,
}

/// Connects to all servers at once. Waits until each is up or has failed, but no longer than `open_wait` once one is up.
/// Servers that are not up by then keep starting.
pub(super) async fn connect_all(
    contents: &Contents,
    client: &Arc<dyn ClientHandle>,
    open_wait: Duration,
) -> ConnectOutcome {
    if contents.config.connect == Connect::OnUse {
        let servers = contents.servers().values().map(Arc::as_ref);
        let untried = servers.filter(|it| it.inspect(|status| is_untried(&status.phase)));
        load_cached_lists(untried).await;
    }
    let mut connecting = Connecting::begin(contents, client, open_wait);
    connecting.wait().await;
    connecting.finish(contents)
}

struct Connecting {
    begun: Instant,
    open_wait: Duration,
    /// The answer of each server, in the order of the file. A pending server has the answer that is reported if it is
    /// not up in time.
    answers: Vec<Answer>,
    requests: JoinSet<(usize, Answer)>,
    /// The servers without an answer, with the time since which opens wait for them; `None` if an earlier open
    /// already gave up on it.
    pending: HashMap<usize, Option<Instant>>,
    /// The time at which the first server was up.
    first_up: Option<Instant>,
}

impl Connecting {
    fn begin(contents: &Contents, client: &Arc<dyn ClientHandle>, open_wait: Duration) -> Self {
        let mut connecting = Self {
            begun: Instant::now(),
            open_wait,
            answers: Vec::new(),
            requests: JoinSet::new(),
            pending: HashMap::new(),
            first_up: None,
        };
        let connect = contents.config.connect;
        for (number, server) in contents.servers().values().enumerate() {
            let answer = match known_tools(server, connect) {
                Some(tools) => Ok(tools),
                None => Err(connecting.ask(number, server, client)),
            };
            connecting.answers.push(answer);
        }
        if connecting.answers.iter().any(Result::is_ok) {
            // A server whose tools were known has been up for at least as long as the opens wait for the others.
            let waits = connecting.pending.values().flatten();
            connecting.first_up = waits.min().copied().or(Some(connecting.begun));
        }
        connecting
    }

    /// Asks a server to start. Returns the answer that is reported if it is not up in time.
    fn ask(
        &mut self,
        number: usize,
        server: &ServerHandle,
        client: &Arc<dyn ClientHandle>,
    ) -> Arc<ConnectError> {
        let since = server.open_wait_since(self.begun);
        // A retry respects the back-off: an open must not be a way around it.
        let urgency = match since {
            Some(_) => Urgency::AskedFor,
            None => Urgency::ForCall,
        };
        let late = match (since, server.status().phase) {
            // The last error says more than "still starting".
            (None, Phase::Failed(error)) => error,
            _ => Arc::new(ConnectError::StillStarting),
        };
        let answer = server.connect(urgency, Arc::clone(client));
        self.requests.spawn(async move { (number, answer.await) });
        self.pending.insert(number, since);
        late
    }

    async fn wait(&mut self) {
        // Computed again after each answer: once a server is up, the others get less time.
        while let Some(deadline) = self.deadline()
            && let Ok(Some(answered)) = timeout_at(deadline, self.requests.join_next()).await
        {
            // A request that panicked leaves its server among those that are still starting.
            if let Ok((number, answer)) = answered {
                self.pending.remove(&number);
                if answer.is_ok() {
                    self.first_up.get_or_insert_with(Instant::now);
                }
                self.answers[number] = answer;
            }
        }
    }

    /// Returns the time until which the pending servers are awaited; `None` if there are none.
    fn deadline(&self) -> Option<Instant> {
        let retry = self.begun + RETRY_WAIT;
        let deadlines = self.pending.values().map(|since| match *since {
            None => retry,
            Some(since) => {
                let longest = since + MAX_WAIT;
                let once_up = self.first_up.map(|up| up.max(since) + self.open_wait);
                let wait = once_up.map_or(longest, |once_up| once_up.min(longest));
                // Even if earlier opens have used up the time, this one waits as long as for a retry.
                wait.max(retry)
            }
        });
        deadlines.max()
    }

    fn finish(self, contents: &Contents) -> ConnectOutcome {
        let mut found = ConnectOutcome {
            catalogue: Vec::new(),
            failures: Vec::new(),
        };
        for ((name, server), answer) in contents.servers().iter().zip(self.answers) {
            match answer {
                Ok(tools) => {
                    // The next time that this server is missing, an open waits for it in full.
                    server.set_open_wait(OpenWait::Never);
                    found.catalogue.push((name.clone(), tools));
                }
                Err(error) => {
                    // Later opens wait for it only briefly, because this one has already waited in full.
                    server.set_open_wait(OpenWait::InVain);
                    found.failures.push(ServerFailure {
                        toolbox: contents.config.name.clone(),
                        server: name.clone(),
                        error,
                    });
                }
            }
        }
        found
    }
}

/// Returns the tools of a server if they are known without asking it. A server that has ended is not started for
/// this, because its list is still valid. A server that starts on first use is not started at all if its list is
/// known from an earlier run.
fn known_tools(server: &ServerHandle, connect: Connect) -> Option<Arc<ToolList>> {
    match server.status() {
        Status {
            phase: Phase::Up | Phase::Resting,
            tools: Some(tools),
            stale: false,
            ..
        } => Some(tools),
        Status {
            phase,
            tools,
            stale: false,
            ..
        } if connect == Connect::OnUse && is_untried(&phase) => tools,
        _ => None,
    }
}

fn is_untried(phase: &Phase) -> bool {
    matches!(phase, Phase::Untried | Phase::Starting)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// Returns how many seconds an open waits for pending servers that opens have awaited since these seconds, with
    /// the first server up at this second.
    fn waits(pending: &[Option<u64>], first_up: Option<u64>) -> Option<u64> {
        let origin = Instant::now();
        let at = |second| origin + Duration::from_secs(second);
        let begun = at(100);
        let connecting = Connecting {
            begun,
            open_wait: Duration::from_secs(15),
            answers: Vec::new(),
            requests: JoinSet::new(),
            pending: (0..)
                .zip(pending)
                .map(|(number, seconds)| (number, seconds.map(|it| at(100 - it))))
                .collect(),
            first_up: first_up.map(|second| at(100 + second)),
        };
        connecting.deadline().map(|it| (it - begun).as_secs())
    }

    #[test]
    fn an_open_waits_for_each_server_once() {
        let rows: [(&[_], _, _); 9] = [
            // Nothing is pending.
            (&[], None, None),
            // No server is up, and then one is.
            (&[Some(0), Some(0)], None, Some(45)),
            (&[Some(0)], Some(0), Some(15)),
            (&[Some(0)], Some(20), Some(35)),
            (&[Some(0)], Some(40), Some(45)),
            // An earlier caller has waited for 10 s and given up.
            (&[Some(10)], None, Some(35)),
            (&[Some(60)], None, Some(2)),
            // An earlier open has reported it.
            (&[None], None, Some(2)),
            // The longest wait decides.
            (&[None, Some(0)], Some(0), Some(15)),
        ];
        for (pending, first_up, expected) in rows {
            assert_eq!(
                waits(pending, first_up),
                expected,
                "{pending:?}, {first_up:?}"
            );
        }
    }
}
