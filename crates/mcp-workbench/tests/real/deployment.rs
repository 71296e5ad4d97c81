//! The files of packaging/ that deploy a workbench for a team: tools from the registries accept them, `check` accepts the
//! configurations in them, and a workbench with their arguments answers their probes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::packages::{python, python_program};
use crate::process::Process;
use crate::services::{free_address, get, program, wait_for};
use crate::workbench::PROGRAM;

/// The path of the program where it is deployed.
const INSTALLED: &str = "/usr/local/bin/mcp-workbench";
const CONFIG: &str = "/etc/mcp-workbench/workbench-config.json";

fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(path)
}

fn manifests() -> Vec<PathBuf> {
    let folder = fs::read_dir(packaging("kubernetes")).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

/// Reads a YAML file with one document.
fn yaml(path: &Path) -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let mut command = Command::new(python());
    command.args(["-c", script]).arg(path);
    let lines = Process::start(command).finish();
    serde_json::from_str(&lines.concat()).unwrap()
}

/// Reads a manifest for Kubernetes.
pub(crate) fn manifest(name: &str) -> Value {
    yaml(&packaging(&format!("kubernetes/{name}.yaml")))
}

fn words(value: &Value) -> Vec<String> {
    let words = value.as_array().unwrap().iter();
    words.map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Runs a tool, which must accept the files.
fn accepts(tool: PathBuf, arguments: &[&str], files: &[PathBuf]) {
    let mut command = Command::new(tool);
    command.args(arguments).args(files);
    Process::start(command).finish();
}

#[test]
fn tools_accept_the_container_file_the_manifests_and_the_compose_file() {
    let container = packaging("container/Containerfile");
    accepts(python_program("hadolint"), &[], &[container]);
    let tool = python_program("kubernetes-validate");
    accepts(tool, &["--strict"], &manifests());
    let schema = ["--builtin-schema", "vendor.compose-spec"];
    let compose = packaging("compose/compose.yaml");
    accepts(python_program("check-jsonschema"), &schema, &[compose]);
    if let Some(haproxy) = program("haproxy", "haproxy") {
        accepts(haproxy, &["-c", "-f"], &[packaging("compose/haproxy.cfg")]);
    }
}

#[test]
fn there_is_a_manifest_of_every_kind() {
    let manifests = manifests();
    let kinds = manifests.iter().map(|path| yaml(path)["kind"].clone());
    let mut kinds: Vec<String> = kinds.map(|it| it.as_str().unwrap().to_owned()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [
            "ConfigMap",
            "Deployment",
            "HorizontalPodAutoscaler",
            "NetworkPolicy",
            "PodDisruptionBudget",
            "Secret",
            "Service",
        ]
    );
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_closed() {
    let Some(analyze) = program("systemd-analyze", "systemd") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(packaging("systemd/mcp-workbench.service")).unwrap();
    assert!(text.contains(&format!("ExecStart={INSTALLED} ")));
    let unit = folder.path().join("mcp-workbench.service");
    fs::write(&unit, text.replace(INSTALLED, PROGRAM)).unwrap();
    let unit = [unit];
    accepts(analyze.clone(), &["verify"], &unit);
    // Tenths of its scale from 0 to 10, on which a unit without any setting has 9.6.
    let closed = ["security", "--offline=true", "--threshold=20"];
    accepts(analyze, &closed, &unit);
}

/// Starts a workbench as a file deploys it, with another address and place of the configuration.
struct Deployed {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Deployed {
    fn new(arguments: Vec<String>, config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("workbench-config.json"), config).unwrap();
        Self {
            folder,
            arguments,
            variables: Vec::new(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .envs(variables);
        command
    }

    /// Checks the configuration, serves it, and asks for each path.
    fn answers(&self, probes: &[(&str, u16)]) {
        let config = self.folder.path().join("workbench-config.json");
        let mut check = self.command();
        check.args(["check", "--config"]).arg(&config);
        Process::start(check).finish();
        let address = free_address();
        let mut serve = self.command();
        for argument in &self.arguments {
            match argument.as_str() {
                CONFIG => serve.arg(&config),
                "0.0.0.0:8700" | "127.0.0.1:8700" => serve.arg(&address),
                other => serve.arg(other),
            };
        }
        let _serving = Process::start(serve);
        wait_for("the workbench", || {
            std::net::TcpStream::connect(&address).ok()
        });
        for (path, status) in probes {
            assert_eq!(get(&address, &address, path), *status, "{path}");
        }
    }
}

#[test]
fn a_workbench_as_kubernetes_starts_it_answers_the_probes() {
    let deployment = manifest("deployment");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let config = manifest("config-map")["data"]["workbench-config.json"].clone();
    let mut deployed = Deployed::new(words(&container["args"]), config.as_str().unwrap());
    let secret = manifest("secret")["stringData"].clone();
    for (name, value) in secret.as_object().unwrap() {
        let value = value.as_str().unwrap().to_owned();
        deployed.variables.push((name.clone(), value));
    }
    deployed
        .variables
        .push(("POD_IP".into(), "127.0.0.1".into()));
    let mut probes: Vec<(&str, u16)> = ["startupProbe", "readinessProbe", "livenessProbe"]
        .iter()
        .map(|probe| container[probe]["httpGet"]["path"].as_str().unwrap())
        .map(|path| (path, 200))
        .collect();
    probes.push(("/mcp", 401));
    probes.push(("/.well-known/oauth-protected-resource", 200));
    deployed.answers(&probes);
}

#[test]
fn a_workbench_as_the_compose_file_starts_it_answers_the_balancer() {
    let compose = yaml(&packaging("compose/compose.yaml"));
    let workbench = &compose["services"]["workbench"];
    assert_eq!(workbench["deploy"]["replicas"], 3);
    let config = fs::read_to_string(packaging("compose/workbench-config.json")).unwrap();
    let config = config.replace("\"/mcp-workbench\"", &format!("\"{PROGRAM}\""));
    let mut deployed = Deployed::new(words(&workbench["command"]), &config);
    let token = "a-random-text-of-the-test".to_owned();
    deployed.variables.push(("WORKBENCH_TOKEN".into(), token));
    deployed.variables.extend([
        ("SEAL_KEY".into(), "x".repeat(64)),
        ("HOSTNAME".into(), "localhost".into()),
    ]);
    deployed.answers(&[("/ready", 200), ("/mcp", 401)]);
}

#[test]
fn a_workbench_as_systemd_starts_it_answers() {
    let unit = fs::read_to_string(packaging("systemd/mcp-workbench.service")).unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let arguments = start.unwrap().split(' ').skip(1).map(str::to_owned);
    let deployed = Deployed::new(arguments.collect(), "{\"toolboxes\": {}}");
    deployed.answers(&[("/healthz", 200), ("/mcp", 401)]);
}
