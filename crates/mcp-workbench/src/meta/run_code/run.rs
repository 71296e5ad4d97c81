//! A run: one worker, the calls that its script makes, and the time that it has.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use rawjson::{ObjectText, RawJson};
use script::{End, FromWorker, Limits, Position, Request, ToWorker, tool_name};
use serde_json::value::RawValue;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    caller::{ScriptCaller, SharedCall, SharedRun},
    emitted::Parts,
    inner_call::InnerCall,
    value::CallValue,
};
use crate::{
    call::{CallContext, CallReports},
    config::MetaTool,
    contain::contain,
    scripts::{RunSlot, StartError, Worker, WorkerGone},
    workbench::{Workbench, count},
};

/// The bounds of a script.
pub(super) const LIMITS: Limits = Limits {
    cpu_ms: 2000,
    heap_bytes: 64 * 1024 * 1024,
    stack_bytes: 512 * 1024,
    calls: 100,
    result_bytes: 32 * 1024,
    log_bytes: 8 * 1024,
};

/// The maximum number of bytes of all results that a script gets.
const MAX_TOTAL_RESULT_BYTES: usize = 16 * 1024 * 1024;
/// A run that takes longer reports its progress.
const QUIET_TIME: Duration = Duration::from_secs(10);
/// The time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// The time between the end of a run and the start of the next worker. Starting a process holds up the event loop for about
/// half a millisecond, and the answer to the client goes first.
const REPLACE_DELAY: Duration = Duration::from_millis(5);
/// The number of random bytes in the id of a run.
const ID_BYTES: usize = 6;

/// The outcome of a run.
pub(crate) struct RunReport {
    pub(super) end: RunEnd,
    /// The lines that the script has logged.
    pub(crate) logs: Vec<String>,
    /// The content that the script has emitted.
    pub(crate) emitted: Vec<RawJson>,
    pub(super) calls: Vec<CallRecord>,
    pub(super) duration: Duration,
}

/// The way in which a run ended.
pub(super) enum RunEnd {
    Script(End),
    /// The worker ended before its script.
    WorkerGone(WorkerGone),
    TimeLimit(Duration),
}

/// A call of the script.
pub(super) struct CallRecord {
    pub(super) call: Arc<SharedCall>,
    pub(super) at: Option<Position>,
    pub(super) writes: bool,
    pub(super) state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallState {
    Running,
    /// It waited for the user when the run ended, and is not at its server.
    NotSent,
    Completed,
    /// It failed; true if it may have had an effect.
    Failed {
        is_unknown: bool,
    },
}

/// Runs a script to its end. Dropping the future kills the worker and cancels the calls.
pub(crate) async fn run_script(
    workbench: &Arc<Workbench>,
    code: &str,
    time_limit: Duration,
    context: &CallContext,
) -> Result<RunReport, StartError> {
    let (mut worker, slot) = workbench.scripts().take()?;
    let shared = Arc::new(SharedRun {
        id: new_id(),
        open_questions: watch::channel(0).0,
        began: Instant::now(),
        reported: Mutex::default(),
    });
    // First, so that the worker starts while the rest is prepared.
    worker.send(&ToWorker::Run {
        code: code.into(),
        limits: LIMITS,
    });
    let mut run = Run {
        workbench: Arc::clone(workbench),
        worker,
        _slot: slot,
        _consents: RunConsents {
            workbench: Arc::clone(workbench),
            run: Arc::clone(&shared.id),
        },
        meta: meta_of_calls(context),
        context,
        running: JoinSet::new(),
        calls: Vec::new(),
        logs: Vec::new(),
        logged: 0,
        parts: Parts::default(),
        received: 0,
        shared: Arc::clone(&shared),
    };
    let end = run
        .drive(time_limit, shared.open_questions.subscribe())
        .await;
    run.mark_unsent();
    let report = RunReport {
        end,
        logs: run.logs,
        emitted: run.parts.into_emitted(),
        calls: run.calls,
        duration: shared.began.elapsed(),
    };
    // Each worker runs one script, so nothing of a script can reach the next.
    workbench.spawn(replace_worker(Arc::clone(workbench)));
    Ok(report)
}

/// Returns the `_meta` of the calls of a run: that of its request, with the operation of the run as their parent.
fn meta_of_calls(context: &CallContext) -> Option<RawJson> {
    let span = context.reports.span();
    let Some(trace) = span.and_then(|span| span.trace.as_ref()) else {
        return context.meta.clone();
    };
    let meta = context.meta.clone();
    let meta = meta.unwrap_or_else(|| ObjectText::new().finish());
    Some(trace.put_on(&meta))
}

/// Starts the worker of the next run, after the client of this run got its answer.
async fn replace_worker(workbench: Arc<Workbench>) {
    sleep(REPLACE_DELAY).await;
    // The command `run` needs no second worker, and a reload may have switched scripts off.
    if workbench.config().meta_tools.contains(&MetaTool::RunCode) {
        workbench.scripts().warm_up();
    }
}

struct Run<'a> {
    workbench: Arc<Workbench>,
    worker: Worker,
    _slot: RunSlot,
    shared: Arc<SharedRun>,
    context: &'a CallContext,
    /// The `_meta` of its calls.
    meta: Option<RawJson>,
    running: JoinSet<Finished>,
    calls: Vec<CallRecord>,
    logs: Vec<String>,
    /// The bytes of the lines that the script has logged.
    logged: usize,
    parts: Parts,
    /// The bytes of the results that the script got.
    received: usize,
    // After the calls: none of them can add a consent then.
    _consents: RunConsents,
}

/// A call that has ended.
struct Finished {
    /// Its place among the calls of the run.
    at: usize,
    id: u32,
    writes: bool,
    result: Result<CallValue, script::Failure>,
}

/// The consents that the user gave for this run. They end with it, however it ends.
struct RunConsents {
    workbench: Arc<Workbench>,
    run: Arc<str>,
}

impl Drop for RunConsents {
    fn drop(&mut self) {
        self.workbench.forget_run(&self.run);
    }
}

impl Run<'_> {
    /// Answers the worker until the script ends, or its time.
    async fn drive(
        &mut self,
        time_limit: Duration,
        mut questions: watch::Receiver<usize>,
    ) -> RunEnd {
        // The run ends with its script, its worker or its time. Calls that are still running then are dropped with it,
        // which cancels them.
        let mut clock = Clock::new(time_limit);
        let mut next_report = self.shared.began + QUIET_TIME;
        loop {
            tokio::select! {
                message = self.worker.next() => match message {
                    Ok(FromWorker::Ready) => {}
                    Ok(FromWorker::NotConfined(reason)) => {
                        return RunEnd::WorkerGone(WorkerGone::NotConfined(reason));
                    }
                    Ok(FromWorker::Log(line)) => self.log(line),
                    Ok(FromWorker::Call(request)) => self.take(request),
                    Ok(FromWorker::Emit { id, reference }) => self.emit(id, &reference),
                    Ok(FromWorker::End(end)) => return RunEnd::Script(end),
                    Err(gone) => return RunEnd::WorkerGone(gone),
                },
                Some(Ok(finished)) = self.running.join_next() => self.finish(finished),
                () = clock.over() => return RunEnd::TimeLimit(time_limit),
                // A user who thinks about a question must not use up the time of the script.
                Ok(()) = questions.changed() => clock.run_if(*questions.borrow_and_update() == 0),
                () = sleep_until(next_report) => {
                    self.report();
                    next_report += REPORT_INTERVAL;
                }
            }
        }
    }

    fn log(&mut self, line: String) {
        // The worker bounds the output too, but a compromised worker would not.
        if self.logged + line.len() <= LIMITS.log_bytes + 100 {
            self.logged += line.len() + 1;
            self.logs.push(line);
        }
    }

    /// Handles a call of the script.
    fn take(&mut self, request: Request) {
        let Request {
            id,
            called,
            arguments,
            at,
        } = request;
        let shared = Arc::new(SharedCall::new(function_name(&called)));
        // Parsing the message has checked the JSON.
        let arguments = RawJson::trusted(arguments.get().to_owned().into());
        let call = InnerCall::new(&self.workbench, &called, arguments);
        let (state, writes) = match &call {
            Ok(call) => (CallState::Running, call.target.writes(&self.workbench)),
            Err(_) => (CallState::Failed { is_unknown: false }, false),
        };
        let place = self.calls.len();
        self.calls.push(CallRecord {
            call: Arc::clone(&shared),
            at,
            writes,
            state,
        });
        match call {
            Ok(call) => self.begin(place, id, call, shared),
            Err(failure) => self.worker.send(&ToWorker::Failed { id, failure }),
        }
    }

    /// Begins a call. All calls of a run are made at once; each server has its own bound.
    fn begin(&mut self, at: usize, id: u32, call: InnerCall, shared: Arc<SharedCall>) {
        let caller = ScriptCaller {
            client: Arc::clone(&self.context.client),
            run: Arc::clone(&self.shared),
            call: shared,
        };
        let context = CallContext {
            client: Arc::new(caller),
            meta: self.meta.clone(),
            retry: None,
            reports: CallReports::default(),
        };
        let workbench = Arc::clone(&self.workbench);
        let target = call.target.clone();
        let made = call.make(at + 1, Arc::clone(&workbench), context);
        self.running.spawn(async move {
            let result = contain(made)
                .await
                .unwrap_or_else(|panicked| Err(internal(&panicked.to_string())));
            Finished {
                at,
                id,
                // Determined again at the end: the server may list its tools only during the call.
                writes: target.writes(&workbench),
                result,
            }
        });
    }

    /// Marks the calls that wait for the user at the end of the run, before they are dropped.
    fn mark_unsent(&mut self) {
        for call in &mut self.calls {
            if call.state == CallState::Running && call.call.waits_for_user() {
                call.state = CallState::NotSent;
            }
        }
    }

    /// Gives the script the result of a call.
    fn finish(&mut self, finished: Finished) {
        let Finished {
            at,
            id,
            writes,
            result,
        } = finished;
        self.calls[at].writes = writes;
        self.calls[at].state = match &result {
            Ok(_) => CallState::Completed,
            Err(failure) => CallState::Failed {
                is_unknown: failure.outcome.as_deref() == Some("unknown"),
            },
        };
        let value = result.and_then(|CallValue { json, parts }| {
            let of_parts = parts.iter().map(|it| it.block.as_bytes().len());
            self.received += json.as_bytes().len() + of_parts.sum::<usize>();
            // Results are held in memory twice, here and in the worker.
            if self.received > MAX_TOTAL_RESULT_BYTES {
                return Err(too_much());
            }
            self.parts.add(parts);
            Ok(json)
        });
        self.answer(id, value);
    }

    /// Emits a part of a result, and says whether that was possible.
    fn emit(&mut self, id: u32, reference: &str) {
        let emitted = self.parts.emit(reference);
        self.answer(id, emitted.map(|()| RawJson::of(&())));
    }

    /// Sends the script the answer to a request.
    fn answer(&mut self, id: u32, value: Result<RawJson, script::Failure>) {
        let value = value.and_then(|json| {
            RawValue::from_string(json.as_str().to_owned())
                .map_err(|_| internal("the result is not valid JSON"))
        });
        match value {
            Ok(value) => self.worker.send(&ToWorker::Value { id, value: &value }),
            Err(failure) => self.worker.send(&ToWorker::Failed { id, failure }),
        }
    }

    /// Reports the progress of the run, if the client wants that.
    fn report(&self) {
        let is = |state: CallState| self.calls.iter().filter(|it| it.state == state).count();
        let completed = count(is(CallState::Completed), "call");
        let message = format!("{completed} completed, {} running", is(CallState::Running));
        self.shared.report(&*self.context.client, &message);
    }
}

/// The time of a run. It stands still while the client is asked.
struct Clock {
    remaining: Duration,
    /// The moment since which it runs; `None` while it stands still.
    since: Option<Instant>,
}

impl Clock {
    fn new(remaining: Duration) -> Self {
        Self {
            remaining,
            since: Some(Instant::now()),
        }
    }

    fn run_if(&mut self, runs: bool) {
        if let Some(since) = self.since.take() {
            self.remaining = self.remaining.saturating_sub(since.elapsed());
        }
        self.since = runs.then(Instant::now);
    }

    /// Waits until the time is over. Cancel-safe.
    async fn over(&self) {
        match self.since {
            Some(since) => sleep_until(since + self.remaining).await,
            None => pending().await,
        }
    }
}

/// Returns a function as a script writes it.
fn function_name(called: &script::Called) -> String {
    match called {
        script::Called::Tool { server, tool } => tool_name(server, tool),
        script::Called::Search => "tools.search".to_owned(),
        script::Called::Describe => "tools.describe".to_owned(),
        script::Called::ReadResult => "results.read".to_owned(),
    }
}

fn too_much() -> script::Failure {
    script::Failure {
        code: "result_too_large".to_owned(),
        outcome: None,
        message: format!(
            "the results of this run are larger than {} MB together: ask for less",
            MAX_TOTAL_RESULT_BYTES / (1024 * 1024)
        ),
    }
}

fn internal(message: &str) -> script::Failure {
    script::Failure {
        code: "internal_error".to_owned(),
        // A panic may have come after the call was sent.
        outcome: Some("unknown".to_owned()),
        message: message.to_owned(),
    }
}

fn new_id() -> Arc<str> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes[8 - ID_BYTES..]).expect("the system has random numbers");
    format!("{:012x}", u64::from_be_bytes(bytes)).into()
}
