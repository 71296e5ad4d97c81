//! Changed `maxResultChars` and `maxTools` hold at once, and no server is touched.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Edited, pid};
use crate::harness::{Script, Setup};

#[test]
fn a_changed_budget_applies_to_the_next_result() {
    let setup = Setup::one(&Script::new());
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    workbench.open("dev");
    let before = pid(&mut workbench, "fs");
    let mut is_cut = |edited: &Edited| {
        edited.take_up(&workbench);
        let raw = workbench.use_tool("big", r#"{"size":1000}"#).raw;
        raw.contains("mcp-workbench://result/")
    };
    edited.config["maxResultChars"] = json!(500);
    assert!(is_cut(&edited), "the file has one now");
    edited.fs()["maxResultChars"] = json!(0);
    assert!(!is_cut(&edited), "the server has none");
    edited.fs()["maxResultChars"] = json!(200);
    assert!(is_cut(&edited), "the server has one of its own");
    edited.config["maxResultChars"] = json!(null);
    edited.fs()["maxResultChars"] = json!(null);
    assert!(!is_cut(&edited), "nobody has one");
    assert_eq!(pid(&mut workbench, "fs"), before);
}

#[test]
fn a_changed_bound_of_the_tool_list_applies_at_once() {
    let setup = Setup::one(&Script::named(&["a", "pid", "c"]));
    let mut edited = Edited::of(&setup);
    let mut workbench = setup.connect();
    assert_eq!(workbench.open("dev").tool_names(), ["a", "pid", "c"]);
    let before = pid(&mut workbench, "fs");
    edited.fs()["maxTools"] = json!(2);
    edited.take_up(&workbench);
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["a", "pid"]);
    assert!(opened.json()["_errors"][0].is_string(), "{}", opened.raw);
    edited.fs()["maxTools"] = json!(null);
    edited.take_up(&workbench);
    let opened = workbench.open("dev");
    assert_eq!(opened.tool_names(), ["a", "pid", "c"]);
    assert_eq!(opened.json()["_errors"], json!(null));
    assert_eq!(pid(&mut workbench, "fs"), before);
}
