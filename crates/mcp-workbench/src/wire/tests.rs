mod compose;
mod generate;
mod mend;
mod message;
mod outbox;
mod scan;
mod spans;
