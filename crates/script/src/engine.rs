//! The JavaScript engine: a realm without anything that reaches outside, in which one script runs. Its jobs are driven
//! here, so that a script that only queues microtasks is stopped like any other.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Persistent, Promise, Runtime,
    Value,
    context::{ContextBuilder, EvalOptions, intrinsic},
    promise::PromiseState,
};
use serde_json::value::RawValue;

use crate::{
    cpu_time::cpu_time,
    message::{Called, End, Failure, FromWorker, Limits, MAX_ARGUMENT_BYTES, Request, Thrown},
    position::{FILE, in_stack},
    text::{Text, without_halves},
};

const PRELUDE: &str = include_str!("prelude.js");
/// A script without effect that uses what most scripts use.
const FIRST_SCRIPT: &str =
    "(async () => JSON.stringify(await Promise.all([{ a: 1 }].map(async (it) => it))))()";

/// The source around a script that is the body of a function. What is in front is a line of its own, so that columns stay
/// as they are; [`in_stack`] takes it off the line numbers.
const BODY: [&str; 2] = ["(async()=>{\n", "\n})"];
/// The source around a script that is an expression, such as a function.
const EXPRESSION: [&str; 2] = ["(()=>(\n", "\n))"];

/// The most bytes of each text of an exception that are sent to the host. A script may throw a text of any length.
const MAX_TEXT_BYTES: usize = 8 * 1024;
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

/// An engine that can run one script.
pub(crate) struct Engine {
    // Before the runtime, which they belong to: fields are dropped in this order.
    prelude: Prelude<Persistent<Function<'static>>>,
    context: Context,
    runtime: Runtime,
    script: Rc<Script>,
    clock: Rc<Clock>,
}

/// The state of the script, which the functions of the prelude share with the engine.
#[derive(Default)]
struct Script {
    code: RefCell<String>,
    /// The messages that the script has caused and that are not sent yet.
    outgoing: RefCell<Vec<FromWorker>>,
    /// The number of calls that the host has not answered.
    open_calls: Cell<u32>,
    /// The bytes that may still be logged.
    log_bytes: Cell<usize>,
}

/// The functions that the prelude returns.
struct Prelude<F> {
    /// Sets the number of calls that the script may make.
    begin: F,
    resolve: F,
    reject: F,
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
    /// Creates an engine that needs nothing but its script: the prelude has run, and a first script has brought in the
    /// pages of the program that every script needs.
    pub(crate) fn new() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        let context = ContextBuilder::default()
            .with::<Language>()
            .build(&runtime)?;
        let clock = Rc::new(Clock::default());
        let looked_at = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || looked_at.look())));
        let script = Rc::new(Script::default());
        let prelude = context.with(|ctx| {
            let prelude = run_prelude(&ctx, &script)?;
            ctx.eval_with_options::<Value<'_>, _>(FIRST_SCRIPT, options(FILE))?;
            while ctx.execute_pending_job() {}
            let save = |function| Persistent::save(&ctx, function);
            Ok::<_, rquickjs::Error>(Prelude {
                begin: save(prelude.begin),
                resolve: save(prelude.resolve),
                reject: save(prelude.reject),
            })
        })?;
        Ok(Self {
            prelude,
            context,
            runtime,
            script,
            clock,
        })
    }

    /// Takes the messages that the script has caused since the last time.
    pub(crate) fn take_outgoing(&self) -> Vec<FromWorker> {
        self.script.outgoing.take()
    }

    /// Runs a script to its end. `exchange` sends what is outgoing and returns when the host has answered a call; it
    /// gets a function that takes the answer.
    pub(crate) fn run<E>(
        &self,
        code: &str,
        limits: &Limits,
        mut exchange: impl FnMut(&dyn Fn(Answer<'_>)) -> Result<(), E>,
    ) -> Result<End, E> {
        self.runtime.set_memory_limit(limits.heap_bytes);
        self.runtime.set_max_stack_size(limits.stack_bytes);
        self.script.log_bytes.set(limits.log_bytes);
        code.clone_into(&mut self.script.code.borrow_mut());
        // Until this is set the clock interrupts nothing: the prelude and the first script have no limit.
        self.clock
            .until
            .set(cpu_time() + Duration::from_millis(limits.cpu_ms));
        self.context.with(|ctx| {
            let main = match self.start(&ctx, code, limits) {
                Ok(main) => main,
                Err(end) => return Ok(self.judged(end)),
            };
            loop {
                self.run_jobs(&ctx);
                if let Some(end) = self.end(&ctx, &main, limits) {
                    return Ok(end);
                }
                // No call is open, so that nothing can settle a promise any more.
                if self.script.open_calls.get() == 0 {
                    return Ok(End::Deadlock);
                }
                exchange(&|answer| self.settle(&ctx, &answer))?;
            }
        })
    }

    /// Starts a script. Returns the promise of its value.
    fn start<'js>(&self, ctx: &Ctx<'js>, code: &str, limits: &Limits) -> Result<Promise<'js>, End> {
        let begin = || {
            let begin = self.prelude.begin.clone().restore(ctx)?;
            begin.call::<_, ()>((limits.calls,))
        };
        begin().catch(ctx).map_err(|error| thrown(&error, code))?;
        let script = match compile(ctx, code) {
            Ok(script) => script,
            Err(error) => self.compile_typescript(ctx, code, error)?,
        };
        let main = promise_of(ctx, &script);
        main.catch(ctx).map_err(|error| thrown(&error, code))
    }

    /// Compiles a script that is not JavaScript, for which `error` is the reason, after its types were removed.
    #[cfg(feature = "typescript")]
    fn compile_typescript<'js>(
        &self,
        ctx: &Ctx<'js>,
        code: &str,
        error: End,
    ) -> Result<Function<'js>, End> {
        use crate::typescript::{StripError, strip_types};
        match strip_types(code, || self.clock.look()) {
            Ok(code) => compile(ctx, &code),
            Err(StripError::NotTypeScript) => Err(error),
            Err(unsupported @ StripError::Unsupported { at, .. }) => Err(End::Thrown(Thrown {
                name: "SyntaxError".to_owned(),
                message: unsupported.to_string(),
                at: Some(at),
                tool: None,
                code: None,
            })),
        }
    }

    #[cfg(not(feature = "typescript"))]
    #[expect(clippy::unused_self, reason = "with the feature it looks at the clock")]
    fn compile_typescript<'js>(
        &self,
        _: &Ctx<'js>,
        _: &str,
        error: End,
    ) -> Result<Function<'js>, End> {
        Err(error)
    }

    /// Gives the script the answer to a call.
    fn settle(&self, ctx: &Ctx<'_>, answer: &Answer<'_>) {
        let open_calls = &self.script.open_calls;
        open_calls.set(open_calls.get().saturating_sub(1));
        // An exception here is the end of memory or time, which the next look finds.
        let _: rquickjs::Result<()> = match answer {
            Answer::Value { id, json } => {
                let resolve = self.prelude.resolve.clone().restore(ctx);
                resolve.and_then(|resolve| resolve.call((*id, *json)))
            }
            Answer::Failed { id, failure } => {
                let reject = self.prelude.reject.clone().restore(ctx);
                let code = failure.code.as_str();
                let outcome = failure.outcome.as_deref();
                let message = failure.message.as_str();
                reject.and_then(|reject| reject.call((*id, code, outcome, message)))
            }
        };
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
    fn end<'js>(&self, ctx: &Ctx<'js>, main: &Promise<'js>, limits: &Limits) -> Option<End> {
        if self.clock.look() {
            // After the first `await` the engine does not say where it was.
            return Some(End::CpuLimit { at: None });
        }
        let code = self.script.code.borrow();
        let end = match main.state() {
            PromiseState::Pending => return None,
            PromiseState::Resolved | PromiseState::Rejected => {
                match main.result::<Value<'js>>()?.catch(ctx) {
                    Ok(value) => end_with(ctx, value, limits, &code),
                    Err(error) => thrown(&error, &code),
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

/// Runs the prelude, which gives the script its functions.
fn run_prelude<'js>(
    ctx: &Ctx<'js>,
    script: &Rc<Script>,
) -> rquickjs::Result<Prelude<Function<'js>>> {
    let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options("prelude.js"))?;
    let functions: Object<'js> = prelude.call((
        send_function(ctx, Rc::clone(script))?,
        emit_function(ctx, Rc::clone(script))?,
        log_function(ctx, Rc::clone(script))?,
        Function::new(ctx.clone(), |Text(server): Text, Text(tool): Text| {
            tool_name(&server, &tool)
        })?,
        MAX_ARGUMENT_BYTES,
    ))?;
    Ok(Prelude {
        begin: functions.get("begin")?,
        resolve: functions.get("resolve")?,
        reject: functions.get("reject")?,
    })
}

/// Returns the function by which the prelude sends a call to the host.
fn send_function<'js>(ctx: &Ctx<'js>, script: Rc<Script>) -> rquickjs::Result<Function<'js>> {
    let send = move |id: u32, kind: String, server: Text, tool: Text, json: String, stack: Text| {
        let Ok(arguments) = RawValue::from_string(without_halves(json)) else {
            return;
        };
        script.open_calls.set(script.open_calls.get() + 1);
        let at = in_stack(&stack.0, &script.code.borrow());
        script.outgoing.borrow_mut().push(FromWorker::Call(Request {
            id,
            called: called_function(&kind, server.0, tool.0),
            arguments,
            at,
        }));
    };
    Function::new(ctx.clone(), send)
}

/// Returns the function by which the prelude emits a part of a result.
fn emit_function<'js>(ctx: &Ctx<'js>, script: Rc<Script>) -> rquickjs::Result<Function<'js>> {
    let emit = move |id: u32, Text(reference): Text| {
        script.open_calls.set(script.open_calls.get() + 1);
        let message = FromWorker::Emit { id, reference };
        script.outgoing.borrow_mut().push(message);
    };
    Function::new(ctx.clone(), emit)
}

/// Returns the function by which the prelude logs a line.
fn log_function<'js>(ctx: &Ctx<'js>, script: Rc<Script>) -> rquickjs::Result<Function<'js>> {
    let log = move |Text(line): Text| {
        let left = &script.log_bytes;
        let mut outgoing = script.outgoing.borrow_mut();
        // Empty lines count too.
        if line.len() < left.get() {
            left.set(left.get() - line.len() - 1);
            outgoing.push(FromWorker::Log(line));
            return;
        }
        let room = left.replace(0);
        if room > 0 {
            outgoing.push(FromWorker::Log(cut(line, room)));
            let notice = "(further output is left out)".to_owned();
            outgoing.push(FromWorker::Log(notice));
        }
    };
    Function::new(ctx.clone(), log)
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

/// Compiles a script, which is the body of an async function or an expression. Runs nothing: a script that fails here can
/// be compiled in another way, and one that fails later can not.
fn compile<'js>(ctx: &Ctx<'js>, code: &str) -> Result<Function<'js>, End> {
    let compiled = |[before, after]: [&str; 2], code: &str| {
        let source = format!("{before}{code}{after}");
        ctx.eval_with_options(source, options(FILE)).catch(ctx)
    };
    let start = code.trim_start();
    // It begins like an expression. If it is none, it is compiled as a body below.
    if ["async", "function", "("]
        .iter()
        .any(|it| start.starts_with(it))
    {
        let expression = code.trim_end().trim_end_matches(';');
        if let Ok(script) = compiled(EXPRESSION, expression) {
            return Ok(script);
        }
    }
    compiled(BODY, code).map_err(|error| thrown(&error, code))
}

/// Runs a compiled script. Returns the promise of its value; if that is a function, it is called.
fn promise_of<'js>(ctx: &Ctx<'js>, script: &Function<'js>) -> rquickjs::Result<Promise<'js>> {
    let value: Value<'js> = script.call(())?;
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
fn end_with<'js>(ctx: &Ctx<'js>, value: Value<'js>, limits: &Limits, code: &str) -> End {
    if value.is_undefined() {
        return End::Undefined;
    }
    if value.type_of() == rquickjs::Type::BigInt {
        return End::NotJson("BigInt".to_owned());
    }
    let text = match ctx.json_stringify(value).catch(ctx) {
        Ok(Some(text)) => without_halves(text.to_string().unwrap_or_default()),
        Ok(None) => return End::NotJson("a function or a symbol".to_owned()),
        // The engine names these reasons only in the text of its exception.
        Err(error) => {
            return match thrown(&error, code) {
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

/// Returns the end of a script that an exception has ended.
fn thrown(error: &CaughtError<'_>, code: &str) -> End {
    let (name, message, at, tool, code) = match error {
        CaughtError::Exception(exception) => {
            let text = |name: &str| {
                let text = exception.get::<_, Option<Text>>(name).ok().flatten();
                text.map(|Text(text)| text)
            };
            let stack = text("stack").unwrap_or_default();
            (
                text("name").unwrap_or_else(|| "Error".to_owned()),
                text("message").unwrap_or_default(),
                in_stack(&stack, code),
                text("tool"),
                text("code"),
            )
        }
        // Without memory for an exception the engine throws `null`.
        CaughtError::Value(value) if value.is_null() => return End::OutOfMemory,
        CaughtError::Value(value) => {
            let text = value.get::<Text>().ok().map(|Text(text)| text);
            let shown = || value.ctx().json_stringify(value.clone()).ok().flatten();
            let text = text.or_else(|| shown()?.to_string().ok());
            let text = text.unwrap_or_else(|| value.type_name().to_owned());
            ("Error".to_owned(), text, None, None, None)
        }
        CaughtError::Error(error) => ("Error".to_owned(), error.to_string(), None, None, None),
    };
    if message == "out of memory" {
        return End::OutOfMemory;
    }
    let cut = |text| cut(text, MAX_TEXT_BYTES);
    End::Thrown(Thrown {
        name: cut(name),
        message: cut(message),
        at,
        tool: tool.map(cut),
        code: code.map(cut),
    })
}

/// Returns the beginning of a text, of at most so many bytes.
fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

#[cfg(test)]
mod tests;
