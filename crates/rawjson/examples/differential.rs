//! `cargo run --release -p rawjson --example differential -- <COUNT> [SEED]`: compares the scanner with a reader that takes one byte
//! at a time and with serde on so many mutated texts. Ends with a panic that shows the text if they do not agree.

use std::{
    env,
    error::Error,
    io::{self, Write},
};

use bytes::Bytes;
use readers::mutate::{Numbers, compare, mutated};

#[path = "../tests/readers/mod.rs"]
mod readers;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let count: u64 = arguments.next().ok_or("how many texts?")?.parse()?;
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let mut numbers = Numbers::new(seed);
    let mut text = Vec::new();
    let mut accepted = 0_u64;
    for _ in 0..count {
        mutated(&mut numbers, &mut text);
        let bytes = Bytes::from(std::mem::take(&mut text));
        accepted += u64::from(compare(&bytes));
        text = bytes.into();
    }
    writeln!(
        io::stdout(),
        "{count} texts with seed {seed}: {accepted} accepted, all alike"
    )?;
    Ok(())
}
