//! Scripts that try to get out, to use up the machine, or not to end. The worker is started as the workbench starts it,
//! and must end by itself or be ended by the system, whatever its host does.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStdin, Command, Stdio},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use script::{End, Failure, FromWorker, Limits, ToWorker};

const LIMITS: Limits = Limits {
    cpu_ms: 300,
    heap_bytes: 32 * 1024 * 1024,
    stack_bytes: 512 * 1024,
    calls: 100,
    result_bytes: 32 * 1024,
    log_bytes: 8 * 1024,
};

/// The expected end of a script.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// The engine stops it.
    CpuLimit,
    OutOfMemory,
    Deadlock,
    /// An exception with this text in its name or message.
    Thrown(&'static str),
    /// It returns this JSON.
    Value(&'static str),
    /// The engine cannot stop it, so the system kills the process.
    Killed,
    /// The engine stops it for its time or its memory, or the system does: that depends on how fast the machine is.
    Stopped,
}

/// A worker without a workbench.
struct Worker {
    child: Child,
    stdin: ChildStdin,
}

impl Worker {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-workbench"))
            .arg("run-script-worker")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin }
    }

    fn send(&mut self, message: &ToWorker<'_>) {
        let line = serde_json::to_string(message).unwrap();
        // A worker that was killed does not read any more.
        let _ = writeln!(self.stdin, "{line}");
    }

    /// Runs a script whose calls all fail. Returns its end, or the signal that ended the worker.
    fn run(mut self, code: &str) -> Result<End, i32> {
        // One second of CPU time is enough for the proof; the worker gives itself three.
        let pid = Pid::from_child(&self.child);
        let second = Rlimit {
            current: Some(1),
            maximum: Some(2),
        };
        let mut output = BufReader::new(self.child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "\"ready\"\n", "the worker is not confined");
        prlimit(Some(pid), Resource::Cpu, second).unwrap();
        self.send(&ToWorker::Run {
            code: code.into(),
            limits: LIMITS,
        });
        loop {
            line.clear();
            if output.read_line(&mut line).unwrap() == 0 {
                return Err(self.child.wait().unwrap().signal().unwrap_or_default());
            }
            match serde_json::from_str(&line).unwrap() {
                FromWorker::Call(request) => {
                    let failure = Failure {
                        code: "none".to_owned(),
                        outcome: None,
                        message: "there are no tools".to_owned(),
                    };
                    self.send(&ToWorker::Failed {
                        id: request.id,
                        failure,
                    });
                }
                FromWorker::End(end) => {
                    assert!(self.child.wait().unwrap().success());
                    return Ok(end);
                }
                FromWorker::Ready
                | FromWorker::NotConfined(_)
                | FromWorker::Emit { .. }
                | FromWorker::Log(_) => {}
            }
        }
    }
}

fn check(rows: &[(&str, Expected)]) {
    let mut wrong = Vec::new();
    for (code, expected) in rows {
        let end = Worker::start().run(code);
        let fits = match (&end, expected) {
            (Ok(End::CpuLimit { .. }), Expected::CpuLimit | Expected::Stopped)
            | (Ok(End::OutOfMemory), Expected::OutOfMemory | Expected::Stopped)
            // A chain of promises breaks where there is no memory for the next one.
            | (Ok(End::Deadlock), Expected::Deadlock | Expected::Stopped) => true,
            (Ok(End::Thrown(thrown)), Expected::Thrown(text)) => {
                thrown.message.contains(text) || thrown.name.contains(text)
            }
            (Ok(End::Value(value)), Expected::Value(json)) => value.get() == *json,
            (Err(signal), Expected::Killed | Expected::Stopped) => *signal == Signal::XCPU.as_raw(),
            _ => false,
        };
        if !fits {
            wrong.push(format!("{code}\n  expected {expected:?}, got {end:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_script_that_does_not_end_is_stopped() {
    check(&[
        ("for (;;) {}", Expected::CpuLimit),
        (
            "for (;;) { try { for (;;) {} } catch {} finally { continue } }",
            Expected::CpuLimit,
        ),
        ("return { get a() { for (;;) {} } }", Expected::CpuLimit),
        ("return { toJSON() { for (;;) {} } }", Expected::CpuLimit),
        (
            "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
            Expected::CpuLimit,
        ),
        (
            "return /(?<=^(a+)+)b/.test('x' + 'a'.repeat(40) + 'b')",
            Expected::CpuLimit,
        ),
        (
            "const f = () => Promise.resolve().then(f); await f()",
            Expected::Stopped,
        ),
        (
            "for (let i = 0; i < 1000; i++) { const f = () => Promise.resolve().then(f); f() } await new Promise(() => {})",
            Expected::Stopped,
        ),
        ("await new Promise(() => {})", Expected::Deadlock),
        ("await { then() {} }", Expected::Deadlock),
    ]);
}

#[test]
fn a_script_inside_a_native_function_is_killed_by_the_system() {
    check(&[
        (
            "Array.prototype.join.call({ length: 2 ** 53 - 1 })",
            Expected::Killed,
        ),
        (
            "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })",
            Expected::Killed,
        ),
        (
            "Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1)",
            Expected::Killed,
        ),
        (
            "Array.prototype.unshift.call({ length: 2 ** 52 }, 1)",
            Expected::Killed,
        ),
        (
            "String.raw({ raw: { length: 2 ** 53 - 1 } })",
            Expected::Killed,
        ),
        ("const a = []; a[4e9] = 1; a.sort()", Expected::Stopped),
        (
            "const s = 'a'.repeat(8e6); for (;;) s.indexOf('a'.repeat(4e6) + 'b')",
            Expected::Stopped,
        ),
        (
            "const o = JSON.stringify(new Array(1e5).fill({ a: 1 })); for (;;) JSON.parse(o)",
            Expected::Stopped,
        ),
        (
            "const a = new Array(1e5).fill({ a: 1 }); for (;;) JSON.parse(JSON.stringify(a))",
            Expected::Stopped,
        ),
        (
            "const s = 'a'.repeat(1e6); for (;;) s.replaceAll('a', 'b')",
            Expected::Stopped,
        ),
        ("for (;;) new Array(1e6).fill(0)", Expected::Stopped),
        (
            "for (;;) new Uint8Array(1e6).fill(0)",
            Expected::Thrown("ReferenceError"),
        ),
    ]);
}

#[test]
fn a_script_without_end_of_memory_or_stack_fails_by_itself() {
    let rows = [
        (
            "const a = []; for (;;) a.push(new Array(1000).fill(1))",
            Expected::OutOfMemory,
        ),
        (
            "const m = new Map(); for (let i = 0; ; i++) m.set(i, 'x'.repeat(1000) + i)",
            Expected::Stopped,
        ),
        ("return 'x'.repeat(2 ** 29)", Expected::OutOfMemory),
        (
            "const a = []; for (;;) a.push(Promise.resolve())",
            Expected::Stopped,
        ),
        (
            "return [...(function* () { for (;;) yield 1 })()]",
            Expected::Stopped,
        ),
        (
            "const f = () => f(); f()",
            Expected::Thrown("Maximum call stack size exceeded"),
        ),
        (
            "return JSON.parse('['.repeat(1e5))",
            Expected::Thrown("Maximum call stack size exceeded"),
        ),
        (
            "return eval('['.repeat(1e5))",
            Expected::Thrown("Maximum call stack size exceeded"),
        ),
        (
            "return new ArrayBuffer(4e9)",
            Expected::Thrown("ReferenceError"),
        ),
        (
            "const s = 'x'.repeat(4e6); await Promise.all(Array.from({ length: 90 }, () => tools.x.y({ s })))",
            Expected::Stopped,
        ),
        (
            "for (;;) emit({ ref: 'x'.repeat(1e6) }).catch(() => {})",
            Expected::Stopped,
        ),
        (
            "return eval('('.repeat(1e5))",
            Expected::Thrown("Maximum call stack size exceeded"),
        ),
        (
            "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x",
            Expected::Thrown("Maximum call stack size exceeded"),
        ),
        (
            "const o = { toString() { return '' + o } }; return '' + o",
            Expected::Thrown("Maximum call stack size exceeded"),
        ),
        ("let b = 2n; for (;;) b *= b", Expected::Thrown("BigInt")),
    ];
    check(&rows);
}

#[test]
fn a_script_has_nothing_that_reaches_outside() {
    check(&[
        ("return await import('std')", Expected::Thrown("Error")),
        ("import fs from 'fs'", Expected::Thrown("SyntaxError")),
        ("return require('fs')", Expected::Thrown("ReferenceError")),
        ("return process.env", Expected::Thrown("ReferenceError")),
        (
            "return await fetch('http://127.0.0.1')",
            Expected::Thrown("ReferenceError"),
        ),
        (
            "setTimeout(() => {}, 1)",
            Expected::Thrown("ReferenceError"),
        ),
        (
            "return [typeof std, typeof os, typeof bjson, typeof Worker, typeof WebAssembly, typeof Atomics]",
            Expected::Value(
                r#"["undefined","undefined","undefined","undefined","undefined","undefined"]"#,
            ),
        ),
        (
            "return new Function('return typeof globalThis.process')()",
            Expected::Value(r#""undefined""#),
        ),
        (
            "return Object.getOwnPropertyNames(globalThis).filter(n => /buffer|array$|dataview|shared|weakref|performance|navigator/i.test(n))",
            Expected::Value(r#"["Array"]"#),
        ),
    ]);
}

#[test]
fn a_script_that_changes_built_in_objects_harms_only_itself() {
    let failing = "try { await tools.x.y({ a: 1 }) } catch (e) { return [e instanceof ToolError, e.code, e.tool] }";
    let rows = [
        "JSON.parse = JSON.stringify = () => 'tampered';",
        "Array.prototype.map = Array.prototype.push = () => 'tampered';",
        "Promise.prototype.then = function () { throw new Error('tampered') };",
        "Object.prototype.get = Object.prototype.set = () => 'tampered';",
        "Object.defineProperty = Object.create = Reflect.get = () => { throw 1 };",
        "globalThis.Promise = globalThis.Error = globalThis.Proxy = class { constructor() { throw 1 } };",
    ];
    let scripts = rows.map(|tampering| format!("{tampering}\n{failing}"));
    let expected = Expected::Value(r#"[true,"none","tools.x.y"]"#);
    let mut rows: Vec<(&str, Expected)> =
        scripts.iter().map(|it| (it.as_str(), expected)).collect();
    rows.push((
        "Error.prepareStackTrace = () => { throw 1 }; try { await tools.x.y({}) } catch (e) { return e instanceof ToolError }",
        Expected::Value("false"),
    ));
    check(&rows);
}

#[test]
fn a_worker_has_no_environment_and_no_open_files_and_gains_no_rights() {
    let mut worker = Worker::start();
    let mut output = BufReader::new(worker.child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let proc = std::path::PathBuf::from(format!("/proc/{}", worker.child.id()));
    let read = |name: &str| std::fs::read_to_string(proc.join(name)).unwrap();
    assert_eq!(read("environ"), "");
    let status = read("status");
    for state in ["Seccomp:\t2", "NoNewPrivs:\t1"] {
        assert!(status.contains(state), "{status}");
    }
    // Whoever starts the tests may leave descriptors open, which no system call of the worker can use.
    for entry in std::fs::read_dir(proc.join("fd")).unwrap() {
        let name = entry.unwrap().file_name();
        let file =
            |process: &std::path::Path| std::fs::read_link(process.join("fd").join(&name)).ok();
        let is_own = matches!(name.to_str(), Some("0" | "1" | "2"));
        assert!(
            is_own || file(&proc) == file("/proc/self".as_ref()),
            "{name:?}"
        );
    }
    let limits = read("limits");
    for limit in [
        "Max open files            0",
        "Max processes             0",
        "Max file size             0",
    ] {
        assert!(limits.contains(limit), "{limits}");
    }
    // The end of its host's messages is the end of the worker.
    drop(worker.stdin);
    assert!(worker.child.wait().unwrap().success());
}
