mod compose;
#[path = "../../../rawjson/src/tests/generate.rs"]
pub(crate) mod generate;
mod lines;
mod mend;
mod message;
mod outbox;
mod recover;
mod scan;
