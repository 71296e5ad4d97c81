//! Commands: every line of every `sh` block is understood by the program, and all but a few are run.

use super::{Block, blocks, none, page::root, world::World};

/// Lines that are not run, each with the reason. Their arguments are checked all the same.
const NOT_RUN: &[(&str, &str)] = &[
    ("mcp-workbench serve --http", "it serves until it is ended"),
    ("mcp-workbench login", "tests/it/docs/remote.rs does it"),
    ("mcp-workbench ui", "tests/it/observing does it"),
    ("mcp-workbench live", "tests/it/observing does it"),
    ("OTEL_EXPORTER", "tests/real/otel.rs does it"),
    ("curl ", "tests/it/observing does it"),
    ("mcp-workbench run report.js", "tests/it/run_code does it"),
    ("kill -USR1", "tests/it/reload does it"),
    ("cargo build", "the tests are built with it"),
    ("cargo test", "it would run itself"),
    ("UPDATE_SCHEMA=1 cargo test", "it would run itself"),
    ("cargo install --path", "it is tried with the packages"),
    ("pip install --no-index", "it is tried with the packages"),
    ("uvx --no-index", "it is tried with the packages"),
    (
        "npm install --global target/",
        "it is tried with the packages",
    ),
    ("tar xzf target/", "it is tried with the packages"),
    ("./mcp-workbench-", "it is tried with the packages"),
    ("npm install @model", "tests/real has the SDK installed"),
    ("pip install \"mcp", "tests/real has the SDK installed"),
    ("node docs/examples", "tests/real/examples.rs does it"),
    ("python docs/examples", "tests/real/examples.rs does it"),
    ("rustup target add", "it changes the machine"),
    ("cp packaging/systemd", "tests/real/deployment.rs does it"),
    ("systemctl enable", "tests/real/deployment.rs does it"),
    ("docker build", "tests/real/deployment.rs checks the file"),
    (
        "export WORKBENCH_TOKEN",
        "tests/real/deployment.rs has its own",
    ),
    ("export SEAL_KEY", "tests/real/deployment.rs has its own"),
    ("docker compose", "tests/real/team.rs does the same"),
    ("kubectl ", "tests/real/deployment.rs checks the files"),
    ("apt-get install", "it changes the machine"),
];

/// Lines that end with another exit code than 0.
const EXIT_CODES: &[(&str, i32)] = &[
    // The configuration that it is run with notes no calls.
    ("mcp-workbench log", 1),
    ("mcp-workbench trust diff", 1),
    // No host runs.
    ("mcp-workbench stop dev/files", 1),
];

/// The configuration of the pages about signing in.
const HOSTED: &str = r#"{"toolboxes": {"hosted": {"description": "d", "mcpServers": {
    "tracker": {"url": "https://tracker.example.com/mcp"}
}}}}"#;

/// The lines of a block that are commands.
fn lines(block: &Block) -> Vec<String> {
    let lines = block.text.replace("\\\n", " ");
    let lines = lines.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| match line.split_once(" -- ") {
            // What cargo builds and runs is the workbench.
            Some((cargo, arguments)) if cargo.starts_with("cargo run") => {
                format!("mcp-workbench {arguments}")
            }
            _ => line.to_owned(),
        })
        .collect()
}

/// The machine that a line is run on: what it needs is there, and what it makes is not.
fn world(line: &str) -> World {
    let world = World::new().with_clients();
    let command = line
        .split_once("mcp-workbench ")
        .map_or("", |(_, rest)| rest);
    match command.split(' ').next().unwrap_or_default() {
        "init" => world,
        "add" => {
            world.write("work/workbench-config.json", "{\"toolboxes\": {}}\n");
            world
        }
        "login" | "logout" | "auth" => {
            world.write("work/workbench-config.json", HOSTED);
            world
        }
        _ => world.configured(),
    }
}

/// The line as it can be run where nobody is asked and the shell is `sh`.
fn runnable(line: &str) -> String {
    let asking = [" install --client", " trust approve", " trust revoke"];
    let asks = line.contains("mcp-workbench") && asking.iter().any(|it| line.contains(it));
    let silent = ["--print", "--dry-run", "--yes"];
    let line = line.split("  #").next().unwrap_or_default().trim();
    if asks && !silent.iter().any(|option| line.contains(option)) {
        return format!("{line} --yes");
    }
    // A place that only zsh knows.
    match line.split_once(" > \"${fpath") {
        Some((command, _)) => command.to_owned(),
        None => line.to_owned(),
    }
}

/// Returns true if a line is not run.
fn stays(line: &str) -> bool {
    NOT_RUN.iter().any(|(begin, _)| line.starts_with(begin))
}

fn test(line: &str) -> Result<(), String> {
    let ours = line.starts_with("mcp-workbench");
    match line.strip_prefix("./") {
        _ if stays(line) && ours => test_arguments(line),
        _ if stays(line) => Ok(()),
        Some(script) => test_script(script),
        None if line.contains("mcp-workbench") => test_run(line),
        None => Err("nothing is known of this command".to_owned()),
    }
}

/// The program understands a line.
fn test_arguments(line: &str) -> Result<(), String> {
    let ran = world(line).run(&format!("{} --help", runnable(line)));
    match ran.code {
        0 => Ok(()),
        _ => Err(ran.all()),
    }
}

/// A line does what it should.
fn test_run(line: &str) -> Result<(), String> {
    let world = world(line);
    if line.contains("--undo") {
        world.run(&runnable(&line.replace(" --undo", "")));
    }
    if line.contains(" trust revoke") {
        world.run("mcp-workbench trust approve --yes");
    }
    let ran = world.run(&runnable(line));
    let is_meant = |begin: &str| {
        let rest = line.strip_prefix(begin);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let expected = EXIT_CODES.iter().find(|(begin, _)| is_meant(begin));
    if ran.code == expected.map_or(0, |(_, code)| *code) {
        Ok(())
    } else {
        Err(ran.all())
    }
}

/// Scripts exist. What they do is tested where they are used.
fn test_script(line: &str) -> Result<(), String> {
    let mut words = line.split(' ').take_while(|word| !word.starts_with('#'));
    let script = words.next().unwrap_or_default();
    if root().join(script).is_file() {
        Ok(())
    } else {
        Err("no such script".to_owned())
    }
}

#[test]
fn every_command_is_understood_and_works() {
    let mut findings = Vec::new();
    let mut tested = 0;
    for block in blocks().iter().filter(|block| block.language == "sh") {
        for line in lines(block) {
            tested += 1;
            if let Err(error) = test(&line) {
                findings.push(format!("{}: {line}\n{error}", block.place()));
            }
        }
    }
    assert!(tested > 60, "only {tested} commands");
    none(&findings);
}

#[test]
fn the_first_screen_of_the_readme_has_the_two_commands() {
    let readme = super::page::page("README.md").text;
    let first: Vec<&str> = readme.lines().take(40).collect();
    for command in ["cargo run -- demo", "./scripts/test"] {
        assert!(first.contains(&command), "no {command} in {first:#?}");
    }
}

#[test]
fn commands_and_options_that_do_not_exist_are_detected() {
    for line in [
        "mcp-workbench chekc",
        "mcp-workbench list --tolls",
        "mcp-workbench serve --http 127.0.0.1:8700 --tokenfile x",
        "./scripts/tset",
        "frobnicate",
    ] {
        assert!(test(line).is_err(), "{line}");
    }
}
