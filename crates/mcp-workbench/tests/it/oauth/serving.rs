//! Serving servers that need a token: the errors without one, and calls with one.

use pretty_assertions::assert_eq;
use serde_json::json;
use tempfile::TempDir;

use super::{
    run,
    served::{
        ACCEPT, address, answer, auth_required, browse, code, keeping_in, offer, protected,
        send_open, showing, sign_in_elsewhere, step_up_elsewhere,
    },
    text,
};
use crate::harness::{
    Script, Setup,
    authority::{Authority, Client, NOISE, Protected, SECRET},
};

/// Every request that a server has had with a token that it refused, or without one.
fn without_token(server: &Protected) -> usize {
    let seen = server.seen().into_iter();
    seen.filter(|it| it.route() == "/mcp" && it.bearer().is_none())
        .count()
}

/// A server that wants nothing.
fn other() -> Script {
    Script::named(&["o"]).answers("o", r#"{"content":[]}"#)
}

#[test]
fn without_a_sign_in_the_error_names_the_command_and_other_servers_work() {
    let (_authority, server) = protected();
    let setup = server.setup(&json!({})).server("other", &other());
    let config = setup.config().display().to_string();
    let mut workbench = setup.connect();
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["o"]);
    let reason = format!(
        "HTTP 401: not signed in (nobody has signed in); the user must sign in with `mcp-workbench --config \
         {config} login dev fs` (no restart needed)"
    );
    assert_eq!(
        opened.json()["_errors"],
        json!([format!(
            "Failed to connect to server 'fs' in toolbox 'dev': {reason}"
        )])
    );
    let call = workbench.use_tool("t", "{}");
    assert_eq!(
        call.error(),
        format!(
            "Error executing tool 't' in server 'fs' (toolbox 'dev'): failed to connect: {reason}"
        )
    );
    assert_eq!(code(&call), auth_required("not_sent"));
    assert!(!workbench.use_tool_of(["dev", "other", "o"], "{}").failed());
    assert!(!workbench.finish().stderr.contains(NOISE));
}

#[test]
fn the_command_omits_a_configuration_that_is_found_by_default() {
    let (_authority, server) = protected();
    let setup = server.setup(&json!({}));
    let usual = "home/.config/mcp-workbench/workbench-config.json";
    setup.write(usual, &setup.config_text());
    let mut workbench = setup.start_with(&[]);
    workbench.initialize();
    let failed = workbench.open("dev");
    let command = "`mcp-workbench login dev fs`";
    assert!(failed.error().contains(command), "{}", failed.raw);
    assert_eq!(failed.failure()["code"], "auth_required");
}

#[test]
fn doctor_and_list_name_the_login_command() {
    let (_authority, server) = protected();
    let setup = server.setup(&json!({}));
    setup.write_config();
    let config = setup.config();
    let command = format!("mcp-workbench --config {} login dev fs", config.display());
    for arguments in [&["list", "--tools"][..], &["doctor"]] {
        let output = run(&setup, arguments);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("not signed in"), "{said}");
        assert!(said.contains(&command), "{said}");
    }
}

#[test]
fn a_sign_in_by_another_process_is_used_at_once() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    let mut opening = setup().connect();
    // More often than a server may fail that does not come up.
    for _ in 0..7 {
        assert_eq!(code(&opening.open("dev")), auth_required("not_sent"));
    }
    let auto = setup().top("autoOpen", json!(true));
    let mut calling = auto.connect();
    for _ in 0..7 {
        assert_eq!(
            code(&calling.use_tool("t", "{}")),
            auth_required("not_sent")
        );
    }
    sign_in_elsewhere(setup());
    assert_eq!(opening.open("dev").tool_names(), ["t", "u"]);
    assert!(!calling.use_tool("t", "{}").failed());
    assert_eq!(authority.token_requests("refresh_token").len(), 0);
    let before = without_token(&server);
    assert!(!opening.use_tool("t", "{}").failed());
    let mut later = setup().connect();
    assert_eq!(later.open("dev").tool_names(), ["t", "u"]);
    drop((opening, calling, later));
    assert_eq!(
        without_token(&server),
        before,
        "every request has the token"
    );
    let ended = server.server().wait_verb("DELETE");
    assert!(ended.bearer().is_some(), "the end of a session too");
}

#[test]
fn missing_scopes_are_named() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let mut workbench = setup().connect();
    workbench.open("dev");
    server.set(|knobs| knobs.call_scope = Some("files:write".to_owned()));
    let failed = workbench.use_tool("t", "{}");
    assert_eq!(code(&failed), auth_required("rejected"));
    let words = "HTTP 403: the sign-in lacks the required scopes (missing: 'files:write'); the user must sign in \
                 with `mcp-workbench --config";
    assert!(failed.error().contains(words), "{}", failed.raw);
    assert!(!failed.raw.contains(NOISE), "{}", failed.raw);
    assert_eq!(server.server().received("tools/call").len(), 1);
    assert_eq!(authority.token_requests("refresh_token").len(), 0);
    step_up_elsewhere(setup());
    let asked = authority.asked("/authorize");
    let asked = asked.last().unwrap().parameter("scope").unwrap_or_default();
    assert!(asked.split(' ').any(|it| it == "files:write"), "{asked}");
    assert!(!workbench.use_tool("t", "{}").failed(), "without a restart");
}

#[test]
fn client_credentials_need_no_sign_in() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let known = Client {
        secret: Some("secret-of-mine".to_owned()),
        ..Client::default()
    };
    authority.know_client("machine", known);
    let entry = |secret: &str| {
        let oauth =
            json!({"grant": "client_credentials", "clientId": "machine", "clientSecret": secret});
        keeping_in(state.path(), server.setup(&json!({ "oauth": oauth })))
    };
    let mut workbench = entry("secret-of-mine").connect();
    assert_eq!(workbench.open("dev").tool_names(), ["t", "u"]);
    // They are good for whatever is asked for.
    server.set(|knobs| knobs.call_scope = Some("files:write".to_owned()));
    assert!(!workbench.use_tool("t", "{}").failed());
    let mut wrong = entry("secret-of-others").connect();
    let failed = wrong.open("dev");
    assert_eq!(code(&failed), auth_required("not_sent"));
    assert!(failed.error().contains("check \"oauth\""), "{}", failed.raw);
    assert!(!failed.raw.contains("login"), "{}", failed.raw);
    for said in [failed.raw, wrong.finish().stderr, workbench.finish().stderr] {
        assert!(!said.contains(SECRET), "{said}");
    }
}

#[test]
fn without_oauth_the_error_points_to_the_headers() {
    let (authority, server) = protected();
    for keys in [
        json!({"headers": {"Authorization": "Bearer of-mine"}}),
        json!({"oauth": false}),
    ] {
        let mut workbench = server.setup(&keys).connect();
        let failed = workbench.open("dev");
        assert_eq!(code(&failed), auth_required("not_sent"));
        assert!(
            failed.error().contains("check \"headers\""),
            "{}",
            failed.raw
        );
        assert!(!failed.raw.contains("login"), "{}", failed.raw);
    }
    assert_eq!(authority.seen().len(), 0, "nobody was asked anything");
}

#[test]
fn tokens_of_clients_are_not_passed_on() {
    let state = TempDir::new().unwrap();
    let (authority, server) = protected();
    let setup = || keeping_in(state.path(), server.setup(&json!({})));
    sign_in_elsewhere(setup());
    let served = setup().serve();
    let mut client = served.client();
    assert_eq!(client.open().tool_names(), ["t", "u"]);
    assert!(!client.use_tool("t", "{}").failed());
    let given = authority.secrets();
    for seen in server.seen() {
        if let Some(bearer) = seen.bearer() {
            assert!(given.iter().any(|it| it == bearer), "{bearer}");
        }
    }
}

#[test]
fn tool_lists_are_cached_per_account() {
    let state = TempDir::new().unwrap();
    let authority = Authority::start();
    let server = Protected::start_with(&authority, |seen, out| {
        // Everybody has a tool that is named for their token.
        (seen.method() == "tools/list").then(|| {
            let token = seen.bearer().unwrap().replace(SECRET, "");
            let tool = json!({"name": token, "inputSchema": {"type": "object"}});
            out.json(&seen.answer(&json!({"tools": [tool]}).to_string()))
        })
    });
    let cache = TempDir::new().unwrap();
    let setup = |account: &str| -> Setup {
        let keys = json!({"oauth": {"account": account}});
        keeping_in(state.path(), server.setup(&keys))
            .top("connect", json!("on-use"))
            .env("XDG_CACHE_HOME", cache.path().to_str().unwrap())
    };
    let names = ["one", "other"].map(|account| {
        let mut workbench = showing(setup(account));
        let opening = send_open(&mut workbench);
        let offer = offer(&mut workbench);
        answer(&mut workbench, &offer, ACCEPT);
        browse(&address(&offer));
        let names = workbench.tool_result(&opening).tool_names();
        workbench.finish();
        names
    });
    assert_ne!(names[0], names[1]);
    let asked = server.server().received("tools/list").len();
    for (account, names) in ["one", "other"].iter().zip(&names) {
        let mut workbench = setup(account).connect();
        assert_eq!(&workbench.open("dev").tool_names(), names, "{account}");
    }
    let kept = server.server().received("tools/list").len() == asked;
    assert!(kept, "both were known without asking");
    let mut nobody = setup("third").connect();
    assert_eq!(code(&nobody.open("dev")), auth_required("not_sent"));
}
