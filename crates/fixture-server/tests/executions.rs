//! The execution journal, by the real binary.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

#[test]
fn every_call_with_a_nonce_leaves_one_line_in_order() {
    let file = std::env::temp_dir().join(format!("executions-{}", std::process::id()));
    let script = format!(
        r#"{{"executions":{},"onEof":"finish"}}"#,
        serde_json::Value::from(file.to_str().expect("a readable path"))
    );
    let mut server = Command::new(env!("CARGO_BIN_EXE_fixture-server"))
        .args(["--script", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the server starts");
    let pid = server.id();
    let mut stdin = server.stdin.take().expect("a pipe");
    for (id, arguments) in [r#"{"nonce":7}"#, "{}", r#"{"nonce":8}"#]
        .iter()
        .enumerate()
    {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        );
        writeln!(stdin, "{call}").expect("the server reads");
    }
    drop(stdin);
    assert!(server.wait().expect("the server ends").success());
    let journal = fs::read_to_string(&file).expect("a journal");
    fs::remove_file(&file).expect("the journal can be removed");
    assert_eq!(journal, format!("{pid} 7\n{pid} 8\n"));
}
