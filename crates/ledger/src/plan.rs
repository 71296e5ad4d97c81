//! The plan of the client: a function of the seed alone, independent of time.

use crate::{
    history::{Address, ProgressWish, Request, SentCall},
    identity::{Id, Nonce, ServerIndex},
    random::Random,
    site::TOOLBOXES,
    tool::Tool,
};

/// The lengths of payloads: most are small, some large, a few very large.
const SMALL: u64 = 512;
const LARGE: usize = 64 * 1024;
const VERY_LARGE: usize = 1024 * 1024;

/// How many steps after a call its cancel follows at most.
const CANCEL_WITHIN: u64 = 40;

/// The steps of a client, from a seed.
#[derive(Debug)]
pub(crate) struct Plan {
    random: Random,
    servers: usize,
    next_id: u64,
    next_nonce: u64,
}

#[derive(Debug)]
pub(crate) enum Step {
    /// Send these, which share one id, at once, and cancel them so many steps later, if at all.
    Requests(Vec<Planned>, Option<u64>),
    Garbage,
}

#[derive(Debug)]
pub(crate) struct Planned {
    pub id: Id,
    pub ask: Ask,
}

/// The content of a request.
#[derive(Debug)]
pub(crate) enum Ask {
    /// A call through `use_tool`.
    Call(PlannedCall),
    Ping,
    ListTools,
    /// The opening of a toolbox, by its place.
    Open(usize),
}

#[derive(Debug)]
pub(crate) struct PlannedCall {
    /// The unique nonce of the call.
    pub nonce: Nonce,
    pub tool: Tool,
    pub target: Target,
    /// The duration, if the tool sleeps.
    pub ms: u64,
    /// How long its payload is.
    pub length: usize,
    /// The wish for progress notifications.
    pub progress: ProgressWish,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Server(ServerIndex),
    /// A toolbox that is not there.
    MissingToolbox,
    /// A server that is not there.
    MissingServer,
    /// A tool that is not there.
    MissingTool(ServerIndex),
}

impl Planned {
    /// The request as it is written down.
    pub(crate) fn request(&self) -> Request {
        match &self.ask {
            Ask::Call(call) => Request::Call(SentCall {
                nonce: call.nonce,
                address: match call.target {
                    Target::Server(server) => Address::Server(server),
                    _ => Address::Nothing,
                },
                progress: call.progress,
            }),
            Ask::Ping | Ask::ListTools | Ask::Open(_) => Request::Plain,
        }
    }
}

impl Plan {
    /// The plan of a seed for so many servers.
    pub(crate) fn new(random: Random, servers: usize) -> Self {
        Self {
            random,
            servers,
            next_id: 1,
            next_nonce: 1,
        }
    }

    pub(crate) fn step(&mut self) -> Step {
        let id = self.fresh_id();
        let one = |ask| Step::Requests(vec![Planned { id, ask }], None);
        match self.random.below(1000) {
            0..=24 => one(Ask::Ping),
            25..=34 => one(Ask::ListTools),
            35..=54 => one(Ask::Open(self.random.index(TOOLBOXES.len()))),
            55..=58 => Step::Garbage,
            59..=73 => {
                let target = self.missing();
                one(Ask::Call(self.call(Tool::Echo, target)))
            }
            74..=83 => {
                let both = [self.any_call(), self.any_call()];
                self.calls(id, both.into())
            }
            _ => {
                let call = self.any_call();
                self.calls(id, vec![call])
            }
        }
    }

    /// The opening of a toolbox.
    pub(crate) fn open(&mut self, toolbox: usize) -> Planned {
        Planned {
            id: self.fresh_id(),
            ask: Ask::Open(toolbox),
        }
    }

    /// Returns a call that shows if a server is alive.
    pub(crate) fn probe(&mut self, server: ServerIndex) -> Planned {
        Planned {
            id: self.fresh_id(),
            ask: Ask::Call(self.call(Tool::Echo, Target::Server(server))),
        }
    }

    /// Returns the calls that run when stdin ends, one per server. Some of them never end by themselves.
    pub(crate) fn last_requests(&mut self) -> Vec<Planned> {
        let servers = (0..self.servers).map(ServerIndex);
        let planned = servers.map(|server| {
            let tool = match server.0 % 3 {
                0 => Tool::Sleep,
                1 => Tool::Hang,
                _ => Tool::Steps,
            };
            let call = self.call(tool, Target::Server(server));
            let id = self.fresh_id();
            let ask = Ask::Call(call);
            Planned { id, ask }
        });
        planned.collect()
    }

    fn fresh_id(&mut self) -> Id {
        self.next_id += 1;
        Id(self.next_id - 1)
    }

    fn calls(&mut self, id: Id, calls: Vec<PlannedCall>) -> Step {
        // A call that hangs ends only when it is cancelled.
        let hangs = calls.iter().any(|call| call.tool == Tool::Hang);
        let cancel = hangs || self.random.one_in(20);
        let after = cancel.then(|| self.random.below(CANCEL_WITHIN));
        let asks = calls.into_iter().map(Ask::Call);
        Step::Requests(asks.map(|ask| Planned { id, ask }).collect(), after)
    }

    fn any_call(&mut self) -> PlannedCall {
        let tool = Tool::random(&mut self.random);
        let target = Target::Server(self.any_server());
        self.call(tool, target)
    }

    fn call(&mut self, tool: Tool, target: Target) -> PlannedCall {
        self.next_nonce += 1;
        let progress = match tool {
            Tool::Steps | Tool::LateProgress => ProgressWish::Wanted,
            _ if self.random.one_in(10) => ProgressWish::Wanted,
            _ => ProgressWish::Unwanted,
        };
        PlannedCall {
            nonce: Nonce(self.next_nonce - 1),
            tool,
            target,
            ms: self.random.below(15),
            length: self.length(),
            progress,
        }
    }

    fn length(&mut self) -> usize {
        match self.random.below(1000) {
            0..=1 => VERY_LARGE,
            2..=21 => LARGE,
            _ => usize::try_from(self.random.below(SMALL)).expect("small"),
        }
    }

    fn any_server(&mut self) -> ServerIndex {
        ServerIndex(self.random.index(self.servers))
    }

    fn missing(&mut self) -> Target {
        match self.random.below(3) {
            0 => Target::MissingToolbox,
            1 => Target::MissingServer,
            _ => Target::MissingTool(self.any_server()),
        }
    }
}
