//! The requests of the page's script and of `mcp-workbench live`. Documents that a command prints come from that
//! command; those that only a running workbench can make are made here.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use hyper::{Method, StatusCode};
use ident::{ServerIdentifier, ToolIdentifier};
use rawjson::RawJson;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{commands::Commands, servers, sign_in::SignIn};
use crate::{
    call::ClientHandle,
    cli::{
        call::{CallOutcome, call_object},
        list,
        probe::{ProbeResult, ShellClient, known_servers},
        search::search_document,
        terminal::Progress,
        tokens::{token_document, tokens},
    },
    config::{Environment, Invocation},
    downstream::{ServerHandle, Urgency},
    history::History,
    moment::moment,
    offload::{offload, run_blocking},
    serve::http::{OtherWorkbenches, PageRequest, Workbenches},
    sha256::{Sha256, hexadecimal},
    sync::lock,
    visible::{visible, visible_name},
    workbench::{Decision, NotPending, PendingApproval, Workbench, own_servers},
};

/// The pause between two notices about changes, so that many calls cause few notices.
const NOTICE_PAUSE: Duration = Duration::from_millis(150);
/// The time after which a silent stream sends a sign of life.
const SILENCE: Duration = Duration::from_secs(15);
/// How long a view waits for servers that are starting. One that hangs must not hide the others; the view is made again
/// when it comes up.
const START_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for the start of a server that is compared with its pins. It is started only for that.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// The running workbench, as the page sees it.
pub(in crate::cli) struct Api {
    /// The workbenches at the address of the page, the common one first. They have one event stream.
    workbenches: Vec<Arc<Workbench>>,
    /// Those of other clients, with the same event stream.
    others: Option<OtherWorkbenches>,
    environment: Environment,
    /// `None` if there is no configuration file.
    commands: Option<Commands>,
    /// Starts recording at the first request.
    history: OnceLock<Arc<History>>,
    /// Ends the sign-in that waits for the browser. There is one at a time.
    pending_sign_in: Mutex<CancellationToken>,
}

/// A request that is not carried out.
pub(super) enum PageRefusal {
    NotFound,
    Invalid(String),
    /// The command failed; the document says why.
    Failed(Value),
}

impl PageRefusal {
    fn failed(error: &dyn std::error::Error) -> Self {
        Self::Failed(json!({ "error": error.to_string() }))
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Failed(_) => StatusCode::CONFLICT,
        }
    }

    pub(super) fn document(self) -> Value {
        match self {
            Self::NotFound => json!({ "error": "not found" }),
            Self::Invalid(reason) => json!({ "error": reason }),
            Self::Failed(document) => document,
        }
    }
}

type Answer = Result<Value, PageRefusal>;

#[derive(Deserialize)]
struct ServerQuery {
    toolbox: String,
    server: String,
}

#[derive(Deserialize)]
struct ServerAction {
    #[serde(flatten)]
    place: ServerQuery,
    /// The client of the configuration that has the server for itself.
    client: Option<String>,
    /// The number of the instance, if there are several servers of this name.
    instance: Option<u64>,
    action: Action,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Stop,
    Restart,
    SignIn,
}

#[derive(Deserialize)]
struct Decided {
    id: u64,
    decision: DecisionWord,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum DecisionWord {
    Once,
    Session,
    Always,
    Deny,
}

#[derive(Deserialize)]
struct Approved {
    #[serde(flatten)]
    place: ServerQuery,
    /// The digest of the difference that the user saw.
    digest: String,
}

#[derive(Deserialize)]
struct Tried {
    toolbox: String,
    server: String,
    tool: String,
    /// As the page wrote them: numbers keep their digits.
    arguments: Box<RawValue>,
}

impl Api {
    pub(in crate::cli) fn new(served: &Workbenches, environment: &Environment) -> Self {
        let workbenches = served.all();
        let file = workbenches[0].config().file.clone();
        let commands = file.is_file().then(|| Commands::new(file, environment));
        Self {
            workbenches,
            others: served.others.clone(),
            environment: environment.clone(),
            commands: commands.flatten(),
            history: OnceLock::new(),
            pending_sign_in: Mutex::default(),
        }
    }

    pub(super) async fn respond(&self, request: &PageRequest) -> Answer {
        let history = self.history();
        let path = request.path.strip_prefix("/ui/api/").unwrap_or_default();
        let query = request.query.as_deref().unwrap_or_default();
        match (&request.method, path) {
            (&Method::GET, "servers") => self.servers().await,
            (&Method::POST, "servers") => self.act(read(request)?).await,
            (&Method::GET, "calls") => match parameter(query, "id") {
                None => Ok(json!({ "calls": history.summaries() })),
                Some(id) => {
                    let id = id.parse().map_err(|_| PageRefusal::NotFound)?;
                    let call = history.call(id).ok_or(PageRefusal::NotFound)?;
                    let counted = offload(call.bytes(), || call.with_tokens(tokens)).await;
                    let program = Invocation::of(&self.workbench().config());
                    Ok(json!(counted.with_command(&program)))
                }
            },
            (&Method::GET, "activity") => Ok(json!({ "activity": history.notes() })),
            (&Method::GET, "approvals") => Ok(self.approvals()),
            (&Method::POST, "approvals") => self.decide(&read(request)?).await,
            (&Method::GET, "trust") => self.trust("list", &[]).await,
            (&Method::GET, "trust/diff") => self.difference(&place(query)?).await,
            (&Method::POST, "trust") => self.approve(&read(request)?).await,
            (&Method::GET, "tools") => self.tools().await,
            (&Method::GET, "search") => self.search(query).await,
            (&Method::POST, "call") => self.try_tool(read(request)?).await,
            (&Method::GET, "tokens") => self.tokens().await,
            _ => Err(PageRefusal::NotFound),
        }
    }

    /// Returns a stream of notices about changes. While it is read, calls of clients that cannot be asked wait for the
    /// page.
    pub(super) fn events(&self) -> mpsc::Receiver<Bytes> {
        // One waiting notice is enough, since it has the numbers of all changes so far.
        let (notices, stream) = mpsc::channel(1);
        let mut changes = self.history().changes();
        let watching = self.workbench().approvals().watch();
        let workbench = Arc::clone(self.workbench());
        self.workbench().spawn(async move {
            let _watching = watching;
            loop {
                let now = json!(*changes.borrow_and_update());
                if notices
                    .send(format!("data: {now}\n\n").into())
                    .await
                    .is_err()
                {
                    return;
                }
                sleep(NOTICE_PAUSE).await;
                loop {
                    let waited = tokio::select! {
                        changed = timeout(SILENCE, changes.changed()) => changed,
                        () = notices.closed() => return,
                        () = workbench.announcing_stopped() => return,
                    };
                    match waited {
                        Ok(Ok(())) => break,
                        Ok(Err(_)) => return,
                        Err(_) => {
                            // A comment of the event stream, which the script does not see.
                            if notices.send(Bytes::from_static(b":\n\n")).await.is_err() {
                                return;
                            }
                        }
                    }
                }
            }
        });
        stream
    }

    fn all_workbenches(&self) -> Vec<Arc<Workbench>> {
        let others = self.others.as_ref().map(|others| others());
        let own = self.workbenches.iter().map(Arc::clone);
        own.chain(others.into_iter().flatten()).collect()
    }

    fn workbench(&self) -> &Arc<Workbench> {
        &self.workbenches[0]
    }

    fn history(&self) -> &Arc<History> {
        self.history
            .get_or_init(|| History::begin(self.workbench().observed()))
    }

    async fn act(&self, action: ServerAction) -> Answer {
        let place = ServerIdentifier {
            toolbox: action.place.toolbox.as_str().into(),
            server: action.place.server.as_str().into(),
        };
        let server = match action.instance {
            Some(number) => self.instance(number),
            None => self.server(&place, action.client.as_deref()),
        };
        let server = server
            .filter(|it| *it.identifier() == place)
            .ok_or(PageRefusal::NotFound)?;
        if matches!(action.action, Action::SignIn) {
            return self.sign_in(&action.place, server).await;
        }
        if matches!(action.action, Action::Stop | Action::Restart) {
            server.stop();
            // A start must not find the process that is about to end.
            server.rested().await;
        }
        if matches!(action.action, Action::Start | Action::Restart) {
            let started = server.connect(Urgency::AskedFor, self.client()).await;
            started.map_err(|error| PageRefusal::Failed(json!({ "error": error.to_string() })))?;
        }
        Ok(json!({ "done": true }))
    }

    fn instance(&self, number: u64) -> Option<Arc<ServerHandle>> {
        let known = own_servers(&self.all_workbenches()).into_iter();
        let mut servers = known.map(|own| own.server);
        servers.find(|it| it.number() == number)
    }

    fn server(&self, place: &ServerIdentifier, client: Option<&str>) -> Option<Arc<ServerHandle>> {
        let mut workbenches = self.workbenches.iter();
        let workbench = match client {
            Some(name) => {
                workbenches.find(|it| it.client_name().is_some_and(|it| it.as_str() == name))
            }
            None => workbenches.next(),
        };
        let toolbox = workbench?.toolbox(place.toolbox.as_str())?;
        toolbox.server(&place.server)
    }

    /// Begins to sign in to a server, which starts once that is done; returns the address for the browser.
    async fn sign_in(&self, place: &ServerQuery, server: Arc<ServerHandle>) -> Answer {
        let commands = self.commands.as_ref().ok_or(PageRefusal::NotFound)?;
        // After `--`, since a name may begin with a hyphen.
        let arguments = ["login", "--no-browser", "--", &place.toolbox, &place.server];
        let failed = |error: String| PageRefusal::Failed(json!({ "error": error }));
        let login = commands
            .start(&arguments)
            .map_err(|error| failed(error.to_string()))?;
        let sign_in = SignIn::begin(login).await.map_err(failed)?;
        let address = sign_in.address.clone();
        let ended = CancellationToken::new();
        std::mem::replace(&mut *lock(&self.pending_sign_in), ended.clone()).cancel();
        let (client, name) = (self.client(), server.identifier().server.clone());
        self.workbench().spawn(async move {
            match ended.run_until_cancelled(sign_in.wait()).await {
                // A start that fails is shown with the server.
                Some(Ok(())) => drop(server.connect(Urgency::AskedFor, client).await),
                Some(Err(error)) => {
                    tracing::warn!(
                        "failed to sign in to server '{}': {error}",
                        visible(name.as_str())
                    );
                }
                None => {}
            }
        });
        Ok(json!({ "address": address }))
    }

    fn approvals(&self) -> Value {
        let approvals = self
            .workbench()
            .approvals()
            .list()
            .into_iter()
            .map(|(id, call)| {
                let secrets = self.workbench().observed().secrets();
                json!({
                    "id": id,
                    // For display only: the decision names the call by its id.
                    "toolbox": visible_name(call.tool.toolbox.as_str()),
                    "server": visible_name(call.tool.server.as_str()),
                    "tool": visible_name(call.tool.tool.as_str()),
                    // Text, so that every digit and every hidden character is shown.
                    "arguments": visible(&secrets.redact(call.arguments.as_str())),
                    "reason": call.reason,
                    "client": call.client.name,
                    "since": moment(call.since),
                    "can_hold_for_session": call.has_session,
                    "can_hold_always": call.is_unlisted,
                })
            });
        json!({ "approvals": approvals.collect::<Vec<_>>() })
    }

    async fn decide(&self, decided: &Decided) -> Answer {
        let decision = match decided.decision {
            DecisionWord::Once => Decision::Once,
            // The call that waits is decided for its session. The rule below is for later ones.
            DecisionWord::Session | DecisionWord::Always => Decision::Session,
            DecisionWord::Deny => Decision::Deny,
        };
        let approvals = self.workbench().approvals();
        if let DecisionWord::Always = decided.decision {
            let mut pending = approvals.list().into_iter();
            let pending = pending.find(|(id, _)| *id == decided.id);
            let (_, PendingApproval { tool, .. }) = pending.ok_or_else(gone)?;
            let place = [
                tool.toolbox.as_str(),
                tool.server.as_str(),
                tool.tool.as_str(),
            ];
            // A configuration that allows the tool also holds after a restart.
            self.run(&[&["allow", "--"], &place[..]].concat()).await?;
        }
        let call = approvals
            .decide(decided.id, decision)
            .map_err(|NotPending| gone())?;
        Ok(json!({ "done": true, "tool": call.tool.tool.as_str() }))
    }

    /// Returns the difference of a server from its pins, and the digest that an approval has to name.
    async fn difference(&self, place: &ServerQuery) -> Answer {
        let place = ["--", &place.toolbox, &place.server];
        let mut document = self.trust("diff", &place).await?;
        let mut server = document["servers"][0].take();
        let digest = Sha256::digest(server.to_string());
        server["digest"] = json!(hexadecimal(&digest));
        Ok(server)
    }

    /// Approves a server as the user saw it.
    async fn approve(&self, approved: &Approved) -> Answer {
        let place = &approved.place;
        let now = self.difference(place).await?;
        // The command waits longer for the server, and would approve tools that were not shown.
        if now["error"].is_string() {
            let error =
                "the server could not be compared in time: use `mcp-workbench trust approve`";
            return Err(PageRefusal::Failed(json!({ "error": error })));
        }
        if now["digest"] != approved.digest.as_str() {
            let error = "the server has changed since: look at the difference again";
            return Err(PageRefusal::Failed(json!({ "error": error })));
        }
        let approve = [
            "trust",
            "approve",
            "--yes",
            "--",
            &place.toolbox,
            &place.server,
        ];
        let done = self.run(&approve).await;
        // Now, and not when the file is next checked: the user is about to try the tool.
        for workbench in &self.all_workbenches() {
            workbench.apply_lock_file().await;
        }
        done
    }

    async fn search(&self, query: &str) -> Answer {
        let words = parameter(query, "q").filter(|it| !it.is_empty());
        let words = words.ok_or(PageRefusal::NotFound)?;
        let progress = self.progress();
        let searching = search_document(self.workbench(), &words, &progress, START_TIMEOUT);
        Ok(on_heap(searching).await)
    }

    async fn servers(&self) -> Answer {
        let (workbenches, environment) = (self.all_workbenches(), self.environment.clone());
        let document = run_blocking(move || servers::document(&workbenches, &environment)).await;
        document.map_err(|error| PageRefusal::failed(&error))
    }

    async fn tools(&self) -> Answer {
        let (found, config) = (self.known().await, self.workbench().config());
        let document = run_blocking(move || list::document(&config, &found)).await;
        document.map_err(|error| PageRefusal::failed(&error))
    }

    async fn tokens(&self) -> Answer {
        let (found, workbench) = (self.known().await, Arc::clone(self.workbench()));
        let document = run_blocking(move || token_document(&workbench, &found)).await;
        document.map_err(|error| PageRefusal::failed(&error))
    }

    /// Returns the tools of all servers, as far as they are known or soon available.
    async fn known(&self) -> Vec<ProbeResult> {
        let progress = self.progress();
        on_heap(known_servers(
            self.workbench(),
            &progress,
            sleep(START_TIMEOUT),
        ))
        .await
    }

    /// Returns the document of a subcommand of `trust`.
    async fn trust(&self, subcommand: &str, place: &[&str]) -> Answer {
        let limit = REVIEW_TIMEOUT.as_secs().to_string();
        let arguments = ["trust", subcommand, "--json", "--timeout", &limit];
        self.command(&[&arguments, place].concat()).await
    }

    /// Calls a tool of the running workbench.
    async fn try_tool(&self, tried: Tried) -> Answer {
        let tool = ToolIdentifier {
            toolbox: tried.toolbox.as_str().into(),
            server: tried.server.as_str().into(),
            tool: tried.tool.as_str().into(),
        };
        let arguments = RawJson::of(&tried.arguments);
        let calling = call_object(self.workbench(), tool, arguments, self.client());
        let outcome = on_heap(calling).await;
        let (name, json) = match outcome {
            CallOutcome::Result(json) | CallOutcome::Failure(json) => ("result", json),
            CallOutcome::Refused(json) => ("error", json),
            CallOutcome::Arguments(error) => return Err(PageRefusal::Invalid(error.to_string())),
        };
        let json: Value = serde_json::from_str(json.as_str()).unwrap_or_default();
        Ok(json!({ name: json }))
    }

    fn client(&self) -> Arc<dyn ClientHandle> {
        Arc::new(ShellClient::observer(self.progress()))
    }

    fn progress(&self) -> Progress {
        Progress::on_stderr(&self.environment, "")
    }

    /// Returns the document that a command prints.
    async fn command(&self, arguments: &[&str]) -> Answer {
        let commands = self.commands.as_ref().ok_or(PageRefusal::NotFound)?;
        commands
            .document(arguments)
            .await
            .map_err(PageRefusal::Failed)
    }

    /// Runs a command that prints no document.
    async fn run(&self, arguments: &[&str]) -> Answer {
        let commands = self.commands.as_ref().ok_or(PageRefusal::NotFound)?;
        let output = commands.run(arguments).await.ok_or(PageRefusal::NotFound)?;
        if output.is_success {
            return Ok(json!({ "done": true, "text": output.stderr }));
        }
        Err(PageRefusal::Failed(
            json!({ "error": output.stderr.trim() }),
        ))
    }
}

/// Returns a future of a plain type. As part of the others its type would be nested too deeply for the compiler.
fn on_heap<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}

/// Returns the refusal of a decision about a call that does not wait.
fn gone() -> PageRefusal {
    let error = "it was decided already, or its client has gone";
    PageRefusal::Failed(json!({ "error": error }))
}

/// Reads the body of a request.
fn read<'a, T: Deserialize<'a>>(request: &'a PageRequest) -> Result<T, PageRefusal> {
    serde_json::from_slice(&request.body).map_err(|error| PageRefusal::Invalid(error.to_string()))
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

fn place(query: &str) -> Result<ServerQuery, PageRefusal> {
    let get = |name| parameter(query, name).ok_or(PageRefusal::NotFound);
    Ok(ServerQuery {
        toolbox: get("toolbox")?,
        server: get("server")?,
    })
}
