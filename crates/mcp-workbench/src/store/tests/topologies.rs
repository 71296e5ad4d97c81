//! The store behind Sentinels and in a cluster, with real servers.

use std::net::TcpListener;

use pretty_assertions::assert_eq;

use super::*;

/// A server on a port of loopback, in a folder of its own; it ends with the value.
struct Server {
    port: u16,
    folder: TempDir,
    process: Child,
}

impl Server {
    /// Starts it with a configuration; `None` if it is not installed, which is said.
    fn start(port: u16, config: &str, arguments: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: redis-server not found (install it with `apt install redis-server`)"
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let config = format!("port {port}\nbind 127.0.0.1\n{config}");
        std::fs::write(folder.path().join("redis.conf"), config).unwrap();
        let process = Command::new(program)
            .arg("redis.conf")
            .args(arguments)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self {
            port,
            folder,
            process,
        })
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Sends a command, until the server answers as wanted.
    async fn ask(&self, words: &str, is_wanted: impl Fn(&str) -> bool) {
        let client = redis::Client::open(format!("redis://{}", self.address())).unwrap();
        let mut words = words.split(' ');
        let mut command = cmd(words.next().unwrap());
        command.arg(words.collect::<Vec<_>>());
        let mut last = String::new();
        for _ in 0..1000 {
            if let Ok(mut connection) = client.get_multiplexed_async_connection().await {
                let answer = command.query_async::<redis::Value>(&mut connection).await;
                last = format!("{answer:?}");
                if is_wanted(&last) {
                    return;
                }
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{command:?}: {last} in {:?}", self.folder.path());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns ports that nothing listens at. A node of a cluster also uses the port 10,000 above its own.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let mut held = Vec::new();
    std::array::from_fn(|_| {
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let bus = TcpListener::bind(("127.0.0.1", port.wrapping_add(10_000)));
            held.push(listener);
            if bus.is_ok() && port < 55_000 {
                return port;
            }
        }
    })
}

fn connect(url: &str) -> Store {
    let keys = SealKeys::new(&"a".repeat(32), None).unwrap();
    let address = StoreAddress::parse(url).unwrap();
    Store::connect(&address, Sealer::new(Some(&keys)))
}

/// Writes until it succeeds.
async fn written(store: &Store, value: &[u8]) {
    let mut last = None;
    for _ in 0..3000 {
        match store.set(AT, value, Duration::from_mins(1)).await {
            Ok(()) => return,
            Err(error) => last = Some(error),
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing can be written: {last:?}");
}

const MEMORY_ONLY: &str = "save \"\"\nappendonly no\nrepl-diskless-sync-delay 0\n";

#[tokio::test]
async fn behind_sentinels_the_store_follows_the_primary() {
    let [first, second, watching] = free_ports();
    let Some(mut primary) = Server::start(first, MEMORY_ONLY, &[]) else {
        return;
    };
    let config = format!("{MEMORY_ONLY}replicaof 127.0.0.1 {first}\n");
    let replica = Server::start(second, &config, &[]).unwrap();
    let is_linked = |answer: &str| answer.contains("master_link_status:up");
    replica.ask("INFO replication", is_linked).await;
    let config = format!(
        "sentinel monitor team 127.0.0.1 {first} 1\nsentinel down-after-milliseconds team 300\n\
         sentinel failover-timeout team 3000\n"
    );
    let sentinel = Server::start(watching, &config, &["--sentinel"]).unwrap();
    let knows_replica = |answer: &str| answer.contains(&second.to_string());
    sentinel.ask("SENTINEL replicas team", knows_replica).await;
    // The first one is away, as one of several may be.
    let store = connect(&format!(
        "redis+sentinel://127.0.0.1:1,{}/team",
        sentinel.address()
    ));
    written(&store, b"before").await;
    let replicated = |answer: &str| answer.contains("int(1)");
    let exists = format!("EXISTS {}", AT.key());
    replica.ask(&exists, replicated).await;
    primary.stop();
    written(&store, b"after").await;
    replica
        .ask("ROLE", |answer| answer.contains("master"))
        .await;
    assert_eq!(store.get(AT).await.unwrap().unwrap(), b"after");
}

#[tokio::test]
async fn in_a_cluster_every_value_is_found_and_a_node_may_restart() {
    let ports = free_ports::<3>();
    let config = format!("{MEMORY_ONLY}cluster-enabled yes\ncluster-node-timeout 2000\n");
    let Some(mut nodes) = ports
        .iter()
        .map(|port| Server::start(*port, &config, &[]))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let is_ok = |answer: &str| answer.starts_with("Ok(");
    for (node, slots) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        let assign = format!("CLUSTER ADDSLOTSRANGE {slots}");
        node.ask(&assign, |answer| is_ok(answer) || answer.contains("busy"))
            .await;
        node.ask(&format!("CLUSTER MEET 127.0.0.1 {}", ports[0]), is_ok)
            .await;
    }
    for node in &nodes {
        node.ask("CLUSTER INFO", |answer| answer.contains("cluster_state:ok"))
            .await;
    }
    // One node is enough to find the others.
    let store = connect(&format!(
        "redis+cluster://127.0.0.1:1,{}",
        nodes[1].address()
    ));
    written(&store, b"first").await;
    let minute = Duration::from_mins(1);
    for number in 0..30 {
        let name = number.to_string();
        let at = StoredAt { name: &name, ..AT };
        store.set(at, name.as_bytes(), minute).await.unwrap();
        assert_eq!(store.get(at).await.unwrap().unwrap(), name.as_bytes());
        let held = store.lock(&name, minute).await.unwrap().unwrap();
        assert!(store.lock(&name, minute).await.unwrap().is_none());
        held.release().await.unwrap();
        let rate = RequestRate {
            per_second: NonZeroU64::MIN,
            burst: NonZeroU64::MIN,
        };
        assert_eq!(store.take_rate(&name, rate, 1).await.unwrap(), None);
        assert!(store.take_rate(&name, rate, 1).await.unwrap().is_some());
    }
    for at in 0..nodes.len() {
        let config = nodes[at].folder.path().join("nodes.conf");
        nodes[at].stop();
        nodes[at].process = Command::new(program().unwrap())
            .arg("redis.conf")
            .current_dir(config.parent().unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for node in &nodes {
            node.ask("CLUSTER INFO", |answer| answer.contains("cluster_state:ok"))
                .await;
        }
        written(&store, b"again").await;
        assert_eq!(store.get(AT).await.unwrap().unwrap(), b"again");
    }
}
