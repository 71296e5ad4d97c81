//! The form and the place of log lines.

use std::fs;

use serde_json::Value;

use crate::harness::{Script, Setup};

#[test]
fn json_lines_say_which_server_they_are_about() {
    let script = Script::named(&["read"]);
    let setup = Setup::one(&script)
        .argument("--log-format")
        .argument("json");
    let mut workbench = setup.connect();
    workbench.open("dev");
    let finished = workbench.finish();
    let lines: Vec<Value> = { finished.stderr.lines() }
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let using = lines
        .iter()
        .find(|it| it["message"].as_str().unwrap().starts_with("using "));
    let using = using.unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(using["level"], "info");
    assert!(using["time"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_log_file_takes_the_place_of_stderr_and_is_private() {
    let script = Script::named(&["read"]);
    let setup = Setup::one(&script);
    let file = setup.path("log/workbench.log");
    fs::create_dir(setup.path("log")).unwrap();
    let setup = setup
        .argument("--log-file")
        .argument(file.to_str().unwrap());
    let mut workbench = setup.connect();
    workbench.open("dev");
    let finished = workbench.finish();
    assert_eq!(finished.stderr, "");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("using "), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_log_file_that_cannot_be_opened_ends_the_start() {
    let setup = Setup::new();
    setup.write_config();
    let mut command = setup.command();
    let output = command
        .args(["--log-file", "/nowhere/log", "check"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("cannot open the log file /nowhere/log"),
        "{stderr}"
    );
}
