use bytes::Bytes;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn identifier(toolbox: &str, server: &str, tool: &str) -> ToolIdentifier {
    ToolIdentifier {
        toolbox: toolbox.into(),
        server: server.into(),
        tool: tool.into(),
    }
}

fn json(text: &str) -> RawJson {
    RawJson::parse(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

/// The hashes were made by another program. They do not change from one version to the next: people
/// keep names of tools in the settings of their clients.
#[test]
fn names_are_the_three_parts_joined_or_hashed_if_they_do_not_fit() {
    let long = "x".repeat(55);
    let longer = "x".repeat(56);
    let cases = [
        (
            ["dev", "filesystem", "read_file"],
            "dev__filesystem__read_file",
        ),
        (["d-e", "f__s", "_"], "d-e__f__s___"),
        (["A", "0", "z"], "A__0__z"),
        (["dev", "fs", &long], &format!("dev__fs__{long}")),
        (
            ["dev", "fs", &longer],
            &format!("dev__fs__{}_2d3feff6", "x".repeat(46)),
        ),
        (
            ["dev", "my fs", "read.file"],
            "dev__my_fs__read_file_87f5fa95",
        ),
        (["dev", "fs", "Ünïcödé"], "dev__fs___n_c_d__901bd086"),
        (["日本", "語", "😀"], "_________aa103e56"),
    ];
    for ([toolbox, server, tool], expected) in cases {
        let name = Registry::new(64).register(&identifier(toolbox, server, tool));
        assert_eq!(&*name, expected, "{toolbox} {server} {tool}");
    }
}

#[test]
fn the_limit_decides_between_whole_and_cut() {
    let tool = identifier("dev", "filesystem", "read_file");
    let whole = "dev__filesystem__read_file";
    for limit in 16..=64 {
        let name = Registry::new(limit).register(&tool);
        if limit >= whole.len() {
            assert_eq!(&*name, whole, "{limit}");
        } else {
            let (kept, hash) = name.split_at(limit - 9);
            assert_eq!(kept, &whole[..limit - 9], "{limit}");
            assert_eq!(hash.len(), 9);
            assert!(
                hash[1..]
                    .bytes()
                    .all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
            );
        }
    }
}

#[test]
fn colliding_names_differ_and_the_first_keeps_the_plain_one() {
    let registry = Registry::new(64);
    let tools = [
        identifier("a__b", "c", "d"),
        identifier("a", "b__c", "d"),
        identifier("a", "b", "c__d"),
    ];
    let names: Vec<_> = tools.iter().map(|tool| registry.register(tool)).collect();
    assert_eq!(&*names[0], "a__b__c__d");
    for (tool, name) in tools.iter().zip(&names) {
        assert_eq!(registry.lookup(name).as_ref(), Some(tool));
        assert_eq!(registry.register(tool), *name);
        assert!(name.starts_with("a__b__c__d"));
    }
    assert_ne!(names[1], names[2]);
    assert_eq!(registry.len(), 3);
}

/// A server may choose a tool's name so that it joins to the hashed name of another.
#[test]
fn a_taken_hashed_name_is_not_assigned_again() {
    let hashed = identifier("dev", "fs", "read file");
    let name = Registry::new(64).register(&hashed);
    let squatter = identifier("dev", "fs", name.strip_prefix("dev__fs__").unwrap());

    let registry = Registry::new(64);
    assert_eq!(registry.register(&squatter), name);
    let other = registry.register(&hashed);
    assert_ne!(other, name);
    assert_eq!(registry.lookup(&name), Some(squatter.clone()));
    assert_eq!(registry.lookup(&other), Some(hashed.clone()));

    let registry = Registry::new(64);
    assert_eq!(registry.register(&hashed), name);
    assert_ne!(registry.register(&squatter), name);
    assert_eq!(registry.lookup(&name), Some(hashed));
}

#[test]
fn a_name_is_looked_up_and_never_parsed() {
    let registry = Registry::new(64);
    assert_eq!(registry.len(), 0);
    registry.register(&identifier("dev", "fs", "read"));
    for name in [
        "dev__fs__write",
        "dev__fs__read ",
        "DEV__fs__read",
        "dev/fs/read",
        "",
    ] {
        assert_eq!(registry.lookup(name), None, "{name}");
    }
    assert_ne!(registry.len(), 0);
}

fn identifiers(part: &'static str, most: usize) -> impl Strategy<Value = Vec<ToolIdentifier>> {
    let tool = (part, part, part).prop_map(|(a, b, c)| identifier(&a, &b, &c));
    prop::collection::vec(tool, 1..=most)
}

/// Checks that the names are valid, distinct and stable, and lead back to the tools.
fn check_names(tools: &[ToolIdentifier], limit: usize) -> Result<(), TestCaseError> {
    let registry = Registry::new(limit);
    let names: Vec<_> = tools.iter().map(|tool| registry.register(tool)).collect();
    for (tool, name) in tools.iter().zip(&names) {
        prop_assert!(
            possible_registered_names(tool, limit).contains(&name.to_string()),
            "{name}"
        );
        prop_assert!(name.len() <= limit && name.chars().all(is_plain), "{name}");
        prop_assert_eq!(registry.lookup(name), Some(tool.clone()));
        prop_assert_eq!(&registry.register(tool), name);
    }
    let different: std::collections::HashSet<_> = tools.iter().collect();
    prop_assert_eq!(registry.len(), different.len());
    Ok(())
}

proptest! {
    #[test]
    fn different_tools_never_share_a_name(tools in identifiers("[a_.]{1,3}", 30), limit in 16_usize..24) {
        check_names(&tools, limit)?;
    }

    #[test]
    fn any_names_and_limits_give_valid_names(tools in identifiers("\\PC{1,40}", 5), limit in 16_usize..=128) {
        check_names(&tools, limit)?;
    }

    #[test]
    fn unknown_members_are_preserved_byte_for_byte_and_in_order(
        members in prop::collection::vec(("[a-d]|\\\\u006[1-4]", 0_usize..6), 0..8),
    ) {
        let values = ["1e400", "1.0", r#""\u0041\/""#, r#"{ "b" : [ ] }"#, "null", "[1 , 2]"];
        let sent: Vec<String> =
            members.iter().map(|(key, value)| format!("\"{key}\":{}", values[*value])).collect();
        let definition = json(&format!("{{{}}}", sent.join(",")));
        let registered = registered_definition("n", &identifier("t", "s", "x"), &definition);
        let kept = sent.iter().fold(String::new(), |text, member| text + member + ",");
        prop_assert_eq!(
            registered.as_str(),
            format!(
                r#"{{"name":"n","description":"[t/s]",{kept}"_meta":{{"toolbox":"t","server":"s","tool":"x"}}}}"#
            )
        );
    }
}

#[test]
fn a_definition_gets_the_registered_name_and_its_origin() {
    let place = r#""toolbox":"t","server":"s","tool":"x y""#;
    let cases = [
        (
            r#"{"name":"x y","description":"Reads","inputSchema":{}}"#,
            format!(
                r#"{{"name":"n","description":"[t/s] Reads","inputSchema":{{}},"_meta":{{{place}}}}}"#
            ),
        ),
        (
            r#"{"inputSchema":{ },"title":"T","n\u0061me":"x y"}"#,
            format!(
                r#"{{"name":"n","description":"[t/s]","inputSchema":{{ }},"title":"T","_meta":{{{place}}}}}"#
            ),
        ),
        (
            r#"{"description":null,"_meta":{"a":1e400,"server":"evil","\u0074ool":"evil","b":[1 ]}}"#,
            format!(
                r#"{{"name":"n","description":"[t/s]","_meta":{{"a":1e400,"b":[1 ],{place}}}}}"#
            ),
        ),
        (
            r#"{"description":"a\ud800\"\n","_meta":"none"}"#,
            format!(
                "{{\"name\":\"n\",\"description\":\"[t/s] a\u{fffd}\\\"\\n\",\"_meta\":{{{place}}}}}"
            ),
        ),
    ];
    for (definition, expected) in cases {
        let tool = identifier("t", "s", "x y");
        let registered = registered_definition("n", &tool, &json(definition));
        assert_eq!(registered.as_str(), expected);
    }
}
