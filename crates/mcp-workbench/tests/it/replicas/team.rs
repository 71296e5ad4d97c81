//! Replicas with the real parts of a team: Redis, and haproxy without stickiness.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{calls, reachable};
use crate::harness::{
    HttpClient, HttpConnection, InputRequired, ModernRequest, Script, Served, Setup, TIMEOUT,
    TOKEN, poll, request_text,
};

const OTHER_TOKEN: &str = "another-token-of-the-tests";

/// Returns a program of the system, or the one that `./scripts/test-services` has unpacked.
fn find(name: &str) -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-services/bin");
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let mut folders = folders.iter().map(PathBuf::from).chain([unpacked]);
    let program = folders.find_map(|it| Some(it.join(name)).filter(|it| it.is_file()));
    if program.is_none() {
        let mut stderr = io::stderr();
        let _ = writeln!(
            stderr,
            "SKIPPED: {name} not found (install it with `apt install redis-server haproxy`)"
        );
    }
    program
}

/// A program that runs until the test ends.
pub(crate) struct Part {
    folder: TempDir,
    program: PathBuf,
    arguments: Vec<String>,
    process: Child,
}

impl Part {
    fn start(name: &str, folder: TempDir, arguments: &[&str]) -> Option<Self> {
        let program = find(name)?;
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        Some(Self {
            process: launch(&program, folder.path(), &arguments),
            folder,
            program,
            arguments,
        })
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Returns how many values are stored.
    pub(super) fn size(&self) -> usize {
        let mut socket = UnixStream::connect(self.folder.path().join("socket")).unwrap();
        socket.write_all(b"DBSIZE\r\nQUIT\r\n").unwrap();
        let mut reply = String::new();
        socket.read_to_string(&mut reply).unwrap();
        let size = reply.strip_prefix(':').and_then(|it| it.lines().next());
        size.unwrap().parse().unwrap()
    }

    pub(crate) fn restart(&mut self) {
        self.stop();
        self.process = launch(&self.program, self.folder.path(), &self.arguments);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.stop();
    }
}

fn launch(program: &Path, folder: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

pub(crate) fn redis() -> Option<Part> {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--port", "0", "--save", "", "--unixsocket", "socket"];
    let redis = Part::start("redis-server", folder, &arguments)?;
    let socket = redis.folder.path().join("socket");
    poll(TIMEOUT, || UnixStream::connect(&socket).ok()).expect("a store");
    Some(redis)
}

/// The address of a store, for the configuration.
pub(crate) fn store_url(redis: &Part) -> String {
    let socket = redis.folder.path().join("socket");
    format!("redis+unix://{}", socket.display())
}

/// A store with TLS, at which one user may use the keys of the workbench. Returns its address too.
fn closed_redis() -> Option<(Part, String)> {
    let folder = tempfile::tempdir().unwrap();
    let users = "user default off\nuser team on >secret resetkeys ~mcp-workbench:* -@all +get +set +del +eval +time\n";
    fs::write(folder.path().join("users"), users).unwrap();
    let users = folder.path().join("users");
    let certificate = |name: &str| certificate(name).display().to_string();
    let address = free_address();
    let arguments = [
        ("--port", "0"),
        ("--save", ""),
        ("--tls-port", &address.port().to_string()),
        ("--tls-cert-file", &certificate("server.pem")),
        ("--tls-key-file", &certificate("server.key")),
        ("--tls-ca-cert-file", &certificate("authority.pem")),
        ("--tls-auth-clients", "no"),
        ("--aclfile", users.to_str().unwrap()),
    ];
    let arguments: Vec<&str> = arguments
        .iter()
        .flat_map(|(key, value)| [*key, *value])
        .collect();
    let redis = Part::start("redis-server", folder, &arguments)?;
    poll(TIMEOUT, || TcpStream::connect(address).ok()).expect("a store");
    let url = format!("rediss://team:secret@localhost:{}", address.port());
    Some((redis, url))
}

fn certificate(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/replicas/certificates");
    folder.join(name)
}

/// A replica with a store and a result that is too large for its budget.
fn with_store(redis: &Part) -> Served {
    with_large_result(store_setup(redis))
}

fn with_large_result(setup: Setup) -> Served {
    let large = (0..200).map(|line| format!("line {line}\n"));
    let large = large.collect::<String>();
    let answer = json!({"content": [{"type": "text", "text": large}]});
    let script = Script::named(&["large"]).answers("large", &answer.to_string());
    let setup = setup.toolbox("dev", "d");
    serve(
        setup
            .server("fs", &script)
            .top("maxResultChars", json!(400)),
    )
}

/// A configuration with a store.
fn store_setup(redis: &Part) -> Setup {
    stored_at(&store_url(redis))
}

fn stored_at(url: &str) -> Setup {
    Setup::new()
        .env("SEAL_KEY", super::KEY)
        .top("seal", json!({"key": "${SEAL_KEY}"}))
        .top("store", json!(url))
}

/// Begins a session with a token.
fn begin_as(served: &Served, token: &str) -> HttpClient {
    let params = crate::harness::initialize_params("2025-11-25");
    let post = served.post(&request_text("0", "initialize", &params));
    let post = post.with("authorization", &format!("Bearer {token}"));
    let begun = served.connection().ask(&post);
    let mut client = served.client().with_token(token);
    client.use_session(begun.head.header("mcp-session-id").unwrap());
    client
}

/// Serves with both tokens.
fn serve(setup: Setup) -> Served {
    let file = setup.write("tokens", &format!("{TOKEN}\n{OTHER_TOKEN}\n"));
    let file = file.to_str().unwrap().to_owned();
    setup.serve_with(&["--token-file", &file])
}

/// Reads a page of a result. Returns its text, or the code of the failure.
fn page(client: &mut HttpClient, uri: &str) -> Result<String, Value> {
    let params = json!({"uri": uri}).to_string();
    let response = client.post(&request_text("9", "resources/read", &params));
    let answer: Value = serde_json::from_str(&response.body).unwrap();
    match answer["result"]["contents"][0]["text"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(answer["error"]["data"]["code"].clone()),
    }
}

/// Calls the tool, and returns the address of its whole result.
fn large_result(client: &mut HttpClient) -> String {
    let result = client.use_tool("large", "{}");
    let result: Value = serde_json::from_str(&result.raw).unwrap();
    let uri = &result["_meta"]["mcp-workbench/result"]["uri"];
    uri.as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

#[test]
fn a_large_result_can_be_read_on_every_replica_by_its_principal_only() {
    let Some(mut redis) = redis() else { return };
    let (one, other) = (with_store(&redis), with_store(&redis));
    let mut client = one.client();
    let uri = large_result(&mut client);
    let second = format!("{uri}/2");
    let expected = page(&mut client, &second).unwrap();
    let mut elsewhere = client.at(other.address);
    // The result is shared beside its answer.
    let read = poll(TIMEOUT, || page(&mut elsewhere, &second).ok());
    assert_eq!(read, Some(expected.clone()));
    let mut stranger = begin_as(&other, OTHER_TOKEN);
    assert_eq!(page(&mut stranger, &second), Err(json!("result_gone")));
    redis.stop();
    assert_eq!(
        page(&mut elsewhere, &second),
        Err(json!("store_unreachable"))
    );
    assert_eq!(page(&mut client, &second), Ok(expected), "it is here too");
    let during = large_result(&mut elsewhere);
    assert!(page(&mut elsewhere, &during).is_ok(), "the rest continues");
    redis.restart();
    let gone = || (page(&mut elsewhere, &second) == Err(json!("result_gone"))).then_some(());
    poll(TIMEOUT, gone).expect("it is used again");
    // The restarted store is empty; what is new is shared again.
    let shared = || page(&mut elsewhere, &format!("{}/3", large_result(&mut client))).ok();
    poll(TIMEOUT, shared).expect("it is shared");
}

#[test]
fn a_store_may_need_tls_and_a_user() {
    let Some((_redis, url)) = closed_redis() else {
        return;
    };
    let authority = certificate("authority.pem");
    let replica = |url: &str| {
        let setup = stored_at(url).env("SSL_CERT_FILE", authority.to_str().unwrap());
        with_large_result(setup)
    };
    let (one, other) = (replica(&url), replica(&url));
    let refused = replica(&url.replace("secret", "wrong"));
    let mut client = one.client();
    let second = format!("{}/2", large_result(&mut client));
    let mut elsewhere = client.at(other.address);
    poll(TIMEOUT, || page(&mut elsewhere, &second).ok()).expect("it is shared");
    let read = page(&mut client.at(refused.address), &second);
    assert_eq!(read, Err(json!("store_unreachable")));
}

#[test]
fn replicas_count_the_requests_of_a_principal_together() {
    let Some(mut redis) = redis() else { return };
    let limits = json!({"requestsPerSecond": 1, "requestBurst": 100});
    let replicas = [(); 2].map(|()| serve(store_setup(&redis).top("limits", limits.clone())));
    let mut clients = replicas.each_ref().map(Served::client);
    let ping = request_text("2", "ping", "{}");
    // Below the limit of one replica, and above that of all.
    let statuses: Vec<u16> = (0..95)
        .flat_map(|_| {
            clients
                .each_mut()
                .map(|client| client.post(&ping).head.status)
        })
        .collect();
    assert!(
        statuses[..90].iter().all(|status| *status == 200),
        "{statuses:?}"
    );
    assert!(statuses.contains(&429), "{statuses:?}");
    redis.stop();
    let mut stranger = begin_as(&replicas[0], OTHER_TOKEN);
    let status = stranger.post(&ping).head.status;
    assert_eq!(
        status, 200,
        "without the store each replica counts for itself"
    );
}

/// A balancer before replicas, which takes turns.
fn balancer(address: SocketAddr, replicas: &[Served]) -> Option<Part> {
    let folder = tempfile::tempdir().unwrap();
    let mut config = format!(
        "defaults\n mode http\n retries 3\n retry-on conn-failure\n option redispatch 1\n timeout connect 1s\n \
         timeout client 60s\n timeout server 60s\n\
         frontend clients\n bind {address}\n default_backend replicas\n\
         backend replicas\n balance roundrobin\n option httpchk GET /ready\n \
         http-check send hdr Host localhost\n"
    );
    for (number, replica) in replicas.iter().enumerate() {
        let address = replica.address;
        config += &format!(" server r{number} {address} check inter 100ms fall 1 rise 1\n");
    }
    fs::write(folder.path().join("haproxy.cfg"), config).unwrap();
    Part::start("haproxy", folder, &["-f", "haproxy.cfg", "-db"])
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn behind_a_balancer_answers_find_the_call_that_asked() {
    let address = free_address();
    let host = address.to_string();
    let replica = |_| {
        let setup = reachable().env("WORKBENCH_TOKEN", TOKEN);
        setup.serve_with(&["--allow-host", &host, "--allow-host", "localhost"])
    };
    let replicas: Vec<Served> = (0..3).map(replica).collect();
    let Some(_balancer) = balancer(address, &replicas) else {
        return;
    };
    let ready = || std::net::TcpStream::connect(address).ok();
    poll(TIMEOUT, ready).expect("a balancer");
    let ask = |id: usize, request: &ModernRequest| {
        let post = replicas[0].modern_post(&id.to_string(), request);
        let response = HttpConnection::open(address).ask(&post.with("host", &host));
        if response.head.is_stream() {
            return response.events().last().expect("an answer").message();
        }
        response.message()
    };
    let calling = ModernRequest::use_tool("ask", "{}").capabilities(r#"{"elicitation":{}}"#);
    let rounds = 10;
    for round in 0..rounds {
        let asked = InputRequired::of(&ask(round, &calling));
        let answer = format!(r#"{{"action":"accept","content":{{"round":{round}}}}}"#);
        let retry = calling.retry(&asked, &asked.responses(|_, _| answer.clone()));
        let done = ask(round, &retry);
        assert!(done.line.contains(&answer), "{}", done.line);
    }
    let ran: usize = replicas.iter().map(calls).sum();
    assert_eq!(ran, rounds, "every call was made once");
}

#[test]
fn behind_a_balancer_a_session_outlives_its_replicas_and_no_call_runs_twice() {
    let address = free_address();
    let host = address.to_string();
    let replica = |_| {
        let setup = reachable().env("WORKBENCH_TOKEN", TOKEN);
        setup.serve_with(&["--allow-host", &host, "--allow-host", "localhost"])
    };
    let mut replicas: Vec<Served> = (0..3).map(replica).collect();
    let Some(_balancer) = balancer(address, &replicas) else {
        return;
    };
    let client = replicas[0].client();
    let ready = || std::net::TcpStream::connect(address).ok();
    poll(TIMEOUT, ready).expect("a balancer");
    let (mut answered, mut asked) = (0, 0);
    for killed in [Some(0), Some(1), None] {
        for _ in 0..20 {
            // Each on a connection of its own, so that the balancer chooses a replica for each.
            let mut client = client.at(address);
            asked += 1;
            let params = crate::harness::use_params("plain", "{}");
            let response = client.post(&request_text("7", "tools/call", &params));
            match response.head.status {
                200 if response.body.contains(r#""plain":1"#) => answered += 1,
                // Only the balancer may say so, about a replica that is gone.
                502..=504 => {}
                _ => panic!("{response:?}"),
            }
        }
        if let Some(killed) = killed {
            let replica: &mut Served = &mut replicas[killed];
            replica.workbench.signal(Signal::KILL);
            replica.workbench.wait_exit();
        }
    }
    let ran: usize = replicas.iter().map(calls).sum();
    assert!(ran <= asked, "{ran} calls of {asked} requests");
    assert!(
        answered <= ran && answered >= 3 * 20 - 4,
        "{answered} of {ran}"
    );
    let used: HashSet<usize> = replicas.iter().map(calls).collect();
    assert!(!used.contains(&0), "every replica had calls");
}
