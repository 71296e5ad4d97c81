//! Tokens: their sources, the storage of a generated one, and the cases without one.

use std::{fs, os::unix::fs::PermissionsExt};

use pretty_assertions::assert_eq;

use crate::harness::{Fault, Served, Setup};

fn status(served: &Served, token: Option<&str>) -> u16 {
    let request = served.request("DELETE", "/mcp").without("authorization");
    let request = match token {
        Some(token) => request.header("authorization", &format!("Bearer {token}")),
        None => request,
    };
    served.connection().ask(&request).head.status
}

/// The status of a request with a valid token and without a session.
const LET_IN: u16 = 400;

#[test]
fn a_token_is_created_once_and_private_to_the_user() {
    let fault = Fault::within(
        15,
        "T25b",
        "no token is configured; later others can read the file of the one that was made",
        "one is made, 0600, not shown in the log; a file that others can read is refused at start",
    );
    let setup = Setup::new();
    let state = setup.path("state");
    let file = state.join("mcp-workbench/token");
    let config = setup.config();
    let served = setup
        .env("XDG_STATE_HOME", state.to_str().unwrap())
        .serve_with(&[]);
    let token = fs::read_to_string(&file).unwrap();
    let token = token.trim();
    assert!(token.len() >= 43 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.clone()), 0o600);
    assert_eq!(mode(file.parent().unwrap().to_owned()), 0o700);
    // Beside it is only the record by which `mcp-workbench ui` finds the page.
    let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing else beside it");
    assert_eq!(mode(file.with_file_name("page.json")), 0o600);
    served.workbench.wait_stderr(file.to_str().unwrap());
    let stderr = served.workbench.stderr();
    assert!(!stderr.contains(token), "not shown where no person reads");
    assert_eq!(status(&served, Some(token)), LET_IN);
    assert_eq!(status(&served, None), 401);
    assert!(config.exists());
    // The next start uses it again.
    let again = Setup::new()
        .env("XDG_STATE_HOME", state.to_str().unwrap())
        .serve_with(&[]);
    assert_eq!(status(&again, Some(token)), LET_IN);
    // Where others can read it, it is no token any more.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let stderr = refusal(
        Setup::new().env("XDG_STATE_HOME", state.to_str().unwrap()),
        &["--http", "127.0.0.1:0"],
    );
    assert!(
        stderr.contains("other users can read this file"),
        "{stderr}"
    );
    fault.ends();
}

#[test]
fn without_a_state_directory_the_token_is_in_the_home_directory() {
    let served = Setup::new().serve_with(&[]);
    let file = served
        .workbench
        .setup
        .path("home/.local/state/mcp-workbench/token");
    let token = fs::read_to_string(file).unwrap();
    assert_eq!(status(&served, Some(token.trim())), LET_IN);
}

#[test]
fn a_token_file_wins_over_the_variable() {
    let setup = Setup::new().env("WORKBENCH_TOKEN", "of-the-variable");
    let file = setup.write("tokens", "of-the-file\nof-another\n");
    let served = setup.serve_with(&["--token-file", file.to_str().unwrap()]);
    assert_eq!(status(&served, Some("of-the-file")), LET_IN);
    assert_eq!(status(&served, Some("of-another")), LET_IN);
    assert_eq!(status(&served, Some("of-the-variable")), 401);
}

#[test]
fn a_short_token_is_warned_about_on_loopback() {
    let served = Setup::new().env("WORKBENCH_TOKEN", "x").serve_with(&[]);
    assert_eq!(status(&served, Some("x")), LET_IN);
    let workbench = &served.workbench;
    workbench.wait_stderr("a token of length 1 can be guessed; use at least 16 random characters");
}

#[test]
fn only_an_explicit_flag_removes_the_token() {
    let served = Setup::new().serve_with(&["--no-auth"]);
    assert_eq!(status(&served, None), LET_IN);
    let state = served
        .workbench
        .setup
        .path("home/.local/state/mcp-workbench");
    assert!(!state.join("token").exists());
}

#[test]
fn unsafe_combinations_of_flags_are_refused() {
    let fault = Fault::within(
        30,
        "T25c",
        "--no-auth or a short token beyond loopback, an empty or malformed token, a missing token file",
        "refused at start with the reason",
    );
    let rows: &[(&[&str], &str, &str)] = &[
        (
            &["--http", "0.0.0.0:0", "--no-auth"],
            "x",
            "--no-auth is refused",
        ),
        (
            &["--http", "[::]:0", "--no-auth"],
            "x",
            "--no-auth is refused",
        ),
        (&["--http", "127.0.0.1:0"], "", "WORKBENCH_TOKEN"),
        (
            &["--http", "127.0.0.1:0"],
            "two words",
            "there is no client `words`",
        ),
        (
            &["--http", "127.0.0.1:0", "--token-file", "/nowhere"],
            "x",
            "/nowhere",
        ),
        (&["--http", "8700"], "x", "ADDRESS:PORT"),
        (&["--http", "example.com:80"], "x", "ADDRESS:PORT"),
        (&["--no-auth"], "x", "--http"),
        (&["--token-file", "x"], "x", "--http"),
        (
            &["--http", "0.0.0.0:0"],
            "x",
            "refusing a token of length 1 at 0.0.0.0:0",
        ),
        (
            &["--http", "[::]:0"],
            "123456789012345",
            "openssl rand -hex",
        ),
        (
            &["--http", "192.0.2.1:1"],
            "1234567890123456",
            "cannot listen at 192.0.2.1:1",
        ),
    ];
    for (arguments, token, reason) in rows {
        let stderr = refusal(Setup::new().env("WORKBENCH_TOKEN", token), arguments);
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
    fault.ends();
}

/// Returns the stderr of a start that fails.
fn refusal(setup: Setup, arguments: &[&str]) -> String {
    setup.write_config();
    let config = setup.config();
    let begin = ["--config", config.to_str().unwrap(), "serve"];
    let mut workbench = setup.start_with(&[&begin, arguments].concat());
    let finished = workbench.finish();
    assert_ne!(finished.status.code(), Some(0), "{arguments:?}");
    finished.stderr
}
