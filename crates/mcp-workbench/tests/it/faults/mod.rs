//! The fault suite: one row per fault, with the outcome that can be observed and the time that it may
//! take. `./scripts/faults` runs it and prints the table; docs/evidence/faults.csv has the last one.
//!
//! Every row has two servers in one toolbox: `fs`, to which the fault happens, and `ok`, which must
//! answer meanwhile and afterwards. What holds for every row besides is in [`table::check`].

mod bench;
mod broken_messages;
mod clean_text;
mod client;
mod crash_loop;
mod ending;
mod floods;
mod host;
mod large_messages;
mod limits;
mod lists;
mod processes;
mod secrets;
mod starting;
mod table;
mod wire_text;

use bench::{Bench, Failed};
use table::{After, Row, faults};
