//! Serving over HTTP: who may come in, sessions, answers and streams, limits, tokens, and the end.

mod answers;
mod bounds;
mod closed;
mod connections;
mod disconnects;
mod ending;
mod load;
mod sessions;
mod stateless;
mod streams;
mod tokens;
mod unread;
