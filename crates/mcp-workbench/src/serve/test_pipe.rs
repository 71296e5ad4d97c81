//! A connection for unit tests, over a pipe.

use std::{path::Path, sync::Arc};

use rawjson::RawJson;
use tokio::io::{AsyncReadExt, DuplexStream};

use super::{
    ClientLocation, ServeContext,
    connection::Connection,
    output::{ClientOutput, PipeOutput, write_frames},
};
use crate::{
    call::Principal,
    config::{Environment, parse},
    oauth::CredentialOwner,
    workbench::Workbench,
};

/// Connects a client to a workbench with this configuration. Returns the connection and the client's end of its pipe.
pub(super) fn connect(config: &str, principal: Principal) -> (Arc<Connection>, DuplexStream) {
    let environment = Environment::new([], "/start".into(), None);
    let loaded = parse(config, Path::new("c.json"), &environment).unwrap();
    let workbench = Workbench::new(Arc::new(loaded.config), CredentialOwner::Machine);
    let context = ServeContext::new(workbench, ClientLocation::Local);
    let (output, frames) = PipeOutput::channel();
    let (pipe, written) = tokio::io::duplex(64 * 1024);
    #[expect(clippy::disallowed_methods, reason = "the test ends with the writer")]
    tokio::spawn(write_frames(frames, written));
    let output = ClientOutput::Pipe(output);
    (Connection::new(context, output, principal), pipe)
}

/// Reads the next message that is written to the client.
pub(super) async fn read_message(pipe: &mut DuplexStream) -> RawJson {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.push(pipe.read_u8().await.unwrap());
    }
    RawJson::parse(&line.into()).unwrap()
}
