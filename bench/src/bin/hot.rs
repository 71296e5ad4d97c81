//! `bench-hot`: does one thing on the way of a call so many times, for a tool that counts instructions. The
//! difference between two counts says what one time costs, without the start and the end of the program.

use std::{
    error::Error,
    hint::black_box,
    io::{self, Write},
};

use bytes::Bytes;
use clap::Parser;
use rawjson::RawJson;

use mcp_workbench::internal::{
    era,
    wire::{self, LineFramer, MAX_FRAME_BYTES, Message, Request},
};

/// Does one thing many times
#[derive(Parser)]
struct Arguments {
    /// The operation; all names are listed without it
    name: Option<String>,
    /// How many times
    #[arg(default_value_t = 1000)]
    count: usize,
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool":{"toolbox":"bench","server":"s0","tool":"s0_echo_0"},"arguments":{"bytes":0}}}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"an answer of few words, as most tools give for most of the calls"}]}}"#;

const MODERN_CALL: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool":{"toolbox":"bench","server":"s0","tool":"s0_echo_0"},"arguments":{"bytes":0}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

type Thing = (&'static str, fn(usize));

const THINGS: &[Thing] = &[
    ("frame", frame),
    ("parse-request", |count| parse(CALL, count)),
    ("parse-request-modern", |count| parse(MODERN_CALL, count)),
    ("parse-answer", |count| parse(ANSWER, count)),
    ("parse-answer-64k", parse_large),
    ("splice-request", splice_request),
    ("splice-result", splice_result),
    ("read-parameters", read_parameters),
    ("classify-era", |count| classify_era(CALL, count)),
    ("classify-era-modern", |count| {
        classify_era(MODERN_CALL, count);
    }),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let Some(name) = arguments.name else {
        for (name, _) in THINGS {
            writeln!(io::stdout(), "{name}")?;
        }
        return Ok(());
    };
    let found = THINGS.iter().find(|(known, _)| *known == name);
    let (_, thing) = found.ok_or("there is nothing of this name")?;
    thing(arguments.count);
    Ok(())
}

/// Finds the line in what a read gave.
fn frame(count: usize) {
    let mut framer = LineFramer::new(MAX_FRAME_BYTES);
    let line = format!("{CALL}\n");
    for _ in 0..count {
        framer.room().extend_from_slice(line.as_bytes());
        black_box(framer.next_line());
    }
}

fn parse(text: &'static str, count: usize) {
    let frame = Bytes::from_static(text.as_bytes());
    for _ in 0..count {
        // The compiler would leave out work on known values, and results that nobody uses.
        drop(black_box(Message::parse(black_box(&frame))));
    }
}

fn parse_large(count: usize) {
    let words = format!("few words, {}", "as most tools give\\n".repeat(3_400));
    let frame = Bytes::from(ANSWER.replace("few words,", &words));
    for _ in 0..count {
        drop(black_box(Message::parse(black_box(&frame))));
    }
}

/// Builds the request to a server.
fn splice_request(count: usize) {
    let params = params();
    for number in 0..count as u64 {
        drop(black_box(wire::request(
            number,
            "tools/call",
            black_box(&params),
        )));
    }
}

/// Builds the answer to a client.
fn splice_result(count: usize) {
    let (Some(request), Some(result)) = (request(), member(ANSWER, "result")) else {
        return;
    };
    for _ in 0..count {
        drop(black_box(wire::result(&request.id, black_box(&result))));
    }
}

/// Takes the identifier and the arguments out of the parameters, member by member.
fn read_parameters(count: usize) {
    let params = params();
    for _ in 0..count {
        let arguments = params.member("arguments");
        let members = arguments.as_ref().and_then(RawJson::members);
        for member in members.iter().flatten() {
            let parts = member.value.members();
            for part in parts.iter().flatten() {
                black_box(part.value.as_text());
            }
        }
    }
}

/// Decides whether a request is modern.
fn classify_era(call: &'static str, count: usize) {
    let Some(params) = member(call, "params") else {
        return;
    };
    for _ in 0..count {
        black_box(era::are_modern(black_box(Some(&params))));
    }
}

fn request() -> Option<Request> {
    match Message::parse(&Bytes::from_static(CALL.as_bytes())) {
        Ok(Message::Request(request)) => Some(request),
        _ => None,
    }
}

fn member(text: &'static str, name: &str) -> Option<RawJson> {
    RawJson::parse(&Bytes::from_static(text.as_bytes()))
        .ok()?
        .member(name)
}

fn params() -> RawJson {
    member(CALL, "params").expect("the call has parameters")
}
