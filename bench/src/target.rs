//! The targets that are measured, and the baselines that each is compared with. [`crate::launch`] starts them.

use std::path::PathBuf;

use crate::{era::Era, peers::Peer};

/// The servers behind a target.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub servers: usize,
    /// How many tools each of them has.
    pub tools: usize,
    /// How many milliseconds each takes to start.
    pub start_delay: u64,
}

impl Layout {
    /// One server with one tool.
    pub const SMALL: Self = Self {
        servers: 1,
        tools: 1,
        start_delay: 0,
    };
}

/// The kind of a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Direct,
    Relay,
    /// The workbench, with `use_tool`.
    Workbench,
    /// The workbench in native mode.
    Native,
    /// Another program that does this job.
    Peer(&'static Peer),
}

/// The transport of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
}

/// An addition to a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// None.
    None,
    /// The workbench writes the audit log.
    Audit,
    /// The client asks for progress in every call.
    ProgressToken,
}

/// The table that a target belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Compared with peers, over pipes.
    Stdio,
    /// Compared with peers, over HTTP.
    Http,
    /// The era pairs over pipes.
    StdioPairs,
    /// The era pairs over HTTP.
    HttpPairs,
}

/// Something between a client and servers, or nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    name: &'static str,
    kind: Kind,
    group: Group,
    /// The transport of the client, and of the server.
    pub(crate) transports: (Transport, Transport),
    /// The era of the client, and of the server.
    pub(crate) eras: (Era, Era),
    pub(crate) extra: Extra,
}

#[derive(Debug, Clone)]
pub struct Programs {
    /// The folder of our own programs.
    pub own: PathBuf,
    /// The folder that peers are installed in.
    pub peers: PathBuf,
    pub workbench: PathBuf,
}

impl Programs {
    /// One of our own programs.
    pub fn own(&self, name: &str) -> String {
        self.own.join(name).to_string_lossy().into_owned()
    }

    pub(crate) fn workbench(&self) -> String {
        self.workbench.to_string_lossy().into_owned()
    }
}

impl Target {
    /// No gateway, over pipes.
    pub const DIRECT: Self = Self::stdio("direct", Kind::Direct);
    pub const WORKBENCH: Self = Self::stdio("workbench", Kind::Workbench);
    /// The targets over pipes that need nothing from elsewhere.
    pub const OWN: [Self; 4] = [
        Self::DIRECT,
        Self::stdio("relay", Kind::Relay),
        Self::WORKBENCH,
        Self::stdio("native", Kind::Native),
    ];
    pub const HTTP: [Self; 6] = [
        Self::http("direct-http", Kind::Direct, BOTH),
        Self::http("relay-http", Kind::Relay, BOTH),
        Self::http("workbench-http", Kind::Workbench, BOTH),
        Self::http("native-http", Kind::Native, BOTH),
        Self::http(
            "workbench-http-stdio",
            Kind::Workbench,
            (Transport::Http, Transport::Stdio),
        ),
        Self::http(
            "workbench-stdio-http",
            Kind::Workbench,
            (Transport::Stdio, Transport::Http),
        ),
    ];

    const fn stdio(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            group: Group::Stdio,
            transports: (Transport::Stdio, Transport::Stdio),
            eras: (Era::Legacy, Era::Legacy),
            extra: Extra::None,
        }
    }

    const fn http(name: &'static str, kind: Kind, transports: (Transport, Transport)) -> Self {
        Self {
            group: Group::Http,
            transports,
            ..Self::stdio(name, kind)
        }
    }

    /// A target of the era pairs. The eras are those of the client and of the server.
    pub const fn pair(
        name: &'static str,
        kind: Kind,
        transport: Transport,
        eras: (Era, Era),
    ) -> Self {
        Self {
            group: match transport {
                Transport::Stdio => Group::StdioPairs,
                Transport::Http => Group::HttpPairs,
            },
            transports: (transport, transport),
            eras,
            ..Self::stdio(name, kind)
        }
    }

    /// The target with an addition.
    #[must_use]
    pub const fn with(self, extra: Extra) -> Self {
        Self { extra, ..self }
    }

    /// The target of a peer.
    pub const fn peer(peer: &'static Peer) -> Self {
        Self {
            group: if peer.has_http() {
                Group::Http
            } else {
                Group::Stdio
            },
            ..Self::stdio(peer.name, Kind::Peer(peer))
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The names of the direct connection and of the relay that it is compared with. A pair of two eras is compared
    /// with the legacy ones: their messages are shorter, so that is the stricter comparison.
    pub fn baselines(&self) -> (&'static str, &'static str) {
        let is_modern = self.eras == (Era::Modern, Era::Modern);
        match (self.group, is_modern) {
            (Group::Stdio, _) => ("direct", "relay"),
            (Group::Http, _) => ("direct-http", "relay-http"),
            (Group::StdioPairs, false) => ("direct-legacy", "relay-legacy"),
            (Group::StdioPairs, true) => ("direct-modern", "relay-modern"),
            (Group::HttpPairs, false) => ("http-direct-legacy", "http-relay-legacy"),
            (Group::HttpPairs, true) => ("http-direct-modern", "http-relay-modern"),
        }
    }

    /// Returns true if it is the direct connection or the relay.
    pub fn is_baseline(&self) -> bool {
        matches!(self.kind, Kind::Direct | Kind::Relay)
    }

    /// Returns true if it is the workbench.
    pub fn is_workbench(&self) -> bool {
        matches!(self.kind, Kind::Workbench | Kind::Native)
    }

    /// Returns true if it belongs to the era pairs.
    pub fn is_pair(&self) -> bool {
        matches!(self.group, Group::StdioPairs | Group::HttpPairs)
    }

    /// Returns true if it has no addition, and the usual way of calls.
    pub fn is_plain(&self) -> bool {
        self.extra == Extra::None && self.kind != Kind::Native
    }

    /// Returns true if its two sides have different transports.
    pub fn is_mixed_transport(&self) -> bool {
        self.transports.0 != self.transports.1
    }

    /// The registry, package and version of a peer.
    pub fn package(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Peer(peer) => Some(peer.package),
            _ => None,
        }
    }

    /// Returns true if it can have many servers.
    pub fn is_gateway(&self) -> bool {
        match self.kind {
            Kind::Workbench | Kind::Native => self.group == Group::Stdio,
            Kind::Peer(peer) => peer.is_gateway(),
            _ => false,
        }
    }
}

const BOTH: (Transport, Transport) = (Transport::Http, Transport::Http);
