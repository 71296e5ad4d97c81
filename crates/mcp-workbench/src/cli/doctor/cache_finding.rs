//! Findings about the tool cache of toolboxes that connect on use.

use std::{fmt, sync::Arc};

use super::finding::listed;
use crate::server_cache::NotCached;

/// A finding about the tool cache.
#[derive(Debug)]
pub(super) enum CacheFinding {
    /// These servers of a toolbox were not in the cache.
    Cold { servers: Vec<String> },
    /// The tools of a server cannot be cached.
    NotCached(Arc<NotCached>),
}

impl CacheFinding {
    /// Returns the stable code for programs.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Cold { .. } => "not_warmed",
            Self::NotCached(_) => "tools_not_kept",
        }
    }

    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Cold { .. } => {
                "the tools of the servers that are up are cached now; after an update \
                                  or a new login, `mcp-workbench warm` refreshes them"
                    .to_owned()
            }
            Self::NotCached(reason) => match &**reason {
                NotCached::NoFolder => {
                    "set HOME or XDG_CACHE_HOME where the workbench is started".to_owned()
                }
                NotCached::Exposed(_) => {
                    "delete it: it is created again with private permissions".to_owned()
                }
                NotCached::Unwritable { .. } => {
                    "free disk space, or delete the file: it is created again".to_owned()
                }
                NotCached::TooLarge(_) | NotCached::Secret => {
                    "nothing needs to be done: the server is started when the toolbox is opened"
                        .to_owned()
                }
            },
        }
    }
}

impl fmt::Display for CacheFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold { servers } => write!(
                f,
                "it connects on use, but the tools of {} were not cached; opening it had to start these \
                 servers",
                listed(servers)
            ),
            Self::NotCached(reason) => write!(f, "its tools cannot be cached: {reason}"),
        }
    }
}
