//! The downstream side. Each server of each toolbox is one supervised task that owns its process, its ids, its
//! pending calls and its deadlines; everything else holds a [`ServerHandle`] and sends it messages. A server starts
//! when it is first needed.

mod asks;
mod deferred_writes;
mod error;
mod event;
mod http;
mod instances;
mod introduction;
mod link;
mod listing;
mod oauth;
mod open_wait;
mod pool;
pub(crate) mod process;
mod protocol;
mod server;
mod session;
mod skills;
mod snapshot;
mod stdio;
mod stray;
mod supervisor;
#[cfg(test)]
pub(crate) mod test_client;
#[cfg(test)]
pub(crate) mod test_server;
mod tool_cache;

pub(crate) use asks::questions::{can_answer, fresh_id};
#[cfg(test)]
pub(crate) use error::StartPhase;
pub(crate) use error::{
    CallError, ConnectError, HttpFault, SignInNeeded, SignInRemedy, StopReason,
};
pub(crate) use event::{Change, Events, ServerEvent};
pub(crate) use instances::{InstanceUse, ViewId, difference};
pub(crate) use introduction::{DeclaredExtensions, ServerFamily};
pub(crate) use listing::{
    Cause, ListWalk, Reviewable, Step, ToolDefinition, ToolList, UI_SCHEME, Withheld, with_ui_uris,
};
pub(crate) use oauth::OAuthClient;
pub(crate) use open_wait::OpenWait;
pub(crate) use pool::{ClientKind, Pool, Renewal};
pub(crate) use process::{
    Exit,
    worker::{WorkerError, WorkerRun},
};
pub(crate) use server::{CallTicket, Phase, ServerHandle, Status, Urgency};
pub(crate) use session::reply::{CallEnd, CallResult, Outdated, Unfinished};
pub(crate) use skills::{Skill, is_within};
pub(crate) use supervisor::cached_list::load_cached_lists;
pub(crate) use tool_cache::ToolCache;
