//! Tests of the variables that a child gets.

use std::{io::Write, path::Path};

use super::*;

fn names(rule: &Inherit, variables: &[(&str, &str)]) -> Vec<String> {
    let variables = variables
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let environment = Environment::new(variables, "/start".into(), None);
    inherited(&environment, rule)
        .into_iter()
        .map(|(name, _)| name.into_string().expect("the names are text"))
        .collect()
}

const OURS: [(&str, &str); 7] = [
    ("PATH", "/bin"),
    ("GITHUB_TOKEN", "t"),
    ("GITLAB_TOKEN", "u"),
    ("WORKBENCH_TOKEN", "w"),
    ("LC_ALL", "C"),
    ("LANG", "() { :; }; echo"),
    ("FN", "() { :; }"),
];

fn globs(patterns: &[&str]) -> Inherit {
    Inherit::Names(patterns.iter().map(|pattern| Glob::new(pattern)).collect())
}

#[test]
fn every_variable_of_the_safe_set_is_safe() {
    let safe = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TMPDIR",
        "TZ",
        "HTTP_PROXY",
        "https_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "DBUS_SESSION_BUS_ADDRESS",
        "SSH_AUTH_SOCK",
        "XDG_RUNTIME_DIR",
        "SystemRoot",
        "APPDATA",
        "LOCALAPPDATA",
        "PATHEXT",
        "COMSPEC",
        "TEMP",
        "USERPROFILE",
    ];
    for name in safe {
        assert!(is_safe(OsStr::new(name)), "{name}");
    }
    for name in [
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "LCX",
    ] {
        assert!(!is_safe(OsStr::new(name)), "{name}");
    }
}

#[test]
fn inherit_env_decides_which_variables_are_passed() {
    let cases = [
        (Inherit::SafeSet, vec!["PATH", "LC_ALL"]),
        (
            Inherit::Everything,
            vec![
                "PATH",
                "GITHUB_TOKEN",
                "GITLAB_TOKEN",
                "LC_ALL",
                "LANG",
                "FN",
            ],
        ),
        (
            globs(&["GITHUB_TOKEN"]),
            vec!["PATH", "GITHUB_TOKEN", "LC_ALL"],
        ),
        (
            globs(&["GIT*_TOKEN", "NOT_THERE"]),
            vec!["PATH", "GITHUB_TOKEN", "GITLAB_TOKEN", "LC_ALL"],
        ),
        (globs(&["WORKBENCH_*"]), vec!["PATH", "LC_ALL"]),
        (
            globs(&["WORKBENCH_TOKEN"]),
            vec!["PATH", "WORKBENCH_TOKEN", "LC_ALL"],
        ),
    ];
    for (rule, expected) in cases {
        assert_eq!(names(&rule, &OURS), expected, "{rule:?}");
    }
}

fn child(file: Option<&Path>) -> ChildEnvironment {
    ChildEnvironment {
        inherited: vec![("A".into(), "ours".into()), ("PATH".into(), "/bin".into())],
        file: file.map(Into::into),
        own: [("A".into(), "own".into()), ("C".into(), "own".into())].into(),
    }
}

fn written(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(content).expect("writing it");
    file
}

#[test]
fn env_overrides_the_file_and_the_file_overrides_inherited_variables() {
    let file = written(b"PATH=/file\nC=file\nD=file\n");
    let variables = child(Some(file.path()))
        .variables(&mut Secrets::default())
        .expect("a good file");
    let expected = [("A", "own"), ("PATH", "/file"), ("C", "own"), ("D", "file")];
    let expected = expected.map(|(name, value)| (name.into(), value.into()));
    assert_eq!(variables, IndexMap::<OsString, OsString>::from(expected));
}

#[test]
fn a_bad_file_is_named_with_its_line() {
    let file = written(b"A=1\nnonsense\n");
    let error = child(Some(file.path()))
        .variables(&mut Secrets::default())
        .expect_err("a bad line");
    assert_eq!(
        error.to_string(),
        format!(
            "the envFile `{}` is malformed at line 2: expected `KEY=VALUE`",
            file.path().display()
        )
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = child(Some(Path::new("/no/such/file"))).variables(&mut Secrets::default());
    let error = missing.expect_err("there is no such file");
    assert_eq!(error.to_string(), "cannot read the envFile `/no/such/file`");
    let binary = written(b"A=\xff\n");
    let error = child(Some(binary.path()))
        .variables(&mut Secrets::default())
        .expect_err("no text");
    assert!(error.to_string().ends_with("is not UTF-8 text"), "{error}");
}
