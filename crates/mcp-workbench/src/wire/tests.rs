mod compose;
mod generate;
mod lines;
mod mend;
mod message;
mod outbox;
mod scan;
mod spans;
