//! Resource links: a URI is read from the server that linked it first to the client that reads it.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{
    HttpResponse, Message, ModernClient, ModernRequest, Script, Served, Setup, Workbench,
    call_params, initialize_params, raw_string, request_text, use_arguments,
};

const URI: &str = "file:///project/README.md";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Proxy,
    Dynamic,
    Native,
}

#[derive(Debug, Clone, Copy)]
enum Era {
    Legacy,
    Modern,
}

const MODES: [Mode; 3] = [Mode::Proxy, Mode::Dynamic, Mode::Native];
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server whose tool `link_{name}` links the resource, and which says its name when it is read.
fn linking(name: &str) -> Script {
    let tool = format!("link_{name}");
    let link = json!({"content": [{"type": "resource_link", "uri": URI, "name": "readme"}]});
    let read = json!([{"answer": {"contents": [{"uri": URI, "text": name}]}}]);
    Script::named(&[tool.as_str()])
        .set("capabilities", r#"{"tools":{},"resources":{}}"#)
        .answers(&tool, &link.to_string())
        .on_method("resources/read", &read.to_string())
        .on_method(
            "resources/templates/list",
            r#"[{"answer":{"resourceTemplates":[]}}]"#,
        )
}

fn lists(script: Script, resources: &Value) -> Script {
    let answer = json!([{"answer": {"resources": resources}}]);
    script.on_method("resources/list", &answer.to_string())
}

/// Two servers that link the same resource. In native mode `git`, the second in the file, lists it; in the other modes
/// a listed resource could be read by every client.
fn two_servers(mode: Mode) -> Setup {
    let listed = match mode {
        Mode::Native => json!([{"uri": URI, "name": "readme"}]),
        Mode::Proxy | Mode::Dynamic => json!([]),
    };
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("weather", &lists(linking("weather"), &json!([])))
        .server("git", &lists(linking("git"), &listed));
    match mode {
        Mode::Proxy => setup,
        Mode::Dynamic => setup.top("toolMode", json!("dynamic")),
        Mode::Native => setup
            .top("toolMode", json!("native"))
            .top("nativeToolbox", json!("dev")),
    }
}

/// The name and the raw arguments of the call that makes a server link the resource.
fn link_call(mode: Mode, server: &str) -> [String; 2] {
    let tool = format!("link_{server}");
    match mode {
        Mode::Proxy => {
            let arguments = use_arguments(["dev", server, &tool], Some("{}"));
            ["use_tool".to_owned(), arguments]
        }
        Mode::Dynamic => [format!("dev__{server}__{tool}"), "{}".to_owned()],
        Mode::Native => [tool, "{}".to_owned()],
    }
}

fn start(mode: Mode, era: Era) -> Workbench {
    start_with(two_servers(mode), mode, era)
}

fn start_with(setup: Setup, mode: Mode, era: Era) -> Workbench {
    let mut workbench = setup.start();
    match era {
        Era::Legacy => {
            workbench.initialize();
            if mode != Mode::Native {
                workbench.open("dev");
            }
        }
        Era::Modern if mode == Mode::Native => {
            workbench.ask_modern(&ModernRequest::new("server/discover"));
        }
        Era::Modern => {
            workbench.call_modern(&ModernRequest::open("dev"));
        }
    }
    workbench
}

fn link(workbench: &mut Workbench, mode: Mode, era: Era, server: &str) {
    let [tool, arguments] = link_call(mode, server);
    let answer = match era {
        Era::Legacy => workbench.ask("tools/call", &call_params(&tool, &arguments)),
        Era::Modern => workbench.ask_modern(&ModernRequest::call(&tool, &arguments)),
    };
    assert!(answer.raw_result().contains(URI), "{}", answer.line);
}

fn read_request() -> ModernRequest {
    ModernRequest::new("resources/read").param("uri", &raw_string(URI))
}

/// The server that answered, or the code of the refusal.
fn reader(answer: &Message) -> String {
    if answer.is_error() {
        return answer.error().code.to_string();
    }
    let result = answer.result();
    let text = result["contents"][0]["text"].as_str();
    text.expect("a text").to_owned()
}

fn read(workbench: &mut Workbench, era: Era) -> String {
    reader(&match era {
        Era::Legacy => workbench.ask("resources/read", &json!({"uri": URI}).to_string()),
        Era::Modern => workbench.ask_modern(&read_request()),
    })
}

#[test]
fn a_link_stays_with_the_first_server() {
    for mode in MODES {
        for era in ERAS {
            for [first, second] in [["git", "weather"], ["weather", "git"]] {
                let mut workbench = start(mode, era);
                for server in [first, second, second] {
                    link(&mut workbench, mode, era, server);
                }
                let expected = match mode {
                    Mode::Proxy | Mode::Dynamic => first,
                    // There a resource belongs to the first server that lists it, whoever links it.
                    Mode::Native => "git",
                };
                let found = read(&mut workbench, era);
                assert_eq!(found, expected, "{mode:?} {era:?} {first} first");
            }
        }
    }
}

/// Two servers: `weather` lists the resource, and `git` links it.
fn listed_and_linked(mode: Mode) -> Setup {
    let listed = json!([{"uri": URI, "name": "readme"}]);
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("weather", &lists(linking("weather"), &listed))
        .server("git", &lists(linking("git"), &json!([])));
    match mode {
        Mode::Dynamic => setup.top("toolMode", json!("dynamic")),
        Mode::Proxy | Mode::Native => setup,
    }
}

fn list(workbench: &mut Workbench) {
    let listed = workbench.ask("resources/list", "{}").result();
    assert_eq!(listed["resources"][0]["uri"], URI);
}

#[test]
fn a_resource_stays_with_the_server_that_the_client_heard_of_it_from_first() {
    let era = Era::Legacy;
    for mode in [Mode::Proxy, Mode::Dynamic] {
        for first in ["git", "weather"] {
            let mut workbench = start_with(listed_and_linked(mode), mode, era);
            if first == "weather" {
                list(&mut workbench);
            }
            link(&mut workbench, mode, era, "git");
            list(&mut workbench);
            assert_eq!(read(&mut workbench, era), first, "{mode:?}");
        }
    }
}

#[test]
fn the_list_of_one_principal_does_not_take_over_the_link_of_another() {
    for era in ERAS {
        let setup = listed_and_linked(Mode::Proxy);
        let file = setup.write("tokens", "alpha\nbeta\ngamma\n");
        let served = setup.serve_with(&["--token-file", file.to_str().unwrap()]);
        // Modern clients are shown no list.
        let alpha = HttpReader::new(&served, Era::Legacy, Some("alpha"));
        let [beta, gamma] =
            ["beta", "gamma"].map(|token| HttpReader::new(&served, era, Some(token)));
        beta.link("git");
        alpha.call("open_toolbox", r#"{"toolbox":"dev"}"#);
        let listed = alpha.ask(&ModernRequest::new("resources/list"), "{}");
        assert_eq!(listed.result()["resources"][0]["uri"], URI, "{era:?}");
        assert_eq!(beta.read(), "git", "{era:?}");
        assert_eq!(gamma.read(), "weather", "{era:?}");
    }
}

/// A client over HTTP: a session, or everything that a token sends without one.
struct HttpReader<'a> {
    served: &'a Served,
    authorization: Option<&'static str>,
    session: Option<String>,
}

impl<'a> HttpReader<'a> {
    fn new(served: &'a Served, era: Era, token: Option<&'static str>) -> Self {
        let mut client = Self {
            served,
            authorization: token,
            session: None,
        };
        if let Era::Legacy = era {
            let text = body("initialize", &initialize_params("2025-11-25"));
            let response = client.send(&text, &[]);
            let session = response.head.header("mcp-session-id");
            client.session = Some(session.expect("a session").to_owned());
        }
        client
    }

    fn send(&self, body: &str, headers: &[(&str, String)]) -> HttpResponse {
        let mut post = self.served.post(body).without("authorization");
        if let Some(token) = self.authorization {
            post = post.header("authorization", &format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            post = post.header("mcp-session-id", session);
        }
        let post = headers
            .iter()
            .fold(post, |post, (name, value)| post.header(name, value));
        self.served.connection().ask(&post)
    }

    /// Sends a request in the era of the client.
    fn ask(&self, request: &ModernRequest, legacy_params: &str) -> Message {
        let response = match self.session {
            Some(_) => self.send(&body(&request.method, legacy_params), &[]),
            None => self.send(&request.text("1"), &request.headers()),
        };
        if response.head.is_stream() {
            response.events().last().expect("an answer").message()
        } else {
            response.message()
        }
    }

    fn call(&self, tool: &str, arguments: &str) {
        let request = ModernRequest::call(tool, arguments);
        let answer = self.ask(&request, &call_params(tool, arguments));
        assert!(!answer.is_error(), "{}", answer.line);
    }

    fn link(&self, server: &str) {
        self.call("open_toolbox", r#"{"toolbox":"dev"}"#);
        let [tool, arguments] = link_call(Mode::Proxy, server);
        self.call(&tool, &arguments);
    }

    fn read(&self) -> String {
        let params = json!({"uri": URI}).to_string();
        reader(&self.ask(&read_request(), &params))
    }
}

fn body(method: &str, params: &str) -> String {
    request_text("1", method, params)
}

#[test]
fn links_are_never_read_across_principals() {
    for era in ERAS {
        let setup = two_servers(Mode::Proxy);
        let file = setup.write("tokens", "alpha\nbeta\ngamma\n");
        let served = setup.serve_with(&["--token-file", file.to_str().unwrap()]);
        let [alpha, beta, gamma] =
            ["alpha", "beta", "gamma"].map(|token| HttpReader::new(&served, era, Some(token)));
        alpha.link("git");
        beta.link("weather");
        assert_eq!(alpha.read(), "git", "{era:?}");
        assert_eq!(beta.read(), "weather", "{era:?}");
        let not_found = match era {
            Era::Legacy => "-32002",
            Era::Modern => "-32602",
        };
        assert_eq!(gamma.read(), not_found, "{era:?}");
    }
}

#[test]
fn without_tokens_links_are_not_read_across_sessions() {
    let served = two_servers(Mode::Proxy).serve_with(&["--no-auth"]);
    let [first, second, third] = [(); 3].map(|()| HttpReader::new(&served, Era::Legacy, None));
    first.link("git");
    second.link("weather");
    assert_eq!(first.read(), "git");
    assert_eq!(second.read(), "weather");
    assert_eq!(third.read(), "-32002");
}

#[test]
fn a_link_of_a_removed_server_can_be_reused_by_another() {
    let mut workbench = start(Mode::Proxy, Era::Legacy);
    for server in ["git", "weather"] {
        link(&mut workbench, Mode::Proxy, Era::Legacy, server);
    }
    assert_eq!(read(&mut workbench, Era::Legacy), "git");
    let mut config: Value = serde_json::from_str(&workbench.setup.config_text()).unwrap();
    let servers = config["toolboxes"]["dev"]["mcpServers"].as_object_mut();
    servers.unwrap().remove("git");
    workbench
        .setup
        .write("config/workbench.json", &config.to_string());
    workbench.wait_stderr("in toolbox 'dev': ");
    assert_eq!(read(&mut workbench, Era::Legacy), "-32002");
    link(&mut workbench, Mode::Proxy, Era::Legacy, "weather");
    assert_eq!(read(&mut workbench, Era::Legacy), "weather");
}
