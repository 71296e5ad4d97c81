//! Which configuration is used, what a bad one does, and what a start does not do.

use pretty_assertions::assert_eq;

use crate::harness::{Finished, Message, Script, Setup, Workbench};

/// A configuration whose one toolbox tells which file was read.
fn config_named(toolbox: &str) -> String {
    format!(r#"{{"toolboxes":{{"{toolbox}":{{"description":"d","mcpServers":{{}}}}}}}}"#)
}

/// The ways to name a configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Flag,
    Variable,
    Directory,
    Xdg,
    DotConfig,
}

impl Place {
    fn file(self) -> &'static str {
        match self {
            Self::Flag => "named/by-flag.json",
            Self::Variable => "named/by-variable.json",
            Self::Directory => "work/workbench-config.json",
            Self::Xdg => "xdg/mcp-workbench/workbench-config.json",
            Self::DotConfig => "home/.config/mcp-workbench/workbench-config.json",
        }
    }
}

/// Starts with a configuration in each of these places.
fn start_in(places: &[Place]) -> Workbench {
    let mut setup = Setup::new();
    let mut arguments = Vec::new();
    for place in places {
        let path = setup.write(place.file(), &config_named(&format!("{place:?}")));
        let path = path.to_str().unwrap().to_owned();
        match place {
            Place::Flag => arguments = vec!["--config".to_owned(), path],
            Place::Variable => setup = setup.env("WORKBENCH_CONFIG", &path),
            Place::Xdg => {
                let folder = setup.path("xdg");
                setup = setup.env("XDG_CONFIG_HOME", folder.to_str().unwrap());
            }
            Place::Directory | Place::DotConfig => {}
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    setup.start_with(&arguments)
}

#[test]
fn the_first_configuration_that_is_given_is_used() {
    use Place::{Directory, DotConfig, Flag, Variable, Xdg};
    let rows: &[(&[Place], Place)] = &[
        (&[Flag, Variable, Directory, Xdg], Flag),
        (&[Variable, Directory, Xdg], Variable),
        (&[Directory, Xdg, DotConfig], Directory),
        (&[Xdg, DotConfig], Xdg),
        (&[DotConfig], DotConfig),
    ];
    for (places, used) in rows {
        let mut workbench = start_in(places);
        let result = workbench.initialize();
        let instructions = result["instructions"].as_str().unwrap();
        let entry = format!("- **{used:?}** (0 servers): d");
        assert!(
            instructions.contains(&entry),
            "{places:?}: {used:?} is used, but:\n{instructions}"
        );
    }
}

#[test]
fn the_file_that_is_used_is_logged() {
    for place in [Place::Flag, Place::Variable, Place::Directory, Place::Xdg] {
        let workbench = start_in(&[place]);
        let name = place.file().rsplit('/').next().unwrap();
        workbench.wait_stderr(name);
    }
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    for by_variable in [false, true] {
        let setup = Setup::new();
        setup.write(Place::Directory.file(), &config_named("other"));
        let mut workbench = if by_variable {
            let setup = setup.env("WORKBENCH_CONFIG", "nowhere.json");
            setup.start_with(&[])
        } else {
            setup.start_with(&["--config", "nowhere.json"])
        };
        let finished = workbench.finish();
        assert!(!finished.status.success());
        assert_eq!(finished.stdout, Vec::<String>::new());
        let stderr = finished.stderr;
        assert!(
            stderr.contains("nowhere.json"),
            "the file is named: {stderr}"
        );
    }
}

#[test]
fn no_configuration_at_all_is_an_error() {
    let finished = Setup::new().start_with(&[]).finish();
    assert!(!finished.status.success());
    assert_eq!(finished.stdout, Vec::<String>::new());
    let stderr = finished.stderr;
    assert!(stderr.contains("workbench-config.json"), "{stderr}");
}

#[test]
fn no_server_starts_before_it_is_needed() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.ask("tools/list", "{}");
    workbench.ask("ping", "{}");
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.lines(), Vec::<String>::new());
    let finished = workbench.finish();
    assert!(finished.status.success());
    assert_eq!(journal.lines(), Vec::<String>::new());
}

#[test]
fn stdout_has_only_messages() {
    let noisy = Script::new()
        .set("onStart", r#"[{"stderr":"a word on stderr"}]"#)
        .on_method("notifications/initialized", r#"[{"stderr":"ready"}]"#);
    let mut workbench = Setup::one(&noisy).connect();
    workbench.open("dev");
    workbench.use_tool("pid", "{}");
    workbench.send_line("garbage");
    workbench.next_message();
    let Finished { stdout, .. } = workbench.finish();
    for line in stdout {
        Message::parse(line);
    }
}
