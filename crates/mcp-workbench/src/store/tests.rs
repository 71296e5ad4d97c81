//! The store with a real Redis.

mod topologies;

use std::{
    io::Write,
    num::NonZeroU64,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::seal::SealKeys;

const AT: StoredAt<'static> = StoredAt {
    kind: StoredKind::Result,
    owner: "alice",
    name: "one",
};

/// A Redis at a socket in a folder of its own.
struct Redis {
    folder: TempDir,
    process: Child,
}

impl Redis {
    /// Starts it; `None` if it is not installed, which is said.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program() else {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: redis-server not found (install it with `apt install redis-server`)"
            );
            return None;
        };
        let process = launch(&program, folder.path());
        Some(Self { folder, process })
    }

    fn restart(&mut self) {
        self.stop();
        self.process = launch(&program().unwrap(), self.folder.path());
    }

    /// Waits until it accepts connections.
    fn wait(&self) {
        let socket = self.folder.path().join("socket");
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            std::thread::yield_now();
        }
    }

    fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn store(&self, key: &str) -> Store {
        let keys = SealKeys::new(&key.repeat(32), None).unwrap();
        let url = format!(
            "redis+unix://{}",
            self.folder.path().join("socket").display()
        );
        Store::connect(
            &StoreAddress::parse(&url).unwrap(),
            Sealer::new(Some(&keys)),
        )
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the program of the system, or the one that `./scripts/test-services` has unpacked.
fn program() -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-services/bin");
    let folders = [PathBuf::from("/usr/bin"), "/usr/local/bin".into(), unpacked];
    let mut programs = folders.iter().map(|it| it.join("redis-server"));
    programs.find(|program| program.is_file())
}

fn launch(program: &Path, folder: &Path) -> Child {
    let mut command = Command::new(program);
    command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
    command.args(["--unixsocket", "socket"]).current_dir(folder);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Waits until the store answers.
async fn up(store: &Store) {
    for _ in 0..1000 {
        if store.get(AT).await.is_ok() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the store stays away");
}

#[tokio::test]
async fn a_value_is_for_its_owner_and_its_key_and_ends() {
    let Some(redis) = Redis::start() else { return };
    let store = redis.store("a");
    up(&store).await;
    store
        .set(AT, b"secret", Duration::from_mins(1))
        .await
        .unwrap();
    assert_eq!(
        store.get(AT).await.unwrap().as_deref(),
        Some(&b"secret"[..])
    );
    for other in [
        StoredAt { owner: "bob", ..AT },
        StoredAt { name: "two", ..AT },
    ] {
        assert_eq!(store.get(other).await.unwrap(), None);
    }
    assert_eq!(redis.store("b").get(AT).await.unwrap(), None);
    let raw: Vec<u8> = store.run(cmd("GET").arg(AT.key())).await.unwrap();
    assert!(!raw.windows(6).any(|it| it == b"secret"));
    let ttl: i64 = store.run(cmd("PTTL").arg(AT.key())).await.unwrap();
    assert!((1..=60_000).contains(&ttl), "{ttl}");
    store.remove(AT).await.unwrap();
    assert_eq!(store.get(AT).await.unwrap(), None);
}

#[tokio::test]
async fn a_lock_has_one_holder() {
    let Some(redis) = Redis::start() else { return };
    let (one, other) = (redis.store("a"), redis.store("a"));
    up(&one).await;
    let minute = Duration::from_mins(1);
    let held = one.lock("refresh", minute).await.unwrap().unwrap();
    assert!(other.lock("refresh", minute).await.unwrap().is_none());
    assert!(other.lock("another", minute).await.unwrap().is_some());
    held.release().await.unwrap();
    let taken = other.lock("refresh", minute).await.unwrap();
    assert!(taken.is_some());
}

#[tokio::test]
async fn a_rate_is_shared_and_allows_a_burst() {
    let Some(redis) = Redis::start() else { return };
    let (one, other) = (redis.store("a"), redis.store("a"));
    up(&one).await;
    let rate = RequestRate {
        per_second: NonZeroU64::MIN,
        burst: NonZeroU64::new(600).unwrap(),
    };
    for (store, requests) in [(&one, 300), (&other, 299), (&one, 1)] {
        let wait = store.take_rate("alice", rate, requests).await.unwrap();
        assert_eq!(wait, None, "{requests}");
    }
    // More than the burst waits until everything is paid for.
    for (requests, seconds) in [(100, 100), (600, 600), (601, 600)] {
        let wait = other.take_rate("alice", rate, requests).await.unwrap();
        let wait = wait.expect("a wait");
        let longest = Duration::from_secs(seconds);
        assert!(
            wait <= longest && wait + Duration::from_mins(1) > longest,
            "{wait:?}"
        );
    }
    assert_eq!(other.take_rate("bob", rate, 601).await.unwrap(), None);
}

#[tokio::test]
async fn an_absent_store_fails_with_the_reason_and_returns() {
    let Some(mut redis) = Redis::start() else {
        return;
    };
    let store = redis.store("a");
    up(&store).await;
    redis.stop();
    let error = loop {
        if let Err(error) = store.get(AT).await {
            break error.to_string();
        }
    };
    assert!(
        error.starts_with("the store cannot be reached: "),
        "{error}"
    );
    redis.restart();
    up(&store).await;
    // A restart that nobody noticed costs no operation.
    redis.restart();
    redis.wait();
    assert_eq!(store.get(AT).await, Ok(None));
}
