//! A cache that is broken, foreign, open to others, deleted or nowhere: the server is asked instead.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{command, folder, lists, on_use, only_list, open, session, starts, warm, warmed};
use crate::harness::{Script, Setup, TIMEOUT, poll};

const OPEN: (&str, &str) = ("open_toolbox", r#"{"toolbox":"dev"}"#);

/// A way to damage a good text.
type Spoil = fn(&str) -> String;

#[test]
fn an_invalid_cache_file_is_replaced() {
    let script = Script::named(&["echo"]);
    let rows: [(&str, Spoil); 6] = [
        ("empty", |_| String::new()),
        ("truncated", |good| good[..good.len() / 2].to_owned()),
        ("garbage", |_| "\u{0}\u{1}garbage".to_owned()),
        ("of another layout", |good| {
            good.replace("\"layout\":1", "\"layout\":9")
        }),
        ("of another server", |good| {
            good.replace("\"key\":\"", "\"key\":\"f")
        }),
        ("huge", |good| {
            format!("{good}{}", " ".repeat(17 * 1024 * 1024))
        }),
    ];
    for (what, spoil) in rows {
        let setup = warmed(on_use(&script));
        let file = only_list(&setup);
        let good = fs::read_to_string(&file).unwrap();
        fs::write(&file, spoil(&good)).unwrap();
        let said = session(&setup, &[OPEN]);
        assert!(
            said.contains(r#"\"servers_connected\":1"#),
            "{what}: {said}"
        );
        let tools = |text: &str| text.split_once(",\"tools\":").unwrap().1.to_owned();
        let replaced = fs::read_to_string(&file).unwrap();
        assert_eq!(tools(&replaced), tools(&good), "{what}");
        let mut workbench = setup.connect();
        assert_eq!(
            open(&mut workbench),
            (json!(0), vec!["echo".to_owned()]),
            "{what}"
        );
    }
}

#[test]
fn cache_files_writable_by_others_are_ignored() {
    let rows = [("list", 0o606), ("list", 0o660), ("folder", 0o777)];
    for (what, mode) in rows {
        let setup = warmed(on_use(&Script::named(&["echo"])));
        let path = match what {
            "list" => only_list(&setup),
            _ => folder(&setup),
        };
        let open_to_all = fs::Permissions::from_mode(mode);
        fs::set_permissions(&path, open_to_all).unwrap();
        let mut workbench = setup.connect();
        assert_eq!(open(&mut workbench).0, 1, "{what} {mode:o}");
        assert_eq!(starts(&workbench, "fs"), 2, "{what} {mode:o}");
    }
}

#[test]
fn the_cache_may_be_deleted_while_the_workbench_runs() {
    let setup = on_use(&Script::named(&["a"]).answers("a", r#"{"content":[]}"#));
    let setup = warmed(setup.server(
        "two",
        &Script::named(&["b"]).answers("b", r#"{"content":[]}"#),
    ));
    let folder = folder(&setup);
    let mut workbench = setup.connect();
    let opened = open(&mut workbench);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(open(&mut workbench), opened, "what was read is known");
    assert!(!workbench.use_tool("a", "{}").failed());
    assert!(!workbench.use_tool_of(["dev", "two", "b"], "{}").failed());
    let is_back = poll(TIMEOUT, || {
        let files = fs::read_dir(&folder).ok()?.flatten();
        let lists = files.filter(|it| it.path().extension().is_some_and(|it| it == "json"));
        (lists.count() == 2).then_some(())
    });
    assert!(is_back.is_some(), "two lists");
    assert_eq!(open(&mut workbench).0, 2);
}

#[test]
fn without_a_cache_directory_servers_are_connected_on_open() {
    let nowhere: [fn(Setup) -> Setup; 2] = [
        |setup| {
            let file = setup.write("no-folder", "");
            setup.env("XDG_CACHE_HOME", file.to_str().unwrap())
        },
        |setup| setup.env("XDG_CACHE_HOME", "/proc/no-such"),
    ];
    for change in nowhere {
        let mut workbench = change(on_use(&Script::new())).connect();
        assert_eq!(open(&mut workbench).0, 1);
        assert!(!workbench.use_tool("echo", "{}").failed());
    }
}

#[test]
fn concurrent_workbenches_write_complete_lists() {
    let setup = on_use(&Script::named(&["a"])).server("two", &Script::named(&["b"]));
    let commands = [(); 4].map(|()| command(&setup, &["warm"]));
    let running = commands.map(|mut it| it.stdout(Stdio::null()).spawn().unwrap());
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    // Whoever made the salt, it is one for all by now.
    assert!(warm(&setup).status.success());
    assert_eq!(lists(&setup).len(), 2);
    for entry in fs::read_dir(folder(&setup)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let extension = name.split_once('.').map(|it| it.1);
        let is_whole = matches!(extension, None | Some("json" | "pins" | "guard"));
        assert!(is_whole, "half written: {name}");
    }
    let mut workbench = setup.connect();
    assert_eq!(
        open(&mut workbench),
        (json!(0), vec!["a".into(), "b".into()])
    );
}
