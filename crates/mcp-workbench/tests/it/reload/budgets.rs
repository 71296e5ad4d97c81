//! Another `maxResultChars` holds from the next result on, and no server is touched.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Edited, pid};
use crate::harness::{Script, Setup};

#[test]
fn another_budget_holds_from_the_next_result_on() {
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
