//! The program of the worker process: makes the engine ready, confines itself, reads one script and runs it.

use std::{
    io::{self, BufRead, Write},
    process::ExitCode,
};

use crate::{
    confine::confine,
    cpu_time::cpu_time,
    engine::{Answer, Engine},
    message::{FromWorker, ToWorker},
};

/// Runs the worker: one script from stdin, its calls and its end to stdout.
pub fn run_worker() -> ExitCode {
    let Ok(engine) = Engine::new() else {
        return ExitCode::FAILURE;
    };
    // The first look at the clock finds the system's clock by a system call that a confined process does not have.
    cpu_time();
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    if let Err(error) = confine() {
        // Without confinement there are no scripts.
        let _ = send(&[FromWorker::NotConfined(error.to_string())], &mut output);
        return ExitCode::FAILURE;
    }
    match serve(&engine, input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Reads the script, and runs it to its end.
fn serve(engine: &Engine, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    send(&[FromWorker::Ready], &mut output)?;
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        // The host has no script for this worker.
        return Ok(());
    }
    let ToWorker::Run { code, limits } = serde_json::from_str(&line)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut answer = String::new();
    let end = engine.run(&code, &limits, |settle| {
        send(&engine.take_outgoing(), &mut output)?;
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
    let mut last = engine.take_outgoing();
    last.push(FromWorker::End(end));
    send(&last, &mut output)
}

/// Writes messages, all at once.
fn send(messages: &[FromWorker], output: &mut impl Write) -> io::Result<()> {
    let mut text = Vec::new();
    for message in messages {
        serde_json::to_writer(&mut text, message)?;
        text.push(b'\n');
    }
    output.write_all(&text)?;
    output.flush()
}
