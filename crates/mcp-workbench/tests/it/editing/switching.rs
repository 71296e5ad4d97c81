//! `enable` and `disable`.

use pretty_assertions::assert_eq;

use super::{Account, KEPT};

#[test]
fn a_disabled_server_disappears_and_returns_unchanged() {
    let account = Account::with(KEPT);
    let said = account.done(&["disable", "dev", "git"]);
    assert!(
        said.starts_with("disabled the server `git` of the toolbox `dev` in "),
        "{said}"
    );
    let command = "\t\t\t\t\t\"command\": \"git-server\",\r\n";
    let off = "\t\t\t\t\t\"disabled\": true,\r\n";
    assert_eq!(
        account.text(),
        KEPT.replace(command, &format!("{command}{off}"))
    );
    let checked = account.run(&["check"]).stdout.join("\n");
    assert!(
        checked.contains("servers: 1") && checked.contains("git: disabled"),
        "{checked}"
    );
    account.done(&["enable", "dev", "git"]);
    assert_eq!(account.text(), KEPT);
}

#[test]
fn all_servers_of_a_toolbox_can_be_disabled_at_once() {
    let account = Account::with(KEPT);
    account.done(&["disable", "dev"]);
    let checked = account.run(&["check"]).stdout.join("\n");
    assert!(checked.contains("servers: 0"), "{checked}");
    account.done(&["enable", "dev"]);
    assert_eq!(account.text(), KEPT);
}

#[test]
fn disabling_a_disabled_server_writes_nothing() {
    let account = Account::with(KEPT);
    let said = account.done(&["enable", "dev", "git"]);
    assert_eq!(
        said,
        "nothing to change: the server `git` of the toolbox `dev` is enabled already\n"
    );
    assert_eq!(account.text(), KEPT);
}

#[test]
fn unknown_servers_cannot_be_enabled_or_disabled() {
    let account = Account::with(KEPT);
    for command in ["enable", "disable"] {
        let said = account.refused(1, &[command, "dev", "gti"]);
        assert!(said.contains("did you mean `git`?"), "{said}");
        let said = account.refused(1, &[command, "deev"]);
        assert!(said.contains("did you mean `dev`?"), "{said}");
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let account = Account::with(KEPT);
    let shown = account.run(&["disable", "dev", "git", "--dry-run"]).stdout;
    assert!(
        shown.contains(&"+\t\t\t\t\t\"disabled\": true,".to_owned()),
        "{shown:?}"
    );
    assert_eq!(account.text(), KEPT);
}
