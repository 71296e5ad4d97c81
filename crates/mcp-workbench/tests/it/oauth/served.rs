//! Shared parts of the tests of serving: clients that show addresses to their user, users who sign in, and the results.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{
    Message, Setup, ToolResult, Workbench,
    authority::{Authority, Protected, follow},
};

/// The capabilities of a client that shows addresses.
pub(crate) const ADDRESSES: &str = r#"{"elicitation":{"url":{}}}"#;
pub(crate) const ACCEPT: &str = r#"{"action":"accept"}"#;

/// An authority, and a server that it protects.
pub(crate) fn protected() -> (Authority, Protected) {
    let authority = Authority::start();
    let server = Protected::start(&authority);
    (authority, server)
}

/// A setup that keeps what is signed in to in this directory.
pub(crate) fn keeping_in(state: &Path, setup: Setup) -> Setup {
    setup.env("XDG_STATE_HOME", state.to_str().unwrap())
}

/// A legacy client that shows addresses.
pub(crate) fn showing(setup: Setup) -> Workbench {
    let mut workbench = setup.start();
    let capabilities: Value = serde_json::from_str(ADDRESSES).unwrap();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "it", "version": "1"},
    });
    workbench.ask("initialize", &params.to_string());
    workbench.notify("notifications/initialized", "{}");
    workbench
}

/// Asks for the toolbox `dev`; gives the id of the request.
pub(crate) fn send_open(workbench: &mut Workbench) -> String {
    workbench.send_call("open_toolbox", r#"{"toolbox":"dev"}"#)
}

/// Waits for the offer to sign in.
pub(crate) fn offer(workbench: &mut Workbench) -> Message {
    workbench.notification("elicitation/create")
}

/// The address of an offer.
pub(crate) fn address(offer: &Message) -> String {
    offer.params()["url"].as_str().unwrap().to_owned()
}

pub(crate) fn answer(workbench: &mut Workbench, offer: &Message, result: &str) {
    let id = offer.id().unwrap();
    workbench.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ));
}

/// Goes where an address leads, as a browser does; gives the text of the last page.
pub(crate) fn browse(address: &str) -> String {
    let page = follow(address, |_| false).page;
    page.expect("a page").body
}

/// Signs in by a workbench of its own, to the server `fs` of this setup: another process, as a terminal would be.
pub(crate) fn sign_in_elsewhere(setup: Setup) {
    let mut workbench = showing(setup);
    let opening = send_open(&mut workbench);
    let offer = offer(&mut workbench);
    answer(&mut workbench, &offer, ACCEPT);
    let page = browse(&address(&offer));
    assert!(page.contains("You are signed in"), "{page}");
    let opened = workbench.tool_result(&opening);
    assert_eq!(opened.tool_names(), ["t", "u"]);
    workbench.finish();
}

/// The same by a call that wants more than the last sign-in covers.
pub(crate) fn step_up_elsewhere(setup: Setup) {
    let mut workbench = showing(setup);
    workbench.open("dev");
    let call = workbench.send_use("t", "{}");
    let offer = offer(&mut workbench);
    answer(&mut workbench, &offer, ACCEPT);
    browse(&address(&offer));
    assert!(!workbench.tool_result(&call).failed());
    workbench.finish();
}

/// The code of a failure, and what is known of its effects.
pub(crate) fn code(result: &ToolResult) -> (String, String) {
    let text = |name: &str| result.failure()[name].as_str().unwrap().to_owned();
    (text("code"), text("outcome"))
}

/// Returns the kind and outcome of a failure because of a missing sign-in.
pub(crate) fn auth_required(outcome: &str) -> (String, String) {
    ("auth_required".to_owned(), outcome.to_owned())
}
