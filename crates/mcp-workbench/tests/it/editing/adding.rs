//! `add`.

use std::fs;

use pretty_assertions::assert_eq;

use super::{Account, KEPT};

#[test]
fn a_program_is_added_and_every_other_byte_is_preserved() {
    let account = Account::with(KEPT);
    let said = account.done(&[
        "add",
        "dev",
        "new",
        "-e",
        "LEVEL=a=b",
        "-e",
        "TOKEN=${TOKEN:-x}",
        "--cwd",
        "sub",
        "--",
        "npx",
        "-y",
        "--flag",
    ]);
    let end = "\t\t\t\t\t\"command\": \"git-server\",\r\n\t\t\t\t},\r\n";
    let added = "\t\t\t\t\"new\": {\r\n\t\t\t\t\t\"command\": \"npx\",\r\n\t\t\t\t\t\"args\": [\"-y\", \"--flag\"],\r\n\t\t\t\t\t\"env\": { \
                 \"LEVEL\": \"a=b\", \"TOKEN\": \"${TOKEN:-x}\" },\r\n\t\t\t\t\t\"cwd\": \"sub\",\r\n\t\t\t\t},\r\n";
    assert_eq!(account.text(), KEPT.replace(end, &format!("{end}{added}")));
    let file = account.config();
    assert_eq!(
        said,
        format!(
            "added the server `new` to the toolbox `dev` in {}\n",
            file.display()
        )
    );
    account.done(&["remove", "dev", "new"]);
    assert_eq!(account.text(), KEPT);
}

#[test]
fn a_remote_server_is_added() {
    let account = Account::with("{\n  \"toolboxes\": {}\n}\n");
    let said = account.done(&[
        "add",
        "ops",
        "issues",
        "--url",
        "https://x.test/mcp",
        "--header",
        "Authorization: Bearer ${ISSUES}",
        "--header",
        "X-Team:a:b",
        "--type",
        "sse",
        "--description",
        "Operations",
    ]);
    assert_eq!(
        account.text(),
        r#"{
  "toolboxes": {
    "ops": {
      "description": "Operations",
      "mcpServers": {
        "issues": {
          "type": "sse",
          "url": "https://x.test/mcp",
          "headers": { "Authorization": "Bearer ${ISSUES}", "X-Team": "a:b" }
        }
      }
    }
  }
}
"#
    );
    // What the entry needs is said at once.
    assert!(said.contains("variable ISSUES is not set"), "{said}");
}

#[test]
fn a_new_toolbox_gets_a_description() {
    let account = Account::with("{\"toolboxes\": {}}");
    let said = account.done(&["add", "ops", "x", "--", "y"]);
    assert!(
        said.contains("its description is \"Tools for ops\""),
        "{said}"
    );
    assert!(account.text().contains("\"Tools for ops\""));
    let said = account.done(&["add", "ops", "z", "--description", "New", "--", "y"]);
    assert!(said.contains("its description was not changed"), "{said}");
    assert!(!account.text().contains("New"));
}

#[test]
fn a_toolbox_that_is_probably_misspelt_is_not_created() {
    let account = Account::with(KEPT);
    let said = account.refused(1, &["add", "Dev", "x", "--", "y"]);
    assert!(said.contains("did you mean `dev`?"), "{said}");
    account.done(&["add", "Dev", "x", "--description", "Others", "--", "y"]);
    assert!(
        account
            .text()
            .contains("\t\t\"Dev\": {\r\n\t\t\t\"description\": \"Others\",\r\n")
    );
}

#[test]
fn a_secret_in_plain_text_is_warned_about_and_not_repeated() {
    let account = Account::with(KEPT);
    let said = account.done(&[
        "add",
        "dev",
        "x",
        "-e",
        "API_TOKEN=hunter2hunter2",
        "--",
        "y",
    ]);
    assert!(
        said.contains("`API_TOKEN`") && said.contains("'${API_TOKEN}'"),
        "{said}"
    );
    let said_too = account.done(&[
        "add",
        "dev",
        "z",
        "--url",
        "https://x.test",
        "--header",
        "X-Api-Key: hunter2hunter2",
    ]);
    assert!(said_too.contains("`X-Api-Key`"), "{said_too}");
    assert!(!format!("{said}{said_too}").contains("hunter2"));
}

#[test]
fn an_invalid_entry_is_refused_with_its_location() {
    let account = Account::with(KEPT);
    let cases: [(&[&str], &str); 6] = [
        (
            &["git", "--", "x"],
            "the toolbox `dev` already has a server `git`",
        ),
        (
            &["x", "--url", "no"],
            ":14:13: toolboxes.dev.mcpServers.x.url: `no` is not an http or https URL",
        ),
        (
            &["x", "-e", "A=${", "--", "y"],
            "toolboxes.dev.mcpServers.x.env.A: `${` is never closed",
        ),
        (&[" ", "--", "y"], "the name of a server is empty"),
        (&["x", "--", ""], "the command is empty"),
        (
            &["x", "--url", "http://a", "--header", "A B: c"],
            "`A B` is not a valid header name",
        ),
    ];
    for (arguments, words) in cases {
        let said = account.refused(1, &[&["add", "dev"], arguments].concat());
        assert!(said.contains(words), "no {words:?} in {said}");
        assert!(said.contains("hint: "), "{said}");
    }
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    let account = Account::with(KEPT);
    let cases: [&[&str]; 7] = [
        &["dev", "x"],
        &["dev"],
        &["dev", "x", "--url", "http://a", "--", "y"],
        &["dev", "x", "--url", "http://a", "-e", "A=b"],
        &["dev", "x", "--header", "A: b", "--", "y"],
        &["dev", "x", "-e", "novalue", "--", "y"],
        &["dev", "x", "--url", "http://a", "--type", "stdio"],
    ];
    for arguments in cases {
        account.refused(2, &[&["add"], arguments].concat());
    }
}

#[test]
fn a_dry_run_shows_the_difference_and_writes_nothing() {
    let account = Account::with(
        "{\n  \"toolboxes\": {\n    \"a\": { \"description\": \"d\", \"mcpServers\": {} }\n  }\n}\n",
    );
    let before = account.text();
    let finished = account.run(&["add", "a", "x", "--dry-run", "--", "y"]);
    assert!(finished.status.success());
    let file = account.config();
    let file = file.display();
    assert_eq!(
        finished.stdout.join("\n"),
        format!(
            "--- {file}\n+++ {file}\n@@ -1,5 +1,9 @@\n {{\n   \"toolboxes\": {{\n-    \"a\": {{ \"description\": \"d\", \
             \"mcpServers\": {{}} }}\n+    \"a\": {{ \"description\": \"d\", \"mcpServers\": {{\n+      \"x\": {{\n+        \
             \"command\": \"y\"\n+      }}\n+    }} }}\n   }}\n }}"
        )
    );
    assert_eq!(account.text(), before);
}

#[test]
fn a_file_with_other_errors_can_be_edited() {
    let text = "{\"toolboxes\": {\"a\": {\"mcpServers\": {\"x\": {\"command\": 1}}}}}";
    let account = Account::with(text);
    let said = account.done(&["add", "a", "y", "--", "z"]);
    assert!(said.contains("still contains errors"), "{said}");
    account.done(&["remove", "a", "y"]);
    assert_eq!(account.text(), text);
}

#[test]
fn an_invalid_configuration_is_refused_with_its_location() {
    let cases = [
        ("{\"toolboxes\": {,}}", ":1:16: not valid JSON"),
        ("", ":1:1: not valid JSON: the file is empty"),
        ("[]", ":1:1: expected an object, found an array"),
        (
            "{\"toolboxes\": {\"a\": 5}}",
            ":1:21: toolboxes.a: expected an object, found a number",
        ),
    ];
    for (text, words) in cases {
        let said = Account::with(text).refused(1, &["add", "a", "x", "--", "y"]);
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    let said = Account::new().refused(1, &["add", "a", "x", "--", "y"]);
    assert!(said.contains("mcp-workbench init"), "{said}");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_are_preserved() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let account = Account::new();
    let real = account.path("home/real.json");
    fs::write(&real, KEPT).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../home/real.json", account.config()).unwrap();
    account.done(&["add", "dev", "x", "--", "y"]);
    assert!(account.config().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("\"x\": {"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(fs::read_dir(account.path("home")).unwrap().count(), 1);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let said = account.refused(1, &["add", "dev", "z", "--", "y"]);
    assert!(said.contains("is read-only"), "{said}");
}

#[test]
fn a_printed_difference_contains_no_secrets() {
    let account = Account::new();
    account.done(&["init"]);
    let secret = "hunter2\"-hunter2";
    let variable = format!("API_TOKEN={secret}");
    let entry = ["-e", &variable, "--", "y", "--key", secret];
    let add = ["add", "main", "x"];
    let shown = account.run(&[&add[..], &["--dry-run"], &entry].concat());
    let shown = shown.stdout.join("\n");
    account.done(&[&add[..], &entry].concat());
    let removed = account.run(&["remove", "main", "x", "--dry-run"]).stdout;
    for shown in [shown, removed.join("\n")] {
        assert!(
            shown.contains("\"API_TOKEN\": \"[redacted]\"") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
