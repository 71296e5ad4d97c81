//! `cargo bench -p rawjson --bench scan [-- <KIND>…]`: the speed of a scan, beside serde's. `bench/parsers` compares more parsers.

use std::io;

use rawjson::RawJson;
use scan::measure::{Parser, run};
use serde::de::IgnoredAny;

pub mod scan {
    pub mod measure;
}

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
    ])
}
