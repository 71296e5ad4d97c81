use bytes::Bytes;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::downstream::{Cause, ConnectError, Withheld};

fn toolbox() -> Toolbox {
    Toolbox {
        name: "dev".into(),
        description: "Tools \"of\"\nthe trade".to_owned(),
        servers: IndexMap::new(),
        connect: crate::config::Connect::OnOpen,
        disabled: Vec::new(),
    }
}

fn tool(definition: &str) -> ToolDefinition {
    ToolDefinition {
        headers: Vec::new(),
        asks: None,
        released: None,
        ui: None,
        shape: crate::shapes::ToolShape::default(),
        name: "x".into(),
        definition: RawJson::parse(&Bytes::copy_from_slice(definition.as_bytes())).unwrap(),
    }
}

#[test]
fn a_definition_is_minified_and_gets_its_origin() {
    let place = r#""server":"f\"s","toolbox":"dev""#;
    let cases = [
        (r#"{"name":"x"}"#, format!(r#"{{"name":"x",{place}}}"#)),
        ("{}", format!("{{{place}}}")),
        (
            "{ \"name\" :\t\"x y\" , \"a b\" : [ 1.0 , 1e400 ] ,\r\n \"c\" : { } }",
            format!(r#"{{"name":"x y","a b":[1.0,1e400],"c":{{}},{place}}}"#),
        ),
        (
            r#"{"server":"evil","\u0073erver2":1,"tool\u0062ox":{"a":1},"name":"x","Server":2}"#,
            format!(r#"{{"\u0073erver2":1,"name":"x","Server":2,{place}}}"#),
        ),
        (
            r#"{"s\u0065rver":"evil","inputSchema":{"server":{"type":"string"}}}"#,
            format!(r#"{{"inputSchema":{{"server":{{"type":"string"}}}},{place}}}"#),
        ),
    ];
    for (definition, expected) in cases {
        let mut text = Vec::new();
        write_tool(
            &mut text,
            &toolbox().name,
            &"f\"s".into(),
            &tool(definition),
            Detail::Full,
        );
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}

/// Returns the text of a result, which is its only content.
fn text(catalogue: &[(ServerName, Arc<ToolList>)], failures: &[ServerFailure]) -> String {
    let result = render(
        &toolbox(),
        catalogue,
        catalogue.len(),
        failures,
        Detail::Full,
    );
    let result: Value = serde_json::from_slice(result.as_bytes()).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(
        result,
        json!({ "content": [{ "type": "text", "text": text }] })
    );
    text
}

const BEGIN: &str =
    r#"{"toolbox":"dev","description":"Tools \"of\"\nthe trade","servers_connected":"#;

#[test]
fn a_toolbox_without_servers_has_only_the_required_members() {
    assert_eq!(text(&[], &[]), format!(r#"{BEGIN}0,"tools":[]}}"#));
}

#[test]
fn optional_members_are_in_order() {
    let mut first = ToolList::default();
    first.withheld.push(Withheld {
        tool: "x".to_owned(),
        reason: "name is missing".to_owned(),
        name: "x".into(),
        cause: Cause::Definition,
    });
    first.notices.push("cut short".to_owned());
    first.incomplete = Some("only the first 2 are listed".to_owned());
    let mut second = ToolList::default();
    second.introduction.instructions = Some("be \"kind\"".to_owned());
    let catalogue = [
        ("a".into(), Arc::new(first)),
        ("b".into(), Arc::new(second)),
    ];
    let failures = [ServerFailure {
        toolbox: "dev".into(),
        server: "c".into(),
        error: Arc::new(ConnectError::StillStarting),
    }];
    let rest = [
        r#""tools":[]"#,
        r#""_errors":["Failed to connect to server 'c' in toolbox 'dev': still starting","Incomplete tool list of server 'a' in toolbox 'dev': only the first 2 are listed"]"#,
        r#""withheld":[{"server":"a","tool":"x","reason":"name is missing"}]"#,
        r#""notices":["server 'a': cut short"]"#,
        r#""instructions":{"b":"be \"kind\""}"#,
    ];
    assert_eq!(
        text(&catalogue, &failures),
        format!("{BEGIN}2,{}}}", rest.join(","))
    );
}

#[test]
fn servers_share_the_space_of_a_result() {
    for (sizes, bytes, expected) in [
        (&[][..], 100, 100),
        (&[100], 100, 100),
        (&[101], 100, 100),
        (&[50, 50], 100, 100),
        (&[10, 1000], 100, 90),
        (&[1000, 10], 100, 90),
        (&[1000, 1000], 100, 50),
        (&[10, 20, 1000, 1000], 100, 35),
    ] {
        assert_eq!(share(sizes, bytes), expected, "{sizes:?}");
        let used: usize = sizes.iter().map(|size| expected.min(*size)).sum();
        assert!(used <= bytes, "{sizes:?}");
    }
}

#[test]
fn tools_that_do_not_fit_into_a_result_are_counted() {
    let description = "x".repeat(MAX_LISTED_BYTES / 4);
    let large = tool(&format!(r#"{{"description":"{description}"}}"#));
    let small = tool("{}");
    let opened = Opened::new(Arc::new(toolbox()), Vec::new(), 0, Vec::new());
    let server = ServerName::from("s");
    let tools = [&large, &large, &large, &large, &small].map(|tool| (server.clone(), tool));
    let matching = Matching {
        query: "x",
        tools: tools.to_vec(),
        is_good: true,
    };
    let result = render_matching(&opened, &matching, Detail::Full);
    let result: Value = serde_json::from_slice(result.as_bytes()).unwrap();
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["tools"].as_array().unwrap().len(), 3);
    assert_eq!(
        text["_errors"],
        json!([
            "Incomplete tool list of toolbox 'dev': 2 tools are left out, because the definitions are larger than 16777216 \
             bytes together. They can be used; list them with detail \"signature\" or a query"
        ])
    );
}
