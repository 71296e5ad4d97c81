//! The ledger: the proof that the workbench loses nothing.
//!
//! ```text
//! seed ─► plan ─► driver ─► workbench ─► servers ─► execution journals ─┐
//!   │               │ ▲         │           ▲                           ├─► check ─► violations
//!   │               │ └─────────┘           │                           │
//!   │               └─► history ────────────│───────────────────────────┘
//!   └─► nemesis ─────── kills and stops ────┘
//! ```
//!
//! One client makes random calls, many at a time, while servers are killed and stopped. It writes down
//! what it sends before it sends it, and every answer; the servers write down every call that they take
//! up. [`check::check`] compares the two. What is sent is a function of the seed; when a fault hits is
//! not, so a seed that finds something may have to be run more than once.

pub mod check;
mod driver;
pub mod history;
pub mod identity;
mod incoming;
mod nemesis;
mod outgoing;
mod plan;
mod processes;
mod random;
mod report;
mod run;
mod site;
mod tally;
pub mod team;
mod tool;
pub mod violation;
mod waiting;
mod workbench;

pub use driver::Stuck;
pub use nemesis::Deeds;
pub use processes::Footprint;
pub use report::Report;
pub use run::{Amount, Options, RunError, run};
pub use tally::Tally;
