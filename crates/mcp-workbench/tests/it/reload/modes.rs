//! Notifications and lists of clients in each mode.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Edited, LIST_CHANGED, REFUSED, pid, wait_count};
use crate::harness::{Script, Setup, Workbench};

fn listed(workbench: &mut Workbench) -> Vec<String> {
    let result = workbench.ask("tools/list", "{}").result();
    let tools = result["tools"].as_array().unwrap().iter();
    tools
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

fn offered_toolboxes(workbench: &mut Workbench) -> Value {
    let result = workbench.ask("tools/list", "{}").result();
    result["tools"][0]["inputSchema"]["properties"]["toolbox"]["enum"].clone()
}

#[test]
fn proxy_mode_announces_changed_toolboxes() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.start();
    let introduced = workbench.initialize();
    assert_eq!(introduced["capabilities"]["tools"]["listChanged"], true);
    // Other words, and another server, are no other list.
    edited.config["toolboxes"]["dev"]["description"] = json!("Other words");
    let fs = edited.fs().clone();
    edited.servers()["two"] = fs;
    edited.take_up(&workbench);
    assert_eq!(offered_toolboxes(&mut workbench), json!(["dev"]));
    assert!(workbench.untaken().is_empty(), "{:?}", workbench.untaken());
    let instructions = workbench.initialize()["instructions"].to_string();
    assert!(
        instructions.contains("(2 servers): Other words"),
        "{instructions}"
    );
    let dev = edited.config["toolboxes"]["dev"].clone();
    edited.config["toolboxes"] = json!({"new": dev.clone(), "dev": dev});
    edited.take_up(&workbench);
    workbench.notification(LIST_CHANGED);
    assert_eq!(offered_toolboxes(&mut workbench), json!(["new", "dev"]));
}

#[test]
fn dynamic_mode_announces_added_and_removed_tools() {
    let setup = Setup::one(&Script::named(&["pid", "a"]))
        .server("two", &Script::named(&["b"]))
        .top("toolMode", json!("dynamic"));
    let full = Edited::of(&setup);
    let less = Edited::of(&setup).without(&["two"]);
    let mut filtered = Edited::of(&setup).without(&["two"]);
    filtered.fs()["toolFilters"] = json!(["a"]);
    let mut workbench = setup.connect();
    let registered = |workbench: &mut Workbench| listed(workbench)[2..].to_vec();
    workbench.open("dev");
    workbench.notification(LIST_CHANGED);
    let all = ["dev__fs__pid", "dev__fs__a", "dev__two__b"];
    assert_eq!(registered(&mut workbench), all);
    less.take_up(&workbench);
    workbench.notification(LIST_CHANGED);
    assert_eq!(registered(&mut workbench), all[..2]);
    assert_eq!(
        workbench.call("dev__two__b", "{}").error(),
        "Server 'two' not found in toolbox 'dev'"
    );
    filtered.take_up(&workbench);
    workbench.notification(LIST_CHANGED);
    assert_eq!(registered(&mut workbench), ["dev__fs__a"]);
    full.take_up(&workbench);
    workbench.notification(LIST_CHANGED);
    workbench.open("dev");
    workbench.notification(LIST_CHANGED);
    assert_eq!(registered(&mut workbench), all);
}

#[test]
fn a_replaced_server_keeps_its_registered_tools_until_it_lists_new_ones() {
    let setup = Setup::one(&Script::named(&["pid"]))
        .server("two", &Script::named(&["pid", "more"]))
        .top("toolMode", json!("dynamic"));
    let mut edited = Edited::of(&setup).without(&["two"]);
    let mut other = Edited::of(&setup);
    *edited.fs() = other.servers()["two"].clone();
    let first = Edited::of(&setup).without(&["two"]);
    let mut workbench = setup.text(&first.text()).connect();
    workbench.open("dev");
    workbench.notification(LIST_CHANGED);
    edited.take_up(&workbench);
    assert_eq!(listed(&mut workbench)[2..], ["dev__fs__pid"]);
    assert!(workbench.untaken().is_empty(), "{:?}", workbench.untaken());
    // Its first call starts the new one, which has more.
    assert!(!workbench.call("dev__fs__pid", "{}").failed());
    workbench.notification(LIST_CHANGED);
    assert_eq!(
        listed(&mut workbench)[2..],
        ["dev__fs__pid", "dev__fs__more"]
    );
}

/// A server with a resource that can be subscribed to.
fn with_resource() -> Script {
    Script::named(&["pid"])
        .set(
            "capabilities",
            r#"{"tools":{},"resources":{"subscribe":true}}"#,
        )
        .on_method(
            "resources/list",
            r#"[{"answer":{"resources":[{"uri":"u:1"}]}}]"#,
        )
        .on_method("resources/subscribe", r#"[{"answer":{}}]"#)
}

#[test]
fn native_mode_shows_the_servers_of_the_changed_file() {
    let setup = Setup::one(&with_resource())
        .server("two", &Script::named(&["b"]))
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let full = Edited::of(&setup);
    let first = Edited::of(&setup).without(&["two"]);
    let mut workbench = setup.text(&first.text()).connect();
    assert_eq!(listed(&mut workbench), ["pid"]);
    let before = workbench.call("pid", "{}").text().to_owned();
    full.take_up(&workbench);
    workbench.notification(LIST_CHANGED);
    assert_eq!(listed(&mut workbench), ["pid", "b"]);
    assert_eq!(workbench.call("pid", "{}").text(), before);
    first.take_up(&workbench);
    workbench.notification(LIST_CHANGED);
    assert_eq!(listed(&mut workbench), ["pid"]);
    assert_eq!(workbench.call("pid", "{}").text(), before);
}

#[test]
fn a_replaced_server_of_native_mode_gets_the_subscriptions() {
    let setup = Setup::one(&with_resource())
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"));
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench
        .ask("resources/subscribe", r#"{"uri":"u:1"}"#)
        .result();
    let before = workbench.call("pid", "{}").text().to_owned();
    edited.fs()["env"]["NEW"] = json!("1");
    edited.take_up(&workbench);
    assert_ne!(workbench.call("pid", "{}").text(), before);
    let journal = workbench.journal("dev", "fs");
    let subscribed = crate::harness::poll(crate::harness::TIMEOUT, || {
        (journal.received("resources/subscribe").len() == 2).then_some(())
    });
    assert!(subscribed.is_some(), "the new server was not told");
}

#[test]
fn settings_that_need_a_restart_are_logged_and_ignored() {
    let setup = Setup::one(&Script::new()).toolbox("other", "Another");
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    edited.config["toolMode"] = json!("dynamic");
    edited.config["toolNameLimit"] = json!(20);
    edited.take_up(&workbench);
    for key in ["toolMode", "toolNameLimit"] {
        workbench.wait_stderr(&format!("`{key}` changed: restart"));
    }
    assert_eq!(listed(&mut workbench), ["open_toolbox", "use_tool"]);
    assert_eq!(pid(&mut workbench, "fs"), before);
}

#[test]
fn the_toolbox_that_is_shown_natively_stays() {
    for by_argument in [true, false] {
        let mut setup = Setup::one(&Script::named(&["pid"])).toolbox("other", "Another");
        if !by_argument {
            setup = { setup.top("toolMode", json!("native")) }.top("nativeToolbox", json!("dev"));
        }
        let mut edited = Edited::of(&setup);
        edited.config["nativeToolbox"] = json!("other");
        edited.config["toolboxes"]
            .as_object_mut()
            .unwrap()
            .remove("dev");
        setup.write_config();
        let config = setup.config();
        let mut arguments = vec!["--config", config.to_str().unwrap(), "serve"];
        if by_argument {
            arguments.extend(["--native", "dev"]);
        }
        let mut workbench = setup.start_with(&arguments);
        workbench.initialize();
        edited.save();
        wait_count(&workbench, REFUSED, 1);
        assert_eq!(listed(&mut workbench), ["pid"]);
        assert!(!workbench.call("pid", "{}").failed());
    }
}
