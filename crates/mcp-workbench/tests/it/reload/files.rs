//! Changes of files: saved in place or moved, behind links, removed, broken, by a signal.

use std::{fs, os::unix::fs::symlink};

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::json;

use super::{Edited, REFUSED, TAKEN_UP, count, pid, save, wait_count};
use crate::harness::{Script, Setup, Workbench};

/// The description of the toolbox, as an open tells it.
fn description(workbench: &mut Workbench) -> String {
    let opened = workbench.open("dev").json();
    opened["description"].as_str().unwrap().to_owned()
}

fn described(edited: &mut Edited, words: &str) -> String {
    edited.config["toolboxes"]["dev"]["description"] = json!(words);
    edited.text()
}

/// A way to write a text to a file, by its name.
type Way<'a> = (&'static str, &'a dyn Fn(&str));

#[test]
fn every_way_of_saving_a_file_is_detected() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let file = setup.config();
    let mut workbench = setup.connect();
    assert_eq!(description(&mut workbench), "Development tools");
    let before = pid(&mut workbench, "fs");
    let ways: [Way<'_>; 4] = [
        ("in place", &|text| fs::write(&file, text).unwrap()),
        ("moved over", &|text| save(&file, text)),
        ("removed first", &|text| {
            fs::remove_file(&file).unwrap();
            fs::write(&file, text).unwrap();
        }),
        ("in parts", &|text| {
            let (first, rest) = text.split_at(text.len() / 2);
            fs::write(&file, first).unwrap();
            fs::write(&file, [first, rest].concat()).unwrap();
        }),
    ];
    for (times, (way, write)) in ways.into_iter().enumerate() {
        write(&described(&mut edited, way));
        wait_count(&workbench, TAKEN_UP, times + 1);
        assert_eq!(description(&mut workbench), way);
    }
    assert_eq!(count(&workbench, REFUSED), 0);
    assert_eq!(pid(&mut workbench, "fs"), before);
}

#[test]
fn an_invalid_file_is_reported_and_the_last_configuration_stays() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let good = described(&mut edited, "repaired");
    let mut workbench = setup.connect();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    edited.fs()["env"]["PORT"] = json!(5432);
    edited.fs()["args"] = json!({});
    edited.save();
    wait_count(&workbench, REFUSED, 1);
    // All problems at once, with their places.
    for place in ["dev.mcpServers.fs.env.PORT", "dev.mcpServers.fs.args"] {
        workbench.wait_stderr(&format!("toolboxes.{place}: "));
    }
    assert_eq!(description(&mut workbench), "Development tools");
    assert_eq!(pid(&mut workbench, "fs"), before);
    fs::remove_file(&edited.file).unwrap();
    workbench.wait_stderr("does not exist");
    assert_eq!(pid(&mut workbench, "fs"), before);
    fs::write(&edited.file, good).unwrap();
    wait_count(&workbench, TAKEN_UP, 1);
    assert_eq!(description(&mut workbench), "repaired");
    assert_eq!(pid(&mut workbench, "fs"), before);
}

#[test]
fn a_file_is_followed_through_links() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let (one, two) = (setup.path("store/1"), setup.path("store/2"));
    for folder in [&one, &two] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(one.join("file"), edited.text()).unwrap();
    symlink("1", setup.path("store/current")).unwrap();
    symlink("../store/current/file", setup.config()).unwrap();
    let config = setup.config();
    let mut workbench = setup.start_with(&["--config", config.to_str().unwrap()]);
    workbench.initialize();
    assert_eq!(description(&mut workbench), "Development tools");
    save(
        &one.join("file"),
        &described(&mut edited, "the file itself"),
    );
    wait_count(&workbench, TAKEN_UP, 1);
    assert_eq!(description(&mut workbench), "the file itself");
    // As orchestrators do it: a folder beside, and the link to it replaced.
    fs::write(two.join("file"), described(&mut edited, "another folder")).unwrap();
    symlink("2", workbench.setup.path("store/next")).unwrap();
    let current = workbench.setup.path("store/current");
    fs::rename(workbench.setup.path("store/next"), current).unwrap();
    wait_count(&workbench, TAKEN_UP, 2);
    assert_eq!(description(&mut workbench), "another folder");
    // The first link replaced by a file.
    save(&config, &described(&mut edited, "no link any more"));
    wait_count(&workbench, TAKEN_UP, 3);
    assert_eq!(description(&mut workbench), "no link any more");
    assert_eq!(workbench.journal("dev", "fs").pids().len(), 1);
}

#[test]
fn a_changed_env_file_restarts_only_servers_that_name_it() {
    let keys = json!({"envFile": "vars"});
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server_with("fs", &Script::new(), &keys)
        .server("two", &Script::new());
    let file = setup.write("config/vars", "COLOUR=green\n");
    let mut workbench = setup.connect();
    workbench.open("dev");
    let two = pid(&mut workbench, "two");
    let colour = |workbench: &mut Workbench| {
        let environment = workbench.use_tool("env", "{}").structured();
        environment["COLOUR"].clone()
    };
    assert_eq!(colour(&mut workbench), "green");
    workbench.wait_stderr("using ");
    // Written again as it was, it is no other file.
    fs::write(&file, "COLOUR=green\n").unwrap();
    fs::write(&file, "COLOUR=blue\n").unwrap();
    wait_count(&workbench, TAKEN_UP, 1);
    assert_eq!(colour(&mut workbench), "blue");
    assert_eq!(pid(&mut workbench, "two"), two);
}

#[test]
fn without_watching_only_a_signal_reloads() {
    let setup = Setup::one(&Script::new()).top("watch", json!(false));
    let mut edited = Edited::of(&setup);
    let file = setup.config();
    let mut workbench = setup.connect();
    workbench.open("dev");
    fs::write(&file, described(&mut edited, "by a signal")).unwrap();
    workbench.signal(Signal::USR1);
    wait_count(&workbench, TAKEN_UP, 1);
    assert_eq!(description(&mut workbench), "by a signal");
    // A broken one is reported then, and the last stays.
    fs::write(&file, "{").unwrap();
    workbench.signal(Signal::USR1);
    wait_count(&workbench, REFUSED, 1);
    assert_eq!(description(&mut workbench), "by a signal");
    // From now on it is watched.
    edited.config["watch"] = json!(true);
    fs::write(&file, described(&mut edited, "on again")).unwrap();
    workbench.signal(Signal::USR1);
    wait_count(&workbench, TAKEN_UP, 2);
    fs::write(&file, described(&mut edited, "watched")).unwrap();
    wait_count(&workbench, TAKEN_UP, 3);
    assert_eq!(description(&mut workbench), "watched");
    assert!(workbench.finish().status.success());
}

#[test]
fn an_unset_variable_is_warned_about_and_fails_its_server_only() {
    let setup = Setup::one(&Script::new()).server("two", &Script::new());
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let two = pid(&mut workbench, "two");
    edited.fs()["env"]["TOKEN"] = json!("${NOT_SET_ANYWHERE}");
    edited.take_up(&workbench);
    workbench.wait_stderr("NOT_SET_ANYWHERE");
    let failed = workbench.use_tool("pid", "{}");
    assert!(
        failed
            .error()
            .contains("variable NOT_SET_ANYWHERE is not set"),
        "{}",
        failed.error()
    );
    assert_eq!(pid(&mut workbench, "two"), two);
}

#[test]
fn a_pipe_is_read_only_once() {
    let feed = r#"mkfifo ../pipe && (cat ../config/workbench.json > ../pipe &) && exec "$0" "$@""#;
    let setup = Setup::one(&Script::new()).through(feed);
    setup.write_config();
    let mut workbench = setup.start_with(&["--config", "../pipe"]);
    workbench.initialize();
    workbench.open("dev");
    workbench.signal(Signal::USR1);
    workbench.wait_stderr("pipe` is not a regular file and is read only once");
    assert_eq!(description(&mut workbench), "Development tools");
}

#[test]
fn a_file_that_was_missing_for_a_while_is_reloaded() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let config = setup.path("config");
    let mut workbench = setup.connect();
    workbench.open("dev");
    // With its folder, twice, so that the second time nothing but the look for it is left of the first.
    for times in 1..=2 {
        fs::remove_dir_all(&config).unwrap();
        wait_count(&workbench, "does not exist", times);
        let words = format!("back {times}");
        let text = described(&mut edited, &words);
        fs::create_dir(&config).unwrap();
        fs::write(&edited.file, text).unwrap();
        wait_count(&workbench, TAKEN_UP, times);
        assert_eq!(description(&mut workbench), words);
    }
}
