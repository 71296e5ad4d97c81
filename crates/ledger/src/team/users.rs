//! The users: each is a process with an official SDK, which prints its calls.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::{ChildStdin, ChildStdout, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    TeamError,
    history::{Line, TeamCall},
    place::{Place, Running, USERS, name, spawn},
};
use crate::waiting::poll_until;

/// The SDKs of the users, in turn.
const SDKS: [&str; 3] = ["client", "modern", "sdk"];
/// How many calls a user makes at once.
const WORKERS: &str = "4";
/// The distance between the nonces of two users.
const NONCES: u64 = 1_000_000_000;
/// How long a user may take to connect.
const CONNECTED_WITHIN: Duration = Duration::from_mins(1);

pub(super) struct Users(Vec<User>);

struct User {
    process: Running,
    /// The user stops when it ends.
    stdin: Option<ChildStdin>,
    reading: JoinHandle<HashMap<u64, TeamCall>>,
}

impl Users {
    /// Starts the users, and waits until they are connected.
    pub(super) fn start(place: &Place) -> Result<Self, TeamError> {
        let (ready, connected) = mpsc::channel();
        let users = (0..USERS).map(|user| start(place, user, ready.clone()));
        let users: Vec<User> = users.collect::<Result<_, _>>()?;
        for _ in 0..USERS {
            let waited = connected.recv_timeout(CONNECTED_WITHIN);
            waited.map_err(|_| TeamError::NotUp("the users".to_owned()))?;
        }
        Ok(Self(users))
    }

    /// Stops the users, waits for their last calls, and returns all calls.
    pub(super) fn finish(mut self, settle: Duration) -> Vec<TeamCall> {
        for user in &mut self.0 {
            user.stdin = None;
        }
        let deadline = Instant::now() + settle;
        let mut calls = Vec::new();
        for mut user in self.0 {
            poll_until(deadline, || user.process.0.try_wait().ok().flatten());
            // The reader ends with the process.
            drop(user.process);
            calls.extend(user.reading.join().unwrap_or_default().into_values());
        }
        calls.sort_unstable_by_key(|call| call.nonce);
        calls
    }
}

fn start(place: &Place, user: usize, ready: mpsc::Sender<()>) -> Result<User, TeamError> {
    let first = (user as u64 + 1) * NONCES;
    let mut command = place.node("crates/ledger/clients/team.mjs")?;
    command
        .args([SDKS[user % SDKS.len()], &place.resource(), &name(user)])
        .args([first.to_string().as_str(), WORKERS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut process = spawn("a user", &mut command)?;
    let stdout = process.0.stdout.take().expect("stdout is a pipe");
    Ok(User {
        stdin: process.0.stdin.take(),
        process,
        reading: thread::spawn(move || read(user, stdout, &ready)),
    })
}

fn read(user: usize, stdout: ChildStdout, ready: &mpsc::Sender<()>) -> HashMap<u64, TeamCall> {
    let mut calls: HashMap<u64, TeamCall> = HashMap::new();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        match serde_json::from_str::<Line>(&line) {
            Ok(Line::Sent { sent, at, ms, tool }) => {
                let call = TeamCall {
                    user,
                    nonce: sent,
                    sent_at: at,
                    ms,
                    tool,
                    done: None,
                };
                calls.insert(sent, call);
            }
            Ok(Line::Done { nonce, done }) => {
                if let Some(call) = calls.get_mut(&nonce) {
                    call.done = Some(done);
                }
            }
            Ok(Line::Ready { .. }) => drop(ready.send(())),
            Err(_) => {}
        }
    }
    calls
}
