//! A server for unit tests: the test takes the calls that are sent to it, and answers them.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{
    server::{Command, ServerHandle},
    test_client::json,
};

/// A server whose task is the test.
pub(crate) struct TestServer {
    pub(crate) handle: Arc<ServerHandle>,
    commands: mpsc::UnboundedReceiver<Command>,
}

impl TestServer {
    /// Replaces a server of the configuration.
    pub(crate) fn in_place_of(server: &ServerHandle) -> Self {
        let (sender, commands) = mpsc::unbounded_channel();
        let handle = ServerHandle {
            commands: sender,
            ..server.clone()
        };
        Self {
            handle: Arc::new(handle),
            commands,
        }
    }

    /// Answers the oldest call with a result, as the task of a server does.
    pub(crate) fn answer(&mut self, result: &str) {
        match self.commands.try_recv() {
            Ok(Command::Call(call)) => call.answer(Ok(json(result))),
            _ => panic!("no call was sent"),
        }
    }
}
