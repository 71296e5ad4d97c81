//! The program of the worker process: makes the engine ready, confines itself, reads one script and runs it.

use std::{
    cell::RefCell,
    io::{self, BufRead, Write},
    process::ExitCode,
    rc::Rc,
};

use crate::{
    confine::confine,
    cpu_time::cpu_time,
    engine::{Answer, Engine, Outgoing},
    message::{FromWorker, ToWorker},
};

/// Runs the worker: one script from stdin, its calls and its end to stdout.
pub fn run_worker() -> ExitCode {
    let Ok(engine) = Engine::new() else {
        return ExitCode::FAILURE;
    };
    // The first look at the clock finds the system's clock by a system call that a confined process does not have.
    cpu_time();
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    if let Err(error) = confine() {
        // The host logs it; without confinement there are no scripts.
        let _ = writeln!(io::stderr(), "{error}");
        return ExitCode::FAILURE;
    }
    match serve(&engine, input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Reads the script, and runs it to its end.
fn serve(engine: &Engine, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let outgoing: Outgoing = Rc::new(RefCell::new(vec![FromWorker::Ready]));
    send(&outgoing, &mut output)?;
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        // The host has no script for this worker.
        return Ok(());
    }
    let ToWorker::Run { code, limits } = serde_json::from_str(&line)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut answer = String::new();
    let end = engine.run(&code, &limits, &outgoing, |settle| {
        send(&outgoing, &mut output)?;
        answer.clear();
        if input.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match serde_json::from_str(&answer)? {
            ToWorker::Value { id, value } => settle(Answer::Value {
                id,
                json: value.get(),
            }),
            ToWorker::Failed { id, failure } => settle(Answer::Failed {
                id,
                failure: &failure,
            }),
            ToWorker::Run { .. } => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok::<(), io::Error>(())
    })?;
    outgoing.borrow_mut().push(FromWorker::End(end));
    send(&outgoing, &mut output)
}

/// Writes the outgoing messages, all at once.
fn send(outgoing: &Outgoing, output: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    for message in outgoing.borrow_mut().drain(..) {
        serde_json::to_writer(&mut text, &message)?;
        text.push(b'\n');
    }
    output.write_all(&text)?;
    output.flush()
}
