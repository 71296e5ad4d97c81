//! The speed of `rawjson` beside that of other parsers, on the texts of the benchmark.

use std::io;

use measure::{Parser, run};
use rawjson::RawJson;
use serde::de::IgnoredAny;

#[path = "../../../crates/rawjson/benches/scan/measure.rs"]
pub mod measure;

fn main() -> io::Result<()> {
    run(&[
        Parser {
            name: "rawjson",
            check: |message, _| RawJson::parse(message).is_ok(),
        },
        Parser {
            name: "serde_json",
            check: |message, _| {
                let text = str::from_utf8(message);
                text.is_ok_and(|it| serde_json::from_str::<IgnoredAny>(it).is_ok())
            },
        },
        Parser {
            name: "sonic-rs",
            check: |message, _| sonic_rs::from_slice::<sonic_rs::LazyValue<'_>>(message).is_ok(),
        },
        Parser {
            // It needs a text that it may change, so the text is copied.
            name: "simd-json",
            check: |message, buffer| {
                buffer.clear();
                buffer.extend_from_slice(message);
                simd_json::to_tape(buffer).is_ok()
            },
        },
    ])
}
