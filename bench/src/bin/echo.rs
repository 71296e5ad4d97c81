//! `bench-echo`: the MCP server behind everything that is measured. It blocks, it has one thread (over HTTP
//! one for each connection), and it does no more for a call than reading it and writing the answer, so that what is
//! seen is the cost of what stands before it.

use std::{
    error::Error,
    io::{self, Write},
    net::TcpListener,
    sync::Arc,
    thread,
    time::Duration,
};

use bench::{echo::EchoServer, era::Era, http, lines::LineBuffer};
use clap::Parser;

/// An MCP server whose tools answer with text of the size that is asked for
#[derive(Parser)]
struct Arguments {
    /// The era of the protocol that it speaks
    #[arg(long, value_enum, default_value_t = Era::Legacy)]
    era: Era,
    /// How many tools it has
    #[arg(long, default_value_t = 1)]
    tools: usize,
    /// How many bytes of description each tool has
    #[arg(long, default_value_t = 200)]
    description_bytes: usize,
    /// The prefix of the names of its tools
    #[arg(long, default_value = "")]
    prefix: String,
    /// How many milliseconds it takes to start
    #[arg(long, default_value_t = 0)]
    start_delay: u64,
    /// Serve over HTTP at this address, and not over stdin and stdout
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.start_delay > 0 {
        let delay = Duration::from_millis(arguments.start_delay);
        thread::park_timeout(delay);
    }
    let server = EchoServer::new(
        arguments.era,
        arguments.tools,
        arguments.description_bytes,
        &arguments.prefix,
    );
    match arguments.http {
        Some(address) => serve_http(server, &address),
        None => Ok(serve_stdio(server)?),
    }
}

/// One write for each answer, as servers do that do not know what comes next.
fn serve_stdio(mut server: EchoServer) -> io::Result<()> {
    let mut lines = LineBuffer::new(rustix::stdio::stdin());
    let mut answer = Vec::new();
    while let Some(line) = lines.next_line()? {
        answer.clear();
        server.answer(line, &mut answer);
        if answer.is_empty() {
            continue;
        }
        answer.push(b'\n');
        let mut rest = &answer[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(rustix::stdio::stdout(), rest)?..];
        }
    }
    Ok(())
}

fn serve_http(server: EchoServer, address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address)?;
    writeln!(
        io::stderr(),
        "listening on http://{}/mcp",
        listener.local_addr()?
    )?;
    let server = Arc::new(server);
    for stream in listener.incoming() {
        let stream = stream?;
        // A small answer must not wait for the acknowledgement of the one before.
        stream.set_nodelay(true)?;
        let mut server = EchoServer::clone(&server);
        thread::spawn(move || http::serve_connection(stream, &mut server));
    }
    Ok(())
}
