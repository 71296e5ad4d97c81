//! The JavaScript engine: a realm without anything that reaches outside, in which one script runs. Its jobs are driven
//! here, so that a script that only queues microtasks is stopped like any other.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Promise, Runtime, Value,
    context::{ContextBuilder, EvalOptions, intrinsic},
    promise::PromiseState,
};
use serde_json::value::RawValue;

use crate::{
    cpu_time::cpu_time,
    message::{Called, End, Failure, FromWorker, Limits, MAX_ARGUMENT_BYTES, Request, Thrown},
    position::{FILE, in_stack},
};

const PRELUDE: &str = include_str!("prelude.js");

/// The source in front of a script that is the body of a function. It is on the script's first line, so that lines
/// keep their numbers.
const BODY: &str = "(async()=>{";
/// The source in front of a script that is a function itself.
const EXPRESSION: &str = "(";

/// The number of jobs between two looks at the clock, which costs as much as a short job.
const JOBS_PER_LOOK: u32 = 64;

/// The parts of the language that a script has. Shared and typed memory are left out: scripts that call tools do not
/// need them, and most memory faults of the engine were there.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::Promise,
);

/// The messages that a script has caused and that are not sent yet.
pub(crate) type Outgoing = Rc<RefCell<Vec<FromWorker>>>;

/// An engine that can run one script.
pub(crate) struct Engine {
    runtime: Runtime,
    context: Context,
    clock: Rc<Clock>,
}

/// The CPU time of the script.
#[derive(Default)]
struct Clock {
    until: Cell<Duration>,
    is_over: Cell<bool>,
}

impl Clock {
    /// Returns whether the time is over, from now on for ever.
    fn look(&self) -> bool {
        if !self.is_over.get() && self.until.get() > Duration::ZERO {
            self.is_over.set(cpu_time() >= self.until.get());
        }
        self.is_over.get()
    }
}

/// The answer of the host to a call.
pub(crate) enum Answer<'a> {
    Value { id: u32, json: &'a str },
    Failed { id: u32, failure: &'a Failure },
}

impl Engine {
    pub(crate) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        let context = ContextBuilder::default()
            .with::<Language>()
            .build(&runtime)?;
        let clock = Rc::new(Clock::default());
        let looked_at = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || looked_at.look())));
        Ok(Self {
            runtime,
            context,
            clock,
        })
    }

    /// Runs a script to its end. `exchange` sends what is outgoing and returns when the host has answered a call; it
    /// gets a function that takes the answer.
    pub(crate) fn run<E>(
        &self,
        code: &str,
        limits: &Limits,
        outgoing: &Outgoing,
        mut exchange: impl FnMut(&dyn Fn(Answer<'_>)) -> Result<(), E>,
    ) -> Result<End, E> {
        self.runtime.set_memory_limit(limits.heap_bytes);
        self.runtime.set_max_stack_size(limits.stack_bytes);
        self.clock
            .until
            .set(cpu_time() + Duration::from_millis(limits.cpu_ms));
        self.context.with(|ctx| {
            let started = Started::new(&ctx, code, limits, outgoing);
            let started = match started {
                Ok(started) => started,
                Err(end) => return Ok(self.judged(end)),
            };
            loop {
                self.run_jobs(&ctx);
                if let Some(end) = self.end(&ctx, &started, limits) {
                    return Ok(end);
                }
                if started.open.get() == 0 {
                    return Ok(End::Deadlock);
                }
                exchange(&|answer| started.settle(&answer))?;
            }
        })
    }

    /// Runs the jobs that are due.
    fn run_jobs(&self, ctx: &Ctx<'_>) {
        let mut jobs = 0_u32;
        while ctx.execute_pending_job() {
            jobs += 1;
            if jobs.is_multiple_of(JOBS_PER_LOOK) && self.clock.look() {
                return;
            }
        }
    }

    /// Returns the end of the script, if it has ended.
    fn end<'js>(&self, ctx: &Ctx<'js>, started: &Started<'js>, limits: &Limits) -> Option<End> {
        if self.clock.look() {
            return Some(End::CpuLimit { at: None });
        }
        let end = match started.main.state() {
            PromiseState::Pending => return None,
            PromiseState::Resolved | PromiseState::Rejected => {
                match started.main.result::<Value<'js>>()?.catch(ctx) {
                    Ok(value) => end_with(ctx, value, limits, started.added),
                    Err(error) => thrown(&error, started.added),
                }
            }
        };
        Some(self.judged(end))
    }

    /// Replaces an end that was caused by the end of the CPU time, which looks like an exception.
    fn judged(&self, end: End) -> End {
        match end {
            End::Thrown(thrown) if self.clock.look() => End::CpuLimit { at: thrown.at },
            end => end,
        }
    }
}

/// A script that has begun.
struct Started<'js> {
    main: Promise<'js>,
    /// The number of characters in front of the script on its first line.
    added: u32,
    /// The number of calls that the host has not answered.
    open: Rc<Cell<u32>>,
    resolve: Function<'js>,
    reject: Function<'js>,
}

impl<'js> Started<'js> {
    fn new(ctx: &Ctx<'js>, code: &str, limits: &Limits, outgoing: &Outgoing) -> Result<Self, End> {
        let open = Rc::new(Cell::new(0));
        let added = Rc::new(Cell::new(0));
        let install = || install(ctx, limits, outgoing, &open, &added);
        let settlers = install().catch(ctx).map_err(|error| thrown(&error, 0))?;
        let main = evaluate(ctx, code, &added)?;
        Ok(Self {
            main,
            added: added.get(),
            open,
            resolve: settlers.resolve,
            reject: settlers.reject,
        })
    }

    /// Gives the script the answer to a call.
    fn settle(&self, answer: &Answer<'_>) {
        self.open.set(self.open.get().saturating_sub(1));
        // An exception here is the end of memory or time, which the next look finds.
        let _: rquickjs::Result<()> = match answer {
            Answer::Value { id, json } => self.resolve.call((*id, *json)),
            Answer::Failed { id, failure } => self.reject.call((
                *id,
                failure.code.as_str(),
                failure.outcome.as_deref(),
                failure.message.as_str(),
            )),
        };
    }
}

/// The functions of the prelude that settle calls.
struct Settlers<'js> {
    resolve: Function<'js>,
    reject: Function<'js>,
}

/// Runs the prelude, which gives the script its functions.
fn install<'js>(
    ctx: &Ctx<'js>,
    limits: &Limits,
    outgoing: &Outgoing,
    open: &Rc<Cell<u32>>,
    added: &Rc<Cell<u32>>,
) -> rquickjs::Result<Settlers<'js>> {
    let send = {
        let (outgoing, open, added) = (Rc::clone(outgoing), Rc::clone(open), Rc::clone(added));
        move |id: u32,
              kind: String,
              server: String,
              tool: String,
              arguments: String,
              stack: String| {
            let Ok(arguments) = RawValue::from_string(arguments) else {
                return;
            };
            open.set(open.get() + 1);
            outgoing.borrow_mut().push(FromWorker::Call(Request {
                id,
                called: called_function(&kind, server, tool),
                arguments,
                at: in_stack(&stack, added.get()),
            }));
        }
    };
    let log = {
        let outgoing = Rc::clone(outgoing);
        let left = Cell::new(limits.log_bytes);
        move |line: String| {
            // Empty lines count too.
            if line.len() < left.get() {
                left.set(left.get() - line.len() - 1);
                outgoing.borrow_mut().push(FromWorker::Log(line));
            } else if left.replace(0) > 0 {
                let notice = "(further output is left out)".to_owned();
                outgoing.borrow_mut().push(FromWorker::Log(notice));
            }
        }
    };
    let options = options("prelude.js");
    let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options)?;
    let settlers: Object<'js> = prelude.call((
        Function::new(ctx.clone(), send)?,
        Function::new(ctx.clone(), log)?,
        Function::new(ctx.clone(), |server: String, tool: String| {
            tool_name(&server, &tool)
        })?,
        limits.calls,
        MAX_ARGUMENT_BYTES,
    ))?;
    Ok(Settlers {
        resolve: settlers.get("resolve")?,
        reject: settlers.get("reject")?,
    })
}

/// Returns the function that a script calls, from its kind in the prelude.
fn called_function(kind: &str, server: String, tool: String) -> Called {
    match kind {
        "search" => Called::Search,
        "describe" => Called::Describe,
        "read_result" => Called::ReadResult,
        _ => Called::Tool { server, tool },
    }
}

/// Returns a tool as a script writes it.
pub fn tool_name(server: &str, tool: &str) -> String {
    let member = |name: &str| {
        let mut characters = name.chars();
        let first = characters.next();
        let begins = first.is_some_and(|it| it.is_ascii_alphabetic() || it == '_' || it == '$');
        if begins && characters.all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '$') {
            format!(".{name}")
        } else {
            format!("[{}]", serde_json::Value::from(name))
        }
    };
    format!("tools{}{}", member(server), member(tool))
}

/// Evaluates a script: the body of an async function, or a function, which is called.
fn evaluate<'js>(ctx: &Ctx<'js>, code: &str, added: &Cell<u32>) -> Result<Promise<'js>, End> {
    let trimmed = code.trim_end().trim_end_matches(';');
    let begin = code.trim_start();
    if ["async", "function", "("]
        .iter()
        .any(|it| begin.starts_with(it))
    {
        added.set(1);
        let source = format!("{EXPRESSION}{trimmed}\n)");
        match ctx
            .eval_with_options::<Value<'js>, _>(source, options(FILE))
            .catch(ctx)
        {
            Ok(value) => return called(ctx, value).catch(ctx).map_err(|it| thrown(&it, 1)),
            // It is not an expression, so it is the body of a function.
            Err(error) if is_syntax_error(&error) => {}
            Err(error) => return Err(thrown(&error, 1)),
        }
    }
    let in_front = u32::try_from(BODY.len()).unwrap_or_default();
    added.set(in_front);
    let source = format!("{BODY}{code}\n}})()");
    let main = ctx.eval_with_options::<Promise<'js>, _>(source, options(FILE));
    main.catch(ctx).map_err(|error| thrown(&error, in_front))
}

/// Returns the promise of a value; a function is called first.
fn called<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Promise<'js>> {
    let value = match value.as_function() {
        Some(function) => function.call(())?,
        None => value,
    };
    if let Some(promise) = value.as_promise() {
        return Ok(promise.clone());
    }
    let (promise, resolve, _) = Promise::new(ctx)?;
    resolve.call::<_, ()>((value,))?;
    Ok(promise)
}

fn options(file: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(file.to_owned());
    options
}

/// Returns the end of a script that returned a value.
fn end_with<'js>(ctx: &Ctx<'js>, value: Value<'js>, limits: &Limits, added: u32) -> End {
    if value.is_undefined() {
        return End::Undefined;
    }
    if value.type_of() == rquickjs::Type::BigInt {
        return End::NotJson("BigInt".to_owned());
    }
    let text = match ctx.json_stringify(value).catch(ctx) {
        Ok(Some(text)) => text.to_string().unwrap_or_default(),
        Ok(None) => return End::NotJson("a function or a symbol".to_owned()),
        Err(error) => {
            return match thrown(&error, added) {
                End::Thrown(it) if it.message.contains("circular") => {
                    End::NotJson("circular reference".to_owned())
                }
                End::Thrown(it) if it.message.contains("BigInt") => {
                    End::NotJson("BigInt".to_owned())
                }
                end => end,
            };
        }
    };
    if text.len() > limits.result_bytes {
        return End::TooLarge(text.len());
    }
    match RawValue::from_string(text) {
        Ok(value) => End::Value(value),
        Err(_) => End::NotJson("a value that cannot be written as JSON".to_owned()),
    }
}

fn is_syntax_error(error: &CaughtError<'_>) -> bool {
    match error {
        CaughtError::Exception(exception) => exception
            .get::<_, String>("name")
            .is_ok_and(|it| it == "SyntaxError"),
        _ => false,
    }
}

/// Returns the end of a script that an exception has ended.
fn thrown(error: &CaughtError<'_>, added: u32) -> End {
    let (name, message, at, tool) = match error {
        CaughtError::Exception(exception) => {
            let text = |name: &str| exception.get::<_, Option<String>>(name).ok().flatten();
            let stack = text("stack").unwrap_or_default();
            (
                text("name").unwrap_or_else(|| "Error".to_owned()),
                text("message").unwrap_or_default(),
                in_stack(&stack, added),
                text("tool"),
            )
        }
        // Without memory for an exception the engine throws `null`.
        CaughtError::Value(value) if value.is_null() => return End::OutOfMemory,
        CaughtError::Value(value) => {
            let text = value.as_string().and_then(|it| it.to_string().ok());
            let shown = || value.ctx().json_stringify(value.clone()).ok().flatten();
            let text = text.or_else(|| shown()?.to_string().ok());
            let text = text.unwrap_or_else(|| value.type_name().to_owned());
            ("Error".to_owned(), text, None, None)
        }
        CaughtError::Error(error) => ("Error".to_owned(), error.to_string(), None, None),
    };
    if message == "out of memory" {
        return End::OutOfMemory;
    }
    End::Thrown(Thrown {
        name,
        message,
        at,
        tool,
    })
}

#[cfg(test)]
mod tests;
