mod compose;
pub(crate) mod generate;
mod lines;
mod mend;
mod message;
mod outbox;
mod recover;
mod scan;
mod spans;
