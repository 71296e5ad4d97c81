//! Runs all rows for one kind of server in one mode: one workbench, with one server for each row.

use serde_json::{Value, json};

use super::{
    client::{Client, Decision, Reply, Step},
    remote::RemoteServers,
    stdio::StdioServers,
    table::{ClientEra, Expected, Mode, Row, Rule, ServerKind, Trigger, rows},
};
use crate::harness::{Setup, TIMEOUT, Workbench, poll};

/// How many rows go through the event at the same time. The workbench gives up on a list that takes too long, so the
/// list of the last row must not be delayed for long.
const AT_ONCE: usize = 20;

/// The servers of all rows.
pub(super) trait Servers {
    /// Returns what the server of a row saw and did, in order: `list` (a request for it), `call STEP`, `refused` (a call
    /// that it did not run), `changed` (when no call was running).
    fn log(&self, row: &Row) -> Vec<String>;

    /// Makes the server delay the answers to `tools/list`.
    fn delay_list(&self, row: &Row);

    /// Makes the server answer `tools/list`.
    fn release_list(&self, row: &Row);

    /// Makes the event happen while no call is running.
    fn change(&self, row: &Row);

    /// Forgets that the servers were started for the approval.
    fn forget_starts(&self);
}

/// One kind of server behind a workbench with one kind of client.
struct Cell {
    rows: Vec<Row>,
    servers: Box<dyn Servers>,
    client: Client,
}

/// Runs the table for one kind of server, and reports all rows that are not as expected.
#[track_caller]
pub(super) fn check(kind: ServerKind) {
    let mut failures = Vec::new();
    for mode in Mode::ALL {
        for era in ClientEra::ALL {
            let cell = Cell::start(kind, mode, era);
            let failed = cell.run().into_iter();
            failures.extend(failed.map(|it| format!("{mode:?}, {era:?} client: {it}")));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} rows failed for {kind:?}:\n{}",
        failures.join("\n")
    );
}

impl Cell {
    fn start(kind: ServerKind, mode: Mode, era: ClientEra) -> Self {
        let rows = rows(kind);
        let setup = Setup::new().toolbox("dev", "Development tools");
        let (setup, servers): (Setup, Box<dyn Servers>) = match kind {
            ServerKind::LegacyStdio | ServerKind::ModernStdio => {
                let (setup, servers) = StdioServers::add(setup, kind, &rows);
                (setup, Box::new(servers))
            }
            ServerKind::LegacyHttp | ServerKind::ModernHttp | ServerKind::Sse => {
                let (setup, servers) = RemoteServers::add(setup, kind, &rows);
                (setup, Box::new(servers))
            }
        };
        approve(&setup, &rows);
        servers.forget_starts();
        Self {
            rows,
            servers,
            client: Client::start(setup, mode, era),
        }
    }

    /// Takes all rows through the event, and returns those that fail.
    fn run(mut self) -> Vec<String> {
        let rows = self.rows.clone();
        let chunks = rows.chunks(AT_ONCE);
        chunks.flat_map(|rows| self.run_rows(rows)).collect()
    }

    fn run_rows(&mut self, rows: &[Row]) -> Vec<String> {
        let steps = [
            Self::prepare,
            Self::begin_event,
            Self::end_event,
            Self::judge,
        ];
        let mut failures = Vec::new();
        let mut rows = rows.to_vec();
        for step in steps {
            rows.retain(|row| {
                let failure = step(self, row).err();
                failures.extend(failure.iter().map(|why| self.report(row, why)));
                failure.is_none()
            });
        }
        failures
    }

    fn report(&self, row: &Row, why: &str) -> String {
        let Row {
            event,
            change,
            rule,
            expected,
            ..
        } = row;
        let log = self.servers.log(row).join(", ");
        format!("{event:?}, {change:?}, {rule:?}: {why}; expected {expected:?} [{log}]")
    }

    /// Calls the tool before the event, and consents for the session where the user is asked.
    fn prepare(&mut self, row: &Row) -> Result<(), String> {
        let sent = self.client.send(row, Step::Before);
        let reply = match (self.client.reply(&sent)?, row.rule) {
            (Reply::Asked(question), Rule::AskAll) => {
                let sent = self
                    .client
                    .decide(sent, &question, Decision::ForThisSession);
                self.client.reply(&sent)?
            }
            (reply, _) => reply,
        };
        is_run(&reply).map_err(|why| format!("before the event {why}"))
    }

    fn begin_event(&mut self, row: &Row) -> Result<(), String> {
        if row.trigger == Trigger::BetweenCalls {
            // An announcement reaches nobody before the workbench has subscribed.
            self.wait_for(row, "stream", 1)?;
        }
        if row.trigger.delays_the_list() {
            self.servers.delay_list(row);
        }
        match row.trigger {
            Trigger::DuringCall => {
                let sent = self.client.send(row, Step::Event);
                let reply = self.client.reply(&sent)?;
                is_run(&reply).map_err(|why| format!("during the event {why}"))
            }
            Trigger::EndsCall => {
                let sent = self.client.send(row, Step::Event);
                match self.client.reply(&sent)? {
                    Reply::Refused(_) => Ok(()),
                    Reply::Ran | Reply::Asked(_) => Err("the event did not happen".to_owned()),
                }
            }
            Trigger::BetweenCalls => {
                self.servers.change(row);
                Ok(())
            }
            Trigger::RefusesCall => Ok(()),
        }
    }

    /// Waits until the workbench has noticed the event, where nothing else orders it before the checked call.
    fn end_event(&mut self, row: &Row) -> Result<(), String> {
        match row.trigger {
            Trigger::BetweenCalls => {
                let lists = self.count_before(row, "list", "changed");
                self.wait_for(row, "list", lists + 1)
            }
            Trigger::DuringCall | Trigger::EndsCall | Trigger::RefusesCall => Ok(()),
        }
    }

    /// Calls the tool after the event.
    fn judge(&mut self, row: &Row) -> Result<(), String> {
        let sent = self.client.send(row, Step::After);
        let mut is_early = false;
        if row.trigger.delays_the_list() {
            self.client.settle();
            is_early = self.has_run(row, Step::After);
            self.servers.release_list(row);
        }
        let reply = self.client.reply(&sent)?;
        match (row.expected, reply) {
            (Expected::Runs, Reply::Ran) => {}
            (Expected::Refused(code), Reply::Refused(given)) => {
                self.is_refusal(code, &given)?;
            }
            (Expected::Asks, Reply::Asked(question)) => {
                let sent = self.client.decide(sent, &question, Decision::No);
                let reply = self.client.reply(&sent)?;
                is_refused_with(&reply, "permission_refused")?;
                self.ask_again(row)?;
            }
            (_, Reply::Asked(question)) => {
                let sent = self.client.decide(sent, &question, Decision::No);
                self.client.reply(&sent)?;
                return Err("the user was asked".to_owned());
            }
            (_, reply) => return Err(describe(&reply)),
        }
        if is_early {
            return Err("it was sent before the new list was read".to_owned());
        }
        self.check_log(row)
    }

    /// Calls the tool once more after the user has said no, and lets it run.
    fn ask_again(&mut self, row: &Row) -> Result<(), String> {
        let sent = self.client.send(row, Step::Again);
        let Reply::Asked(question) = self.client.reply(&sent)? else {
            return Err("the user was not asked again".to_owned());
        };
        let sent = self.client.decide(sent, &question, Decision::Once);
        let reply = self.client.reply(&sent)?;
        is_run(&reply).map_err(|why| format!("after the consent {why}"))
    }

    /// Checks a refusal. A client in native mode that calls a name which is no longer offered may get a JSON-RPC error.
    fn is_refusal(&self, code: &str, given: &str) -> Result<(), String> {
        let is_unknown_name = self.client.is_native()
            && given == "-32602"
            && matches!(code, "tool_unknown" | "tool_not_approved");
        if given == code || is_unknown_name {
            return Ok(());
        }
        Err(format!("it was refused with {given}"))
    }

    /// Checks what the server saw: that the call ran as often as it should, and after the list was read.
    fn check_log(&self, row: &Row) -> Result<(), String> {
        let log = self.servers.log(row);
        let count = |step: Step| {
            let entry = format!("call {}", step.name());
            log.iter().filter(|it| **it == entry).count()
        };
        let expected = match row.expected {
            Expected::Runs => (1, 0),
            Expected::Asks => (0, 1),
            Expected::Refused(_) => (0, 0),
        };
        if (count(Step::After), count(Step::Again)) != expected {
            return Err("the server did not run it as often as it should".to_owned());
        }
        let marker = match row.trigger {
            Trigger::DuringCall | Trigger::EndsCall => "call event",
            Trigger::BetweenCalls => "changed",
            Trigger::RefusesCall => "refused",
        };
        let event = log.iter().position(|it| it == marker);
        let event = event.ok_or("the event did not happen")?;
        let mut later = log[event..].iter();
        let first = later.find(|it| *it == "list" || it.starts_with("call a"));
        match first.map(String::as_str) {
            Some("list") => Ok(()),
            _ => Err("the new list was not read before the call was sent".to_owned()),
        }
    }

    fn has_run(&self, row: &Row, step: Step) -> bool {
        let entry = format!("call {}", step.name());
        self.servers.log(row).contains(&entry)
    }

    fn count_before(&self, row: &Row, entry: &str, marker: &str) -> usize {
        let log = self.servers.log(row);
        let before = log.iter().take_while(|it| *it != marker);
        before.filter(|it| *it == entry).count()
    }

    fn wait_for(&self, row: &Row, entry: &str, count: usize) -> Result<(), String> {
        let seen = poll(TIMEOUT, || {
            let log = self.servers.log(row);
            (log.iter().filter(|it| *it == entry).count() >= count).then_some(())
        });
        seen.ok_or_else(|| format!("the server never saw {count} × {entry}"))
    }
}

/// Pins the tools of the rows that need it, as they are before the event.
fn approve(setup: &Setup, rows: &[Row]) {
    let mut config: Value = serde_json::from_str(&setup.config_text()).unwrap();
    let servers = config["toolboxes"]["dev"]["mcpServers"]
        .as_object_mut()
        .unwrap();
    for row in rows {
        match row.rule {
            Rule::Enforce => servers[&row.server()]["pin"] = json!("notice"),
            Rule::Notice
            | Rule::DenyDestructive
            | Rule::AllowReadOnly
            | Rule::AskAll
            | Rule::AskDestructive => {
                servers.remove(&row.server());
            }
        }
    }
    std::fs::write(setup.config(), config.to_string()).unwrap();
    let mut command = setup.command();
    command.arg("--config").arg(setup.config());
    let mut workbench = Workbench::spawn(command, Setup::new());
    workbench.initialize();
    workbench.open("dev").json();
    assert!(workbench.finish().status.success());
}

fn is_run(reply: &Reply) -> Result<(), String> {
    match reply {
        Reply::Ran => Ok(()),
        Reply::Refused(_) | Reply::Asked(_) => Err(describe(reply)),
    }
}

fn is_refused_with(reply: &Reply, code: &str) -> Result<(), String> {
    match reply {
        Reply::Refused(given) if given == code => Ok(()),
        Reply::Ran | Reply::Refused(_) | Reply::Asked(_) => Err(describe(reply)),
    }
}

fn describe(reply: &Reply) -> String {
    match reply {
        Reply::Ran => "it ran".to_owned(),
        Reply::Refused(code) => format!("it was refused with {code}"),
        Reply::Asked(_) => "the user was asked".to_owned(),
    }
}
