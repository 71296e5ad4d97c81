//! The server in both eras, over stdio and HTTP, by the real binary.

mod client;
mod http;
mod legacy;
mod modern;
