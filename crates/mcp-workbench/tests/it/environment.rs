//! The variables, the directory and the command of a server.

use std::os::unix::fs::symlink;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Script, Setup, Workbench, fixture_server};

/// A variable for every name, set for the workbench itself.
const SAFE: &[&str] = &[
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_MESSAGES",
    "TMPDIR",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
];

const SECRET: &[&str] = &[
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "MY_APP_A",
    "MY_APP_B",
    "LCX",
];

fn setup(keys: &Value) -> Setup {
    let mut setup = Setup::new();
    for name in SAFE.iter().chain(SECRET) {
        setup = setup.env(name, &format!("/the/{name}"));
    }
    setup
        .toolbox("dev", "d")
        .server_with("fs", &Script::new(), keys)
}

/// The environment of the server.
fn environment(workbench: &mut Workbench) -> Value {
    workbench.open("dev");
    workbench.use_tool("env", "{}").structured()
}

#[test]
fn a_child_gets_the_safe_set_and_the_variables_of_its_entry() {
    let all_secrets = SECRET;
    let rows: &[(Value, &[&str])] = &[
        (json!({}), &[]),
        (json!({"inheritEnv": false}), &[]),
        (json!({"inheritEnv": true}), all_secrets),
        (json!({"inheritEnv": []}), &[]),
        (
            json!({"inheritEnv": ["GITHUB_TOKEN", "NOT_SET"]}),
            &["GITHUB_TOKEN"],
        ),
        (
            json!({"inheritEnv": ["MY_APP_*"]}),
            &["MY_APP_A", "MY_APP_B"],
        ),
        (json!({"inheritEnv": ["*"]}), all_secrets),
    ];
    for (keys, inherited) in rows {
        let mut workbench = setup(keys).connect();
        let seen = environment(&mut workbench);
        for name in SAFE {
            assert_eq!(seen[name], format!("/the/{name}"), "{keys}");
        }
        for name in ["PATH", "HOME"] {
            assert!(seen[name].is_string(), "{name} for {keys}");
        }
        for name in SECRET {
            let there = seen.get(name).is_some();
            assert_eq!(there, inherited.contains(name), "{name} for {keys}");
        }
    }
}

#[test]
fn env_wins_over_the_env_file_and_inherited_variables() {
    let keys = json!({
        "inheritEnv": true,
        "envFile": "server.env",
        "env": {"GITHUB_TOKEN": "from env", "BOTH": "from env", "TZ": "from env"},
    });
    let setup = setup(&keys);
    setup.write(
        "config/server.env",
        "# a comment\nBOTH=from file\nONLY=from file\n\nMY_APP_A=from file\n",
    );
    let seen = environment(&mut setup.connect());
    let rows = [
        ("GITHUB_TOKEN", "from env"),
        ("TZ", "from env"),
        ("BOTH", "from env"),
        ("ONLY", "from file"),
        ("MY_APP_A", "from file"),
        ("MY_APP_B", "/the/MY_APP_B"),
    ];
    for (name, value) in rows {
        assert_eq!(seen[name], value, "{name}");
    }
}

#[test]
fn the_directory_of_a_server() {
    let rows = [
        (None, "work"),
        (Some("sub"), "config/sub"),
        (Some("../other"), "other"),
    ];
    for (cwd, expected) in rows {
        let keys = cwd.map_or(json!({}), |cwd| json!({"cwd": cwd}));
        let setup = setup(&keys);
        setup.write("config/sub/file", "");
        setup.write("other/file", "");
        check_cwd(setup, expected);
    }
    let setup = Setup::new();
    let absolute = setup.path("home");
    let setup =
        setup
            .toolbox("dev", "d")
            .server_with("fs", &Script::new(), &json!({"cwd": absolute}));
    check_cwd(setup, "home");
}

fn check_cwd(setup: Setup, expected: &str) {
    let expected = setup.path(expected).canonicalize().unwrap();
    let mut workbench = setup.connect();
    workbench.open("dev");
    let seen = workbench.use_tool("cwd", "{}").structured();
    assert_eq!(seen["cwd"], json!(expected));
}

#[test]
fn a_command_with_a_slash_is_relative_to_the_file_and_one_without_is_looked_up_in_the_childs_path()
{
    let setup = Setup::new();
    let bin = setup.write("config/bin/note", "");
    let bin = bin.parent().unwrap();
    symlink(fixture_server(), bin.join("our-server")).unwrap();
    let mut workbench = setup
        .toolbox("dev", "d")
        .server_with(
            "slash",
            &Script::named(&["a"]),
            &json!({"command": "bin/our-server"}),
        )
        .server_with(
            "dot",
            &Script::named(&["b"]),
            &json!({"command": "./bin/our-server"}),
        )
        .server_with(
            "path",
            &Script::named(&["c"]),
            &json!({"command": "our-server", "env": {"PATH": bin}}),
        )
        .server_with(
            "nowhere",
            &Script::named(&["d"]),
            &json!({"command": "our-server"}),
        )
        .connect();
    let result = workbench.open("dev");
    assert_eq!(result.tool_names(), ["a", "b", "c"]);
    assert_eq!(
        result.json()["_errors"],
        json!([
            "Failed to connect to server 'nowhere' in toolbox 'dev': command 'our-server' not found"
        ])
    );
}

#[test]
fn variables_are_expanded() {
    let rows = [
        ("${GITHUB_TOKEN}", "/the/GITHUB_TOKEN"),
        ("${env:GITHUB_TOKEN}", "/the/GITHUB_TOKEN"),
        ("${GITHUB_TOKEN:-other}", "/the/GITHUB_TOKEN"),
        ("${NOT_SET:-other}", "other"),
        ("${NOT_SET:-}", ""),
        ("${NOT_SET:-a:-b c/d}", "a:-b c/d"),
        ("${NOT_SET:-$HOME}", "$HOME"),
        ("<${EMPTY}>", "<>"),
        ("<${EMPTY:-other}>", "<>"),
        ("${MY_APP_A}and${MY_APP_B}", "/the/MY_APP_Aand/the/MY_APP_B"),
        ("$${GITHUB_TOKEN}", "${GITHUB_TOKEN}"),
        ("$GITHUB_TOKEN", "$GITHUB_TOKEN"),
        ("a$b", "a$b"),
        ("{}", "{}"),
        ("$", "$"),
    ];
    for (written, expected) in rows {
        let keys = json!({"env": {"SEEN": written}, "args": [written]});
        let mut workbench = setup(&keys).env("EMPTY", "").connect();
        assert_eq!(environment(&mut workbench)["SEEN"], expected, "{written}");
        let seen = workbench.use_tool("args", "{}").structured();
        assert_eq!(seen["args"][1], expected, "{written}");
    }
}

#[test]
fn user_home_and_workspace_folder_are_expanded() {
    let keys = json!({"env": {"HOUSE": "${userHome}/x", "PLACE": "${workspaceFolder}/y"}});
    let setup = setup(&keys);
    let (home, work) = (setup.path("home/x"), setup.path("work/y"));
    let seen = environment(&mut setup.connect());
    assert_eq!(
        (&seen["HOUSE"], &seen["PLACE"]),
        (&json!(home), &json!(work))
    );
}

#[test]
fn a_description_is_expanded() {
    let mut workbench = Setup::new()
        .env("PROJECT", "Apollo")
        .toolbox("dev", "Tools of ${PROJECT} at ${PLACE:-home}")
        .start();
    let result = workbench.initialize();
    let instructions = result["instructions"].as_str().unwrap();
    assert!(
        instructions.contains(": Tools of Apollo at home\n"),
        "{instructions}"
    );
    assert_eq!(
        workbench.open("dev").json()["description"],
        "Tools of Apollo at home"
    );
}

#[test]
fn a_variable_that_is_not_set_fails_its_server_only() {
    let mut workbench = Setup::new()
        .toolbox("y", "d")
        .server_with(
            "x",
            &Script::new(),
            &json!({"env": {"TOKEN": "${GITHUB_TOKEN}"}}),
        )
        .server("fs", &Script::named(&["a"]))
        .toolbox("z", "d")
        .server_with("w", &Script::new(), &json!({"args": ["${OTHER_TOKEN}"]}))
        .server_with(
            "off",
            &Script::new(),
            &json!({"disabled": true, "env": {"A": "${NOT_EXPANDED}"}}),
        )
        .connect();
    // Both are warned of at the start, and nothing of what is disabled.
    workbench.wait_stderr("GITHUB_TOKEN");
    workbench.wait_stderr("OTHER_TOKEN");
    let result = workbench.open("y");
    assert_eq!(result.tool_names(), ["a"]);
    let reason = "variable GITHUB_TOKEN is not set (toolboxes.y.mcpServers.x.env.TOKEN)";
    assert_eq!(
        result.json()["_errors"],
        json!([format!(
            "Failed to connect to server 'x' in toolbox 'y': {reason}"
        )])
    );
    assert_eq!(
        workbench.use_tool_of(["y", "x", "echo"], "{}").error(),
        format!(
            "Error executing tool 'echo' in server 'x' (toolbox 'y'): failed to connect: {reason}"
        )
    );
    assert_eq!(
        workbench.open("z").error(),
        "Error opening toolbox 'z': Failed to connect to server 'w' in toolbox 'z': variable OTHER_TOKEN is not set (toolboxes.z.mcpServers.w.args[1])"
    );
    let stderr = workbench.stderr();
    assert!(!stderr.contains("NOT_EXPANDED"), "{stderr}");
}
