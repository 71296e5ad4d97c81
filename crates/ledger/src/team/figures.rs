//! The figures of a team: requests per second and the 99th percentile with one, two and three replicas, and the memory of ten thousand
//! sessions on one replica.

use std::{fmt, time::Duration};

use serde_json::json;

use super::{
    TeamError, TeamOptions,
    load::{self, HttpClient, Throughput},
    place::{Place, REPLICAS},
};
use crate::processes::Footprint;

/// The connections of quick calls, and of slow ones.
const CONNECTIONS: usize = 32;
const SLOW_CONNECTIONS: usize = 256;
/// How long a slow call takes, in milliseconds.
const SLOW_MS: u64 = 50;
const WARM_UP: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(10);
const SESSIONS: usize = 10_000;
/// The sessions before the memory is measured first, so that buffers are there.
const FIRST_SESSIONS: usize = 100;
const REVISION: &str = "2026-07-28";

#[derive(Debug)]
pub struct Figures {
    /// Calls that are answered at once, with one replica, with two, and so on.
    pub quick: Vec<Throughput>,
    /// Calls that take a while, of which a user has at most 48 at once at the server of each replica.
    pub slow: Vec<Throughput>,
    /// The bytes of a session.
    pub session_bytes: u64,
    /// The sessions that were begun, and that answered afterwards.
    pub sessions: usize,
    pub answered: usize,
}

/// Measures a team. The machine should do nothing else.
pub fn measure(options: &TeamOptions) -> Result<Figures, TeamError> {
    let (mut quick, mut slow) = (Vec::new(), Vec::new());
    for replicas in 1..=REPLICAS {
        let mut place = Place::without_users(options)?;
        place.start_some(replicas)?;
        place.start_balancer("1s")?;
        for (connections, tool, throughput) in [
            (CONNECTIONS, "echo", &mut quick),
            (SLOW_CONNECTIONS, "sleep", &mut slow),
        ] {
            let (headers, body) = call(tool);
            let measure =
                |time| load::measure(place.balancer(), connections, time, &headers, &body);
            let failed = || TeamError::NotUp("an answer to every request".to_owned());
            measure(WARM_UP).ok_or_else(failed)?;
            throughput.push(measure(TIME).ok_or_else(failed)?);
        }
    }
    let mut place = Place::without_users(options)?;
    place.start_some(1)?;
    let address = place.replica(0).address.clone();
    let pid = place.pid(0);
    let memory = || Footprint::of(pid).map_or(0, |it| it.resident_kib * 1024);
    let mut client = HttpClient::connect(&address)?;
    let mut ids = begin(&mut client, FIRST_SESSIONS)?;
    let before = memory();
    ids.extend(begin(&mut client, SESSIONS)?);
    let session_bytes = memory().saturating_sub(before) / SESSIONS as u64;
    let mut answered = 0;
    for id in &ids {
        let headers = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        answered += usize::from(client.post(&headers, ping)?.status == 200);
    }
    Ok(Figures {
        quick,
        slow,
        session_bytes,
        sessions: ids.len(),
        answered,
    })
}

/// Begins sessions, and returns their ids.
fn begin(client: &mut HttpClient, sessions: usize) -> Result<Vec<String>, TeamError> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}, "roots": {"listChanged": true}, "sampling": {}},
        "clientInfo": {"name": "ledger", "version": "1"},
    }});
    let body = body.to_string();
    let mut ids = Vec::new();
    for _ in 0..sessions {
        let begun = client.post("", &body)?;
        let refused = || TeamError::NotUp(format!("session {}", ids.len()));
        let id = begun.session.ok_or_else(refused)?;
        ids.push(id);
    }
    Ok(ids)
}

/// Returns the headers and the body of a call without a session.
fn call(tool: &str) -> (String, String) {
    let headers = format!(
        "MCP-Protocol-Version: {REVISION}\r\nMcp-Method: tools/call\r\nMcp-Name: use_tool\r\n"
    );
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "ledger", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let tool = json!({"toolbox": "team", "server": "ledger", "tool": tool});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "use_tool", "arguments": {"tool": tool, "arguments": {"ms": SLOW_MS}}, "_meta": meta,
    }});
    (headers, body.to_string())
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, throughput) in [("quick", &self.quick), ("slow", &self.slow)] {
            let first = throughput.first();
            for (index, it) in throughput.iter().enumerate() {
                let ratio = first.map_or(1.0, |first| it.per_second / first.per_second);
                let p99 = first.map_or(1.0, |first| it.p99_ms / first.p99_ms);
                writeln!(
                    f,
                    "{what} calls, {} replicas: {:.0} per second ({ratio:.2}), p99 {:.1} ms ({p99:.2})",
                    index + 1,
                    it.per_second,
                    it.p99_ms
                )?;
            }
        }
        writeln!(f, "memory per session: {} bytes", self.session_bytes)?;
        writeln!(
            f,
            "sessions held: {}, of which answered: {}",
            self.sessions, self.answered
        )
    }
}
