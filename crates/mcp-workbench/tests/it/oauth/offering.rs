//! Signing in through the client: the address is offered to its user, and what was wanted goes on when it is done. Where
//! that cannot be, or is not wanted, there is the failure that there is without it.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::served::{
    ACCEPT, ADDRESSES, address, answer, auth_required, browse, code, offer, protected, send_open,
    showing,
};
use crate::harness::{
    ModernClient, ModernRequest, Script, TOKEN, ToolResult, Workbench,
    authority::{Authority, Protected, SECRET, User},
    call_params,
};

/// Nothing was asked of the client.
fn is_left_alone(workbench: &Workbench) -> bool {
    let mut untaken = workbench.untaken().iter();
    !untaken.any(|it| it.method.as_deref() == Some("elicitation/create"))
}

#[test]
fn an_open_continues_after_the_sign_in() {
    let (authority, server) = protected();
    let setup = server
        .setup(&json!({}))
        .server("other", &Script::named(&["o"]));
    let mut workbench = showing(setup);
    let opening = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    let params = asked.params();
    assert_eq!(params["mode"], "url");
    assert_eq!(
        params["message"],
        "MCP Workbench asks: sign in to server 'fs' of toolbox 'dev'? It requires you to sign in."
    );
    assert!(address(&asked).starts_with(&authority.issuer()), "{params}");
    let id = params["elicitationId"].as_str().unwrap().to_owned();
    answer(&mut workbench, &asked, ACCEPT);
    let page = browse(&address(&asked));
    assert!(page.contains("You are signed in"), "{page}");
    let complete = workbench.notification("notifications/elicitation/complete");
    assert_eq!(complete.params(), json!({ "elicitationId": id }));
    let opened = workbench.tool_result(&opening);
    assert_eq!(opened.tool_names(), ["t", "u", "o"]);
    assert_eq!(opened.json()["_errors"], Value::Null);
    assert!(!workbench.use_tool("t", "{}").failed());
}

#[test]
fn a_client_may_answer_the_offer_after_the_sign_in() {
    let (_authority, server) = protected();
    let mut workbench = showing(server.setup(&json!({})));
    let opening = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    browse(&address(&asked));
    assert_eq!(workbench.tool_result(&opening).tool_names(), ["t", "u"]);
    answer(&mut workbench, &asked, ACCEPT);
    assert!(!workbench.use_tool("t", "{}").failed());
}

#[test]
fn a_call_continues_after_the_sign_in() {
    let (authority, server) = protected();
    let mut workbench = showing(server.setup(&json!({})).top("autoOpen", json!(true)));
    for round in 0..2 {
        let call = workbench.send_use("t", "{}");
        let asked = offer(&mut workbench);
        answer(&mut workbench, &asked, ACCEPT);
        browse(&address(&asked));
        assert!(!workbench.tool_result(&call).failed());
        // The second time it is a server that is up, whose sign-in was taken back.
        authority.revoke_all();
        assert_eq!(
            authority.token_requests("authorization_code").len(),
            round + 1
        );
    }
}

#[test]
fn a_call_of_a_script_continues_after_the_sign_in_and_its_time_stands_still() {
    let (_authority, server) = protected();
    let setup = server
        .setup(&json!({}))
        .server("other", &Script::named(&["hang"]))
        .top("autoOpen", json!(true))
        .top("metaTools", json!(["open_toolbox", "use_tool", "run_code"]));
    let mut workbench = showing(setup);
    let run = |script: &str| json!({"code": script, "timeout_s": 3}).to_string();
    let paused = workbench.send_call("run_code", &run("await tools.fs.t({}); return 1"));
    let asked = offer(&mut workbench);
    answer(&mut workbench, &asked, ACCEPT);
    // The first run would be over before this one is.
    let late = workbench.call("run_code", &run("await tools.other.hang({})"));
    assert!(late.error().starts_with("Time limit 3 s"), "{}", late.raw);
    browse(&address(&asked));
    let result = workbench.tool_result(&paused);
    assert_eq!(result.structured()["result"], 1, "{}", result.raw);
}

#[test]
fn a_call_refused_after_the_sign_in_gets_no_second_offer() {
    for is_open in [false, true] {
        let (authority, server) = protected();
        authority.set(|knobs| knobs.granted = Some("read".to_owned()));
        let mut workbench = showing(server.setup(&json!({})).top("autoOpen", json!(true)));
        if is_open {
            let opening = send_open(&mut workbench);
            let asked = offer(&mut workbench);
            answer(&mut workbench, &asked, ACCEPT);
            browse(&address(&asked));
            assert!(!workbench.tool_result(&opening).failed());
        }
        server.set(|knobs| knobs.call_scope = Some("files:write".to_owned()));
        let call = workbench.send_use("t", "{}");
        let asked = offer(&mut workbench);
        answer(&mut workbench, &asked, ACCEPT);
        browse(&address(&asked));
        // A second offer would keep the call from being answered.
        let failed = workbench.tool_result(&call);
        assert_eq!(code(&failed), auth_required("rejected"), "{is_open}");
        assert!(is_left_alone(&workbench), "{is_open}");
        // The next call is offered it again.
        workbench.send_use("t", "{}");
        offer(&mut workbench);
    }
}

#[test]
fn a_declined_or_failed_sign_in_is_the_usual_error() {
    for (result, user) in [
        (r#"{"action":"decline"}"#, User::Agrees),
        (r#"{"action":"cancel"}"#, User::Agrees),
        ("{}", User::Agrees),
        (ACCEPT, User::Denies),
    ] {
        let (authority, server) = protected();
        authority.set(|knobs| knobs.user = user);
        let mut workbench = showing(server.setup(&json!({})));
        let opening = send_open(&mut workbench);
        let asked = offer(&mut workbench);
        answer(&mut workbench, &asked, result);
        if user == User::Denies {
            let page = browse(&address(&asked));
            assert!(page.contains("You are not signed in"), "{page}");
        }
        let failed = workbench.tool_result(&opening);
        assert_eq!(code(&failed), auth_required("not_sent"));
        assert!(failed.error().contains("login dev fs"), "{}", failed.raw);
        assert_eq!(authority.asked("/token").len(), 0);
        // It can be offered again.
        authority.set(|knobs| knobs.user = User::Agrees);
        let opening = send_open(&mut workbench);
        let asked = offer(&mut workbench);
        answer(&mut workbench, &asked, ACCEPT);
        browse(&address(&asked));
        assert_eq!(workbench.tool_result(&opening).tool_names(), ["t", "u"]);
    }
}

#[test]
fn cancelling_the_call_ends_the_sign_in() {
    let (_authority, server) = protected();
    let mut workbench = showing(server.setup(&json!({})));
    let opening = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    answer(&mut workbench, &asked, ACCEPT);
    workbench.notify(
        "notifications/cancelled",
        &format!(r#"{{"requestId":{opening}}}"#),
    );
    // Another offer is made only if the first is over, and with another port.
    let opening = send_open(&mut workbench);
    let next = offer(&mut workbench);
    assert_ne!(address(&asked), address(&next));
    answer(&mut workbench, &next, ACCEPT);
    browse(&address(&next));
    assert_eq!(workbench.tool_result(&opening).tool_names(), ["t", "u"]);
}

#[test]
fn sign_ins_are_offered_one_after_the_other() {
    let authority = Authority::start();
    let servers = [Protected::start(&authority), Protected::start(&authority)];
    let setup = servers[0].setup(&json!({}));
    let setup = setup.entry("second", json!({"url": servers[1].url()}));
    let mut workbench = showing(setup);
    let opening = send_open(&mut workbench);
    let first = offer(&mut workbench);
    assert!(is_left_alone(&workbench), "one at a time");
    answer(&mut workbench, &first, r#"{"action":"decline"}"#);
    let second = offer(&mut workbench);
    let message = second.params()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("'second'"), "{message}");
    answer(&mut workbench, &second, ACCEPT);
    browse(&address(&second));
    let opened = workbench.tool_result(&opening).json();
    assert_eq!(opened["servers_connected"], 1);
    assert_eq!(opened["_errors"].as_array().unwrap().len(), 1);
}

#[test]
fn concurrent_calls_get_one_offer_per_server() {
    let (_authority, server) = protected();
    let mut workbench = showing(server.setup(&json!({})));
    let first = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    let second = send_open(&mut workbench);
    let failed = workbench.tool_result(&second);
    assert_eq!(code(&failed), auth_required("not_sent"));
    assert!(is_left_alone(&workbench));
    answer(&mut workbench, &asked, ACCEPT);
    browse(&address(&asked));
    assert_eq!(workbench.tool_result(&first).tool_names(), ["t", "u"]);
}

#[test]
fn a_modern_client_is_offered_the_sign_in_as_input_required() {
    let (authority, server) = protected();
    let mut workbench = server.setup(&json!({})).start();
    let open = ModernRequest::open("dev").capabilities(ADDRESSES);
    for result in [r#"{"action":"decline"}"#, ACCEPT] {
        let asked = workbench.ask_for_questions(&open);
        let (_, question) = asked.only();
        assert_eq!(question["method"], "elicitation/create");
        let params = &question["params"];
        assert_eq!(params["mode"], "url");
        assert_eq!(params["elicitationId"], Value::Null, "the era has none");
        let address = params["url"].as_str().unwrap().to_owned();
        let responses = asked.responses(|_, _| result.to_owned());
        let id = workbench.send_modern(&open.retry(&asked, &responses));
        if result == ACCEPT {
            browse(&address);
            let opened = ToolResult::of(&workbench.response(&id));
            assert_eq!(opened.tool_names(), ["t", "u"]);
        } else {
            let failed = ToolResult::of(&workbench.response(&id));
            assert_eq!(code(&failed), auth_required("not_sent"));
        }
    }
    authority.revoke_all();
    let call = ModernRequest::use_tool("t", "{}").capabilities(ADDRESSES);
    let asked = workbench.ask_for_questions(&call);
    let address = asked.only().1["params"]["url"].as_str().unwrap().to_owned();
    browse(&address);
    let responses = asked.responses(|_, _| ACCEPT.to_owned());
    let called = workbench.call_modern(&call.retry(&asked, &responses));
    assert!(!called.failed(), "{}", called.raw);
}

#[test]
fn a_client_without_url_elicitation_gets_no_offer() {
    for capabilities in [
        json!({}),
        json!({"elicitation": {}}),
        json!({"elicitation": {"form": {}}}),
    ] {
        let (authority, server) = protected();
        let mut workbench = server.setup(&json!({})).start();
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "it", "version": "1"},
        });
        workbench.ask("initialize", &params.to_string());
        assert_eq!(code(&workbench.open("dev")), auth_required("not_sent"));
        assert!(is_left_alone(&workbench));
        assert_eq!(authority.seen().len(), 0, "no sign-in was begun");
    }
}

/// Returns true if a client over HTTP is offered a sign-in.
fn is_offered_over_http(arguments: &[&str]) -> bool {
    let (_authority, server) = protected();
    let setup = server.setup(&json!({}));
    let served = match arguments {
        ["--no-auth"] => setup.serve_with(arguments),
        _ => setup.env("WORKBENCH_TOKEN", TOKEN).serve_with(arguments),
    };
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"url": {}}},
        "clientInfo": {"name": "it", "version": "1"},
    });
    let client = served.client_with(&params.to_string());
    let open = call_params("open_toolbox", r#"{"toolbox":"dev"}"#);
    let mut stream = client.begin("7", "tools/call", &open);
    if !stream.head().is_stream() {
        return false;
    }
    let said = std::iter::from_fn(|| stream.event()).find(|it| !it.data.is_empty());
    let first = said.expect("something is said").message();
    first.method.as_deref() == Some("elicitation/create")
}

#[test]
fn over_http_a_sign_in_is_offered_only_on_this_machine_with_a_token() {
    for (arguments, expected) in [
        (&[][..], true),
        // Others pass requests on, from anywhere.
        (&["--allow-host", "box.example"], false),
        // Nobody knows who asks.
        (&["--no-auth"], false),
    ] {
        assert_eq!(is_offered_over_http(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn an_offered_sign_in_leaks_no_secret() {
    let (authority, server) = protected();
    authority.set(|knobs| knobs.registers_as = "client_secret_basic");
    let setup = server
        .setup(&json!({}))
        .argument("--log-level")
        .argument("trace");
    let mut workbench = showing(setup);
    let opening = send_open(&mut workbench);
    let asked = offer(&mut workbench);
    answer(&mut workbench, &asked, ACCEPT);
    browse(&address(&asked));
    workbench.tool_result(&opening);
    workbench.use_tool("t", "{}");
    authority.end_access();
    workbench.use_tool("t", "{}");
    let finished = workbench.finish();
    assert!(authority.secrets().len() >= 5, "{:?}", authority.secrets());
    assert!(finished.stderr.contains("signed in"), "{}", finished.stderr);
    for said in [finished.stderr, finished.stdout.join("\n")] {
        assert!(!said.contains(SECRET), "{said}");
    }
}
