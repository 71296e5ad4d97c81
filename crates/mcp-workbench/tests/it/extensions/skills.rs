//! Skills (SEP-2640): merged in native mode, named by `open_toolbox`, pinned in the lock file.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::harness::{Fault, ModernClient, ModernRequest, Script, Setup, Workbench};

const SKILLS: &str = "io.modelcontextprotocol/skills";

/// A file of a skill, with a digest of one digit.
fn file(uri: &str, digit: char) -> Value {
    let digest = digit.to_string().repeat(64);
    json!({ "uri": uri, "digest": format!("sha256:{digest}"), "size": 7 })
}

/// The entry of a skill with two files.
pub(crate) fn entry(root: &str, digit: char) -> Value {
    let name = root.rsplit('/').next().unwrap();
    let uri = format!("{root}/SKILL.md");
    json!({
        "uri": uri,
        "frontmatter": { "name": name, "description": format!("How to do {name}"), "license": "MIT" },
        "resources": [file(&uri, digit), file(&format!("{root}/a/b.md"), digit)],
    })
}

/// A server with these skills, which says its name in every answer.
pub(crate) fn server(name: &str, skills: &[Value]) -> Script {
    let capabilities = json!({ "tools": {}, "resources": {}, "extensions": { SKILLS: { "directoryRead": true } } });
    let says = |rest: &str| {
        format!(
            r#"[{{"line":"{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{{rest}\"from\":\"{name}\",\"got\":$PARAMS}}}}"}}]"#
        )
    };
    let first = skills.first().cloned().unwrap_or_default();
    let quoted = |value: &Value| value.to_string().replace('"', "\\\"");
    Script::named(&["x"])
        .set("capabilities", &capabilities.to_string())
        .on_method(
            "skills/list",
            &json!([{ "answer": { "skills": skills } }]).to_string(),
        )
        .on_method(
            "skills/get",
            &says(&format!("\\\"skill\\\":{},", quoted(&first))),
        )
        .on_method("resources/list", r#"[{"answer":{"resources":[]}}]"#)
        .on_method(
            "resources/templates/list",
            r#"[{"answer":{"resourceTemplates":[]}}]"#,
        )
        .on_method("resources/read", &says("\\\"contents\\\":[],"))
        .on_method(
            "resources/directory/read",
            &says(&format!(
                "\\\"resources\\\":{},",
                quoted(&first["resources"])
            )),
        )
}

fn native(setup: Setup) -> Setup {
    setup
        .top("toolMode", json!("native"))
        .top("nativeToolbox", json!("dev"))
}

fn ask(workbench: &mut Workbench, method: &str, uri: &str) -> Value {
    workbench
        .ask(method, &json!({ "uri": uri }).to_string())
        .result()
}

#[test]
fn native_mode_merges_skills_and_keeps_those_of_two_servers_apart() {
    let (shared, own) = (
        entry("skill://acme/refunds", 'a'),
        entry("skill://git", 'b'),
    );
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("a", &server("a", &[shared.clone(), own.clone()]))
        .server("b", &server("b", &[entry("skill://acme/refunds", 'c')]));
    let mut workbench = native(setup).start();
    let extensions = workbench.initialize()["capabilities"]["extensions"].clone();
    assert_eq!(extensions, json!({ SKILLS: { "directoryRead": true } }));
    let listed = workbench.ask("skills/list", "{}").result();
    let renamed = entry("skill://mcp-workbench/dev/b/acme/refunds", 'c');
    assert_eq!(listed["skills"], json!([shared, own, renamed]));

    for (root, server) in [
        ("skill://acme/refunds", "a"),
        ("skill://mcp-workbench/dev/b/acme/refunds", "b"),
    ] {
        let original = |rest: &str| format!("skill://acme/refunds{rest}");
        for rest in ["/SKILL.md", "/a/b.md"] {
            let read = ask(&mut workbench, "resources/read", &format!("{root}{rest}"));
            assert_eq!(
                (&read["from"], &read["got"]["uri"]),
                (&json!(server), &json!(original(rest)))
            );
        }
        let got = ask(&mut workbench, "skills/get", &format!("{root}/SKILL.md"));
        assert_eq!(got["from"], server);
        assert_eq!(got["skill"]["uri"], format!("{root}/SKILL.md"));
        assert_eq!(
            got["skill"]["resources"][1]["uri"],
            format!("{root}/a/b.md")
        );
        let children = ask(&mut workbench, "resources/directory/read", root);
        assert_eq!(children["resources"][1]["uri"], format!("{root}/a/b.md"));
        assert_eq!(children["got"]["uri"], original(""));
    }
}

#[test]
fn modern_clients_get_cache_hints() {
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("a", &server("a", &[entry("skill://git", 'b')]));
    let mut workbench = native(setup).start();
    let request = ModernRequest::new("skills/list");
    let list = workbench.ask_modern(&request).result();
    assert_eq!(list["skills"], json!([entry("skill://git", 'b')]));
    assert_eq!(
        (&list["ttlMs"], &list["resultType"]),
        (&json!(0), &json!("complete"))
    );
}

#[test]
fn open_toolbox_names_the_skills_and_their_files_can_be_read() {
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("a", &server("a", &[entry("skill://git", 'b')]))
        .server("b", &server("b", &[entry("skill://acme/refunds", 'c')]));
    let mut workbench = setup.connect();
    let opened = workbench.open("dev").json();
    assert_eq!(
        opened["skills"],
        json!([
            { "server": "a", "name": "git", "description": "How to do git", "uri": "skill://git/SKILL.md" },
            { "server": "b", "name": "refunds", "description": "How to do refunds", "uri": "skill://acme/refunds/SKILL.md" },
        ])
    );
    let brief = workbench.call("open_toolbox", r#"{"toolbox":"dev","detail":"brief"}"#);
    let line = "skill: b refunds (skill://acme/refunds/SKILL.md): How to do refunds";
    assert!(brief.text().contains(line), "{}", brief.text());
    let read = ask(
        &mut workbench,
        "resources/read",
        "skill://acme/refunds/a/b.md",
    );
    assert_eq!(read["from"], "b");
}

#[test]
fn skills_of_two_servers_with_one_uri_are_both_readable_in_proxy_mode() {
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("a", &server("a", &[entry("skill://git", 'a')]))
        .server("b", &server("b", &[entry("skill://git", 'b')]))
        .toolbox("two", "d")
        .server("c", &server("c", &[entry("skill://git", 'c')]));
    let mut workbench = setup.connect();
    let named = |opened: Value| -> Vec<String> {
        let skills = opened["skills"].as_array().unwrap().iter();
        skills
            .map(|it| it["uri"].as_str().unwrap().to_owned())
            .collect()
    };
    let uris = named(workbench.open("dev").json());
    let generated = |toolbox: &str, server: &str| {
        format!("mcp-workbench://resource/{toolbox}/{server}/skill://git/SKILL.md")
    };
    assert_eq!(uris, [generated("dev", "a"), generated("dev", "b")]);
    let brief = workbench.call("open_toolbox", r#"{"toolbox":"dev","detail":"brief"}"#);
    assert!(brief.text().contains(&uris[0]), "{}", brief.text());
    // A toolbox that is opened alone does not know of the others.
    assert_eq!(
        named(workbench.open("two").json()),
        ["skill://git/SKILL.md"]
    );
    for (uri, server) in [
        (&uris[0], "a"),
        (&uris[1], "b"),
        (&generated("two", "c"), "c"),
    ] {
        let read = ask(&mut workbench, "resources/read", uri);
        assert_eq!(read["from"], server);
        assert_eq!(read["got"]["uri"], "skill://git/SKILL.md");
    }
    let refused = workbench.ask("resources/read", r#"{"uri":"skill://git/SKILL.md"}"#);
    let message = &refused.error().message;
    assert!(message.contains(&generated("two", "c")), "{message}");
}

#[test]
fn hostile_skills_are_withheld_and_block_nothing_else() {
    let fault = Fault::within(
        30,
        "X3",
        "lists 10,000 skills, invalid ones, one with the uri of another server's skill, and one with a generated uri",
        "200 are used; invalid ones are withheld with the reason; the other server's skill is still its own",
    );
    let mut skills: Vec<Value> = vec![
        json!({ "uri": "skill://git/SKILL.md", "frontmatter": {}, "resources": [] }),
        entry("skill://mcp-workbench/dev/b/git", 'e'),
        json!(7),
    ];
    skills.extend((0..10_000).map(|n| entry(&format!("skill://s{n}"), 'a')));
    let setup = Setup::new()
        .toolbox("dev", "d")
        .server("a", &server("a", &skills))
        .server("b", &server("b", &[entry("skill://git", 'b')]));
    let mut workbench = native(setup).start();
    workbench.initialize();
    let listed = workbench.ask("skills/list", "{}").result();
    let listed = listed["skills"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 199);
    assert!(listed.contains(&entry("skill://git", 'b')));
    assert!(listed.contains(&entry(
        "skill://mcp-workbench/dev/a/mcp-workbench/dev/b/git",
        'e'
    )));
    assert_eq!(
        ask(&mut workbench, "resources/read", "skill://git/a/b.md")["from"],
        "b"
    );
    fault.ends();
}
