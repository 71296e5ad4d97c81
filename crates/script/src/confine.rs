//! Takes from the worker everything that it does not need, before the script arrives. Whatever a script makes the engine
//! do, the process can only compute, read its stdin and write its stdout.
//!
//! Resource limits, no new privileges, Landlock (where the kernel has it) and a list of permitted system calls; any other
//! system call ends the process. All of it is there on Linux only, so that there are no scripts on other systems.

use thiserror::Error;

/// The CPU time after which the system ends the worker, in seconds. A script that stays inside one native function is
/// not interrupted by the engine, so this must be a bound of the system.
#[cfg(target_os = "linux")]
const CPU_SECONDS: u64 = 3;
/// The address space of the worker. The bound on the heap of the script is much lower.
#[cfg(target_os = "linux")]
const ADDRESS_SPACE_BYTES: u64 = 512 * 1024 * 1024;

/// Reasons why the worker could not be confined. It does not run a script then.
#[derive(Debug, Error)]
pub(crate) enum ConfineError {
    #[cfg(target_os = "linux")]
    #[error("cannot limit the worker: {0}")]
    Limit(#[from] rustix::io::Errno),
    #[cfg(target_os = "linux")]
    #[error("cannot restrict access to files: {0}")]
    Landlock(#[from] landlock::RulesetError),
    #[cfg(target_os = "linux")]
    #[error("cannot restrict system calls: {0}")]
    Seccomp(#[from] seccompiler::Error),
    #[cfg(target_os = "linux")]
    #[error("cannot restrict system calls: {0}")]
    SeccompFilter(#[from] seccompiler::BackendError),
    #[cfg(not(target_os = "linux"))]
    #[error("this system has no means to confine it")]
    Unsupported,
}

/// Confines this process for the rest of its life.
#[cfg(target_os = "linux")]
pub(crate) fn confine() -> Result<(), ConfineError> {
    limit_resources()?;
    linux::restrict()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn confine() -> Result<(), ConfineError> {
    Err(ConfineError::Unsupported)
}

#[cfg(target_os = "linux")]
fn limit_resources() -> Result<(), ConfineError> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limits = [
        (Resource::Cpu, CPU_SECONDS),
        (Resource::As, ADDRESS_SPACE_BYTES),
        // Pipes are not files, so that stdout still works.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, limit) in limits {
        // The signal at the lower bound on CPU time says why; the one at the upper bound does not.
        let spare = u64::from(resource == Resource::Cpu);
        setrlimit(
            resource,
            Rlimit {
                current: Some(limit),
                maximum: Some(limit + spare),
            },
        )?;
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
    use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
    use seccompiler::{
        SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch, apply_filter,
    };

    use super::ConfineError;

    pub(super) fn restrict() -> Result<(), ConfineError> {
        // A script that computes does not notice that its host was killed.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        deny_files_and_network()?;
        // Landlock needed a descriptor; from here on there are no new ones.
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(0),
                maximum: Some(0),
            },
        )?;
        // Last, because it denies the calls that were made above.
        deny_system_calls()
    }

    /// Denies every access to files and the network, as far as the kernel supports it. It is the second line: the list of
    /// system calls has none that opens anything. Returns how far it is in force.
    pub(super) fn deny_files_and_network() -> Result<RulesetStatus, ConfineError> {
        // An older kernel enforces what it knows of it.
        let newest = ABI::V6;
        let restricted = Ruleset::default()
            .handle_access(AccessFs::from_all(newest))?
            .handle_access(AccessNet::from_all(newest))?
            .scope(Scope::from_all(newest))?
            .create()?
            .restrict_self()?;
        Ok(restricted.ruleset)
    }

    fn deny_system_calls() -> Result<(), ConfineError> {
        let filter = SeccompFilter::new(
            permitted()?.into_iter().collect(),
            SeccompAction::KillProcess,
            SeccompAction::Allow,
            TargetArch::try_from(std::env::consts::ARCH)?,
        )?;
        let program: seccompiler::BpfProgram = filter.try_into()?;
        // This also forbids new privileges.
        apply_filter(&program)?;
        Ok(())
    }

    /// Returns the permitted system calls: reading stdin, writing stdout and stderr, memory without execution, the clock,
    /// and the end of the process.
    fn permitted() -> Result<Vec<(i64, Vec<SeccompRule>)>, ConfineError> {
        let descriptor = |number: u64| {
            let is = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, number)?;
            SeccompRule::new(vec![is])
        };
        let masked = |argument: u8, mask: i32, value: i32| {
            let (mask, value) = (
                u64::from(mask.unsigned_abs()),
                u64::from(value.unsigned_abs()),
            );
            let operator = SeccompCmpOp::MaskedEq(mask);
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        };
        let not_executable = || masked(2, libc::PROT_EXEC, 0);
        let anonymous = masked(3, libc::MAP_ANONYMOUS, libc::MAP_ANONYMOUS)?;
        let mut permitted = vec![
            (libc::SYS_read, vec![descriptor(0)?]),
            (libc::SYS_write, vec![descriptor(1)?, descriptor(2)?]),
            (
                libc::SYS_mmap,
                vec![SeccompRule::new(vec![not_executable()?, anonymous])?],
            ),
            (
                libc::SYS_mprotect,
                vec![SeccompRule::new(vec![not_executable()?])?],
            ),
        ];
        let plain = [
            libc::SYS_brk,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_futex,
            libc::SYS_clock_gettime,
            libc::SYS_gettimeofday,
            libc::SYS_getrandom,
            libc::SYS_sched_yield,
            libc::SYS_sigaltstack,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_restart_syscall,
            libc::SYS_exit,
            libc::SYS_exit_group,
        ];
        permitted.extend(plain.map(|call| (call, Vec::new())));
        Ok(permitted)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        env, fs,
        io::ErrorKind,
        net::TcpListener,
        os::unix::{net::UnixStream, process::ExitStatusExt},
        process::{Command, ExitStatus, Stdio},
        thread,
    };

    use landlock::RulesetStatus;

    use super::{confine, linux::deny_files_and_network};

    /// The variable that makes this test the confined process.
    const ACTION: &str = "CONFINED_ACTION";

    /// The actions of code that has taken over a worker.
    const ACTIONS: [(&str, fn()); 7] = [
        ("read a file", || drop(fs::File::open("/etc/passwd"))),
        ("write a file", || drop(fs::write("/tmp/confined", "x"))),
        ("list a folder", || drop(fs::read_dir("/"))),
        ("listen", || drop(TcpListener::bind("127.0.0.1:0"))),
        ("make a socket", || drop(UnixStream::pair())),
        ("start a process", || {
            drop(Command::new("/bin/true").spawn());
        }),
        ("start a thread", || {
            drop(thread::Builder::new().spawn(|| ()));
        }),
    ];

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test has no configuration")]
    fn a_confined_process_that_reaches_outside_is_killed() {
        if let Ok(chosen) = env::var(ACTION) {
            confine().unwrap();
            let action = ACTIONS.iter().find(|(name, _)| *name == chosen);
            action.unwrap().1();
            // Not reached, and the process would end well.
            return;
        }
        let test = "confine::tests::a_confined_process_that_reaches_outside_is_killed";
        for (name, _) in ACTIONS {
            let status = in_process(test, name);
            assert_eq!(status.signal(), Some(libc::SIGSYS), "{name}: {status}");
        }
    }

    /// The second line without the first, which would hide it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test has no configuration")]
    fn landlock_denies_files_and_network_where_the_kernel_has_it() {
        if env::var(ACTION).is_err() {
            let test = "confine::tests::landlock_denies_files_and_network_where_the_kernel_has_it";
            let status = in_process(test, "landlock");
            assert!(status.success(), "{status}");
            return;
        }
        if deny_files_and_network().unwrap() == RulesetStatus::NotEnforced {
            return;
        }
        let opened = fs::File::open("/etc/passwd").unwrap_err();
        assert_eq!(opened.kind(), ErrorKind::PermissionDenied);
        let written = fs::write(env::temp_dir().join("confined"), "x").unwrap_err();
        assert_eq!(written.kind(), ErrorKind::PermissionDenied);
    }

    /// Runs a test in a process of its own that takes an action.
    fn in_process(test: &str, action: &str) -> ExitStatus {
        Command::new(env::current_exe().expect("a test knows its program"))
            .args(["--exact", test])
            .env(ACTION, action)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the program of the test runs")
    }
}
