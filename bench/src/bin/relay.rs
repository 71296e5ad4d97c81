//! `bench-relay`: copies bytes both ways and does nothing else. It is the least that a process in between
//! can cost. `bench-relay PROGRAM ARGUMENTS…` stands between its own pipes and those of the program;
//! `bench-relay --listen ADDRESS --to ADDRESS` stands between two connections.

use std::{
    env,
    error::Error,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
};

/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--listen", own, "--to", other] => relay_connections(own, other),
        [program, ref arguments @ ..] => relay_program(program, arguments),
        [] => Err("a program, or --listen and --to, must be named".into()),
    }
}

fn relay_program(program: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let to_child = child.stdin.take().ok_or("no pipe to the program")?;
    let from_child = child.stdout.take().ok_or("no pipe from the program")?;
    thread::spawn(move || copy(rustix::stdio::stdin(), to_child));
    copy(from_child, rustix::stdio::stdout())?;
    child.wait()?;
    Ok(())
}

/// Copies until the source ends. Without the locks and buffers of std's standard streams.
fn copy(from: impl rustix::fd::AsFd, to: impl rustix::fd::AsFd) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = rustix::io::read(&from, &mut chunk[..])?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            let written = rustix::io::write(&to, rest)?;
            rest = &rest[written..];
        }
    }
}

fn relay_connections(own: &str, other: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(own)?;
    writeln!(
        io::stderr(),
        "listening on http://{}/mcp",
        listener.local_addr()?
    )?;
    for client in listener.incoming() {
        let client = client?;
        let server = TcpStream::connect(other)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || copy_connection(client, server));
        thread::spawn(move || copy_connection(server_too, client_too));
    }
    Ok(())
}

/// Copies one direction and passes its end on. A connection that breaks ends like one that is closed.
fn copy_connection(mut from: TcpStream, mut to: TcpStream) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    // The other side may have closed it already.
    let _ = to.shutdown(Shutdown::Write);
}
