mod compose;
#[path = "../../../rawjson/src/tests/generate.rs"]
pub(crate) mod generate;
mod lines;
mod message;
mod outbox;
mod recover;
mod repair;
mod scan;
