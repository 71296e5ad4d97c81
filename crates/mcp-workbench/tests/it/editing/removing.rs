//! `remove`.

use pretty_assertions::assert_eq;

use super::{Account, KEPT};

#[test]
fn a_server_is_removed_and_every_other_byte_is_preserved() {
    let account = Account::with(KEPT);
    account.done(&["remove", "dev", "files"]);
    let gone = "\r\n\t\t\t\t\"files\": { \"command\": \"files\" }, // the first";
    assert_eq!(account.text(), KEPT.replace(gone, ""));
    account.done(&["remove", "dev", "git"]);
    assert!(account.text().contains("\"mcpServers\": {},\r\n"));
    account.done(&["check"]);
}

#[test]
fn a_toolbox_with_servers_is_removed_only_with_a_flag() {
    let account = Account::with(KEPT);
    let said = account.refused(1, &["remove", "dev"]);
    assert!(said.contains("has servers: files, git"), "{said}");
    assert!(said.contains("--with-servers"), "{said}");
    account.done(&["remove", "dev", "--with-servers"]);
    let expected = "\u{feff}// Ours.\r\n{\r\n\t\"_note\": 1,\r\n\t\"toolboxes\": {\r\n\t\t// Code.\r\n\t},\r\n}\r\n";
    assert_eq!(account.text(), expected);
}

#[test]
fn remaining_comments_are_reported() {
    let text = "{\n  \"toolboxes\": {\n    // Of a.\n    \"a\": { \"description\": \"d\", \"mcpServers\": {} },\n\n    \
                // Of nobody.\n\n    \"b\": { \"description\": \"d\", \"mcpServers\": {} }\n  }\n}\n";
    let account = Account::with(text);
    let said = account.done(&["remove", "a"]);
    assert!(
        said.contains("the comment above it, in line 3, is still there"),
        "{said}"
    );
    assert!(account.text().contains("// Of a."));
    let said = account.done(&["remove", "b"]);
    assert!(!said.contains("comment"), "{said}");
}

#[test]
fn an_empty_toolbox_is_removed() {
    let account =
        Account::with("{\"toolboxes\": {\"a\": {\"description\": \"d\", \"mcpServers\": {}}}}");
    account.done(&["remove", "a"]);
    assert_eq!(account.text(), "{\"toolboxes\": {}}");
}

#[test]
fn removing_an_unknown_name_fails() {
    let account = Account::with(KEPT);
    let cases: [(&[&str], &str); 4] = [
        (
            &["remove", "dve"],
            "there is no toolbox `dve`\n  hint: did you mean `dev`?",
        ),
        (
            &["remove", "other", "x"],
            "there is no toolbox `other`\n  hint: the toolboxes are dev",
        ),
        (
            &["remove", "dev", "fils"],
            "there is no server `fils` in the toolbox `dev`\n  hint: did you mean `files`?",
        ),
        (
            &["remove", "dev", "other"],
            "hint: the servers are files, git",
        ),
    ];
    for (arguments, words) in cases {
        let said = account.refused(1, arguments);
        assert!(said.contains(words), "no {words:?} in {said}");
    }
}

#[test]
fn a_toolbox_that_the_configuration_refers_to_is_not_removed() {
    let account = Account::with(
        "{\"toolMode\": \"native\", \"nativeToolbox\": \"a\", \"toolboxes\": {\"a\": {\"description\": \"d\", \"mcpServers\": {}}}}",
    );
    let said = account.refused(1, &["remove", "a"]);
    assert!(
        said.contains(":1:41: nativeToolbox: there is no toolbox `a`"),
        "{said}"
    );
}
