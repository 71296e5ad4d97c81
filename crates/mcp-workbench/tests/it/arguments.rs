//! Arguments reach the server exactly as they were sent.

use pretty_assertions::assert_eq;

use crate::harness::{Script, Setup, raw_string};

#[test]
fn arguments_arrive_byte_for_byte() {
    let rows = [
        "{}",
        r#"{"path":"/tmp","n":1}"#,
        r#"{"z":1,"a":2,"m":{"z":1,"a":2}}"#,
        r#"{"n":123456789012345678901234567890,"f":1e400,"g":1.10,"h":-0,"i":1E5,"j":0.1e-7}"#,
        r#"{"same":1,"same":2}"#,
        r#"{"escapes":"\u00fc ü \/ \\ \" \n \ud83d\ude00 😀"}"#,
        r#"{"lone":"\ud800"}"#,
        r#"{ "space" : [ 1 , 2 ] , "tab":	null }"#,
        r#"{"deep":[[[[[[[[[[{"a":[{}]}]]]]]]]]]]}"#,
        r#"{"tool":{"toolbox":"x"},"arguments":{"arguments":{}},"_meta":{"progressToken":5},"id":1}"#,
        r#"{"":"","工具":"ü"}"#,
        r#"{"text":"{\"a\":1}"}"#,
    ];
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    for row in rows {
        assert!(!workbench.use_tool("pid", row).failed(), "{row}");
    }
    assert_eq!(workbench.journal("dev", "fs").arguments(), rows);
}

#[test]
fn missing_arguments_are_an_empty_object() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    let identifier = r#"{"tool":{"toolbox":"dev","server":"fs","tool":"pid"}}"#;
    workbench.call("use_tool", identifier);
    assert_eq!(workbench.journal("dev", "fs").arguments(), ["{}"]);
}

#[test]
fn arguments_as_a_string_are_parsed_as_an_object() {
    let rows = [
        "{}",
        r#"{"z":1,"a":"text"}"#,
        r#"{"n":123456789012345678901234567890,"f":1e400}"#,
        r#"{"quoted":"a \"b\" \\ \u00fc ü"}"#,
    ];
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    for row in rows {
        let result = workbench.use_tool("pid", &raw_string(row));
        assert!(!result.failed(), "{}", result.raw);
    }
    assert_eq!(workbench.journal("dev", "fs").arguments(), rows);
}

/// Line breaks between the tokens of such a string would end the message that the object is put into,
/// and what follows them would be a message of the caller's own making.
#[test]
fn a_string_cannot_smuggle_a_message_to_the_server() {
    let pretty = "{\n  \"a\": [1,\r\n 2],\n  \"b\": \"x y\"\n}";
    let smuggled = "{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\
                    \"params\":{\"name\":\"hidden\",\"arguments\":{}}}\n}";
    let setup = Setup::one(&Script::named(&["pid", "hidden"]));
    let mut workbench = setup.connect();
    workbench.open("dev");
    for text in [pretty, smuggled] {
        let result = workbench.use_tool("pid", &raw_string(text));
        assert!(!result.failed(), "{}", result.raw);
    }
    let journal = workbench.journal("dev", "fs");
    assert_eq!(journal.called(), ["pid", "pid"].map(raw_string));
    assert_eq!(journal.arguments()[0], r#"{"a":[1,2],"b":"x y"}"#);
}

#[test]
fn the_server_receives_the_original_tool_name() {
    let names = ["read.file", "a__b__c", "ü/工 tool", "tool\"q"];
    let mut script = Script::named(&names);
    for name in names {
        script = script.answers(name, r#"{"content":[]}"#);
    }
    let mut workbench = Setup::one(&script).connect();
    workbench.open("dev");
    for name in names {
        assert!(!workbench.use_tool(name, "{}").failed(), "{name}");
    }
    let called = workbench.journal("dev", "fs").called();
    assert_eq!(called, names.map(raw_string));
}

#[test]
fn meta_of_the_client_reaches_the_server() {
    let mut workbench = Setup::one(&Script::new()).connect();
    workbench.open("dev");
    let meta = r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","odd":[1e400]}"#;
    let params = format!(
        r#"{{"name":"use_tool","arguments":{{"tool":{{"toolbox":"dev","server":"fs","tool":"pid"}}}},"_meta":{meta}}}"#
    );
    assert!(!workbench.ask("tools/call", &params).is_error());
    let received = workbench.journal("dev", "fs").received("tools/call");
    let sent = received[0].params.as_ref().unwrap().get();
    assert!(sent.ends_with(&format!(r#""_meta":{meta}}}"#)), "{sent}");
}
