//! The servers' side. Each server of each toolbox is one supervised task that owns its process, its
//! ids, its pending calls and its deadlines; everybody else holds a [`ServerHandle`] and talks to it
//! by messages. Nothing is started before somebody needs it.

mod access;
mod asks;
mod awaited;
mod error;
mod event;
mod http;
mod introduction;
mod kept;
mod later;
mod launch_hash;
mod link;
mod listing;
mod pool;
pub mod process;
mod protocol;
mod server;
mod session;
mod stdio;
mod stray;
mod supervisor;
#[cfg(test)]
pub(crate) mod test_client;
#[cfg(test)]
pub(crate) mod test_server;
mod told;
mod verdicts;

pub(crate) use access::Access;
pub(crate) use asks::questions::{can_answer, fresh_id};
pub use awaited::Awaited;
pub use error::{
    CallError, ConnectError, GiveUp, HttpFault, Lack, SignInNeeded, StartPhase, TimeLimit,
};
pub use event::{Change, ServerEvent};
pub use introduction::{Introduction, ServerFamily};
pub use kept::{KeptSize, KeptTools, NotKept, ToolCache, folder_in as catalogue_folder};
pub use listing::{Cause, ListWalk, Reviewable, Step, ToolDefinition, ToolList, Withheld};
pub use pool::{Pool, Renewal};
pub use server::{CallTicket, Phase, ServerHandle, Status, Urgency};
pub use session::reply::{CallEnd, CallResult, Outdated, Unfinished};
