//! The CPU time of the process.

use std::time::Duration;

/// Returns the CPU time that this process has used.
#[cfg(unix)]
pub(crate) fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Returns the time since the first call: the process does nothing but run one script.
#[cfg(not(unix))]
pub(crate) fn cpu_time() -> Duration {
    use std::{sync::OnceLock, time::Instant};
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}
