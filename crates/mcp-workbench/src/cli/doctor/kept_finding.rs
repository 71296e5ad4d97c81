//! What a doctor finds about the catalogue of toolboxes that connect on use.

use std::{fmt, sync::Arc};

use super::finding::listed;
use crate::downstream::NotKept;

/// Something about what is kept of servers.
#[derive(Debug)]
pub(super) enum KeptFinding {
    /// Of these servers of a toolbox nothing was kept before.
    Cold { servers: Vec<String> },
    /// The tools of a server cannot be kept.
    NotKept(Arc<NotKept>),
}

impl KeptFinding {
    /// The stable word for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Cold { .. } => "not_warmed",
            Self::NotKept(_) => "tools_not_kept",
        }
    }

    /// What to do about it.
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Cold { .. } => {
                "they are known now, as far as the servers are up; after an update \
                                  or another login, `mcp-workbench warm` asks them again"
                    .to_owned()
            }
            Self::NotKept(reason) => match &**reason {
                NotKept::NoPlace => {
                    "set HOME or XDG_CACHE_HOME where the workbench is started".to_owned()
                }
                NotKept::Open(_) => "delete it: it is made anew, for you alone".to_owned(),
                NotKept::Unwritable { .. } => {
                    "make room for it, or delete what stands there: it is made anew".to_owned()
                }
                NotKept::TooLarge(_) | NotKept::Secret => {
                    "nothing has to be done: it is started when the toolbox is opened".to_owned()
                }
            },
        }
    }
}

impl fmt::Display for KeptFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold { servers } => write!(
                f,
                "it connects on use, but until now nothing was known of {}; opening it had to start what it \
                 did not know",
                listed(servers)
            ),
            Self::NotKept(reason) => write!(f, "its tools cannot be kept: {reason}"),
        }
    }
}
