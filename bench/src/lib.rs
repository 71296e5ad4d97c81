//! The cost of the workbench: a load generator, an echo server, a bare relay, and the comparison of targets between the
//! two. Everything runs on one CPU, rounds go over all targets in turn, and ratios are computed within a round.

pub mod cases;
pub mod connections;
pub mod echo;
pub mod era;
pub mod goals;
pub mod http;
pub mod instructions;
pub mod launch;
pub mod lines;
pub mod pairs;
pub mod peers;
pub mod pipes;
mod plot;
pub mod prepared;
pub mod processes;
pub mod report;
pub mod session;
pub mod stats;
pub mod store;
pub mod target;
pub mod text;
mod watchdog;
