//! Times of parsers for messages with results of each kind of text. All parsers do the least that a relay needs: find out
//! whether a text is valid JSON in valid UTF-8. They take turns and the best round of each counts, so that other load on the
//! machine changes little.

use std::{
    env,
    hint::black_box,
    io::{self, Write},
    time::{Duration, Instant},
};

use bytes::Bytes;

use text::Text;

#[allow(
    unused_imports,
    reason = "its tests are left out of a benchmark, but not the module that they are in"
)]
#[path = "../../../../bench/src/text.rs"]
pub mod text;

pub struct Parser {
    pub name: &'static str,
    /// Returns whether a message is valid. The buffer is for parsers that change their input.
    pub check: fn(message: &Bytes, buffer: &mut Vec<u8>) -> bool,
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool":{"toolbox":"bench","server":"s0","tool":"s0_echo_0"},"arguments":{"bytes":0}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"an answer of few words, as most tools give for most of the calls"}]}}"#;

const SIZES: [(&str, usize); 2] = [("64 KiB", 64 << 10), ("1 MiB", 1 << 20)];
const ROUNDS: usize = 60;
const TURN: Duration = Duration::from_micros(1500);

/// Measures the parsers and prints tables. Arguments of the program choose kinds of text.
pub fn run(parsers: &[Parser]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let wanted: Vec<String> = env::args().skip(1).collect();
    writeln!(out, "{}", heading("nanoseconds per message", parsers))?;
    for (name, text) in [("call", CALL), ("answer", ANSWER)] {
        let times = measure(parsers, &Bytes::from_static(text.as_bytes()));
        let cells = times.iter().map(|time| format!(" {:.0} |", time * 1e9));
        let name = format!("{name}, {} bytes", text.len());
        writeln!(out, "| {name} |{}", cells.collect::<String>())?;
    }
    writeln!(out, "\n{}", heading("gigabytes per second", parsers))?;
    for (size, bytes) in SIZES {
        for kind in Text::ALL {
            let is_wanted = wanted.iter().any(|it| it == kind.name());
            if is_wanted || wanted.iter().all(|it| it.starts_with('-')) {
                let message = Bytes::from(result_with(&kind.in_json(bytes)));
                #[expect(clippy::cast_precision_loss, reason = "far below the limit")]
                let speed = |time: &f64| message.len() as f64 / time / 1e9;
                let times = measure(parsers, &message);
                let cells = times.iter().map(|time| format!(" {:.2} |", speed(time)));
                writeln!(
                    out,
                    "| {}, {size} |{}",
                    kind.name(),
                    cells.collect::<String>()
                )?;
            }
        }
    }
    Ok(())
}

fn heading(what: &str, parsers: &[Parser]) -> String {
    let names: Vec<_> = parsers.iter().map(|it| it.name).collect();
    let line = " --- |".repeat(parsers.len() + 1);
    format!("| {what} | {} |\n|{line}", names.join(" | "))
}

fn result_with(text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":12345,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// Returns the seconds that each parser takes for a message.
fn measure(parsers: &[Parser], message: &Bytes) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; parsers.len()];
    let mut buffer = Vec::with_capacity(message.len());
    for _ in 0..ROUNDS {
        for (best, Parser { name, check }) in best.iter_mut().zip(parsers) {
            let start = Instant::now();
            let mut count = 0_u32;
            while start.elapsed() < TURN {
                for _ in 0..(4096 / message.len()).max(1) {
                    let is_valid = check(black_box(message), &mut buffer);
                    assert!(is_valid, "{name} refused the message");
                    count += 1;
                }
            }
            *best = best.min(start.elapsed().as_secs_f64() / f64::from(count));
        }
    }
    best
}
