//! The command `search`.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::two_toolboxes;
use crate::harness::{Finished, Script, Setup, TIMEOUT};

/// Runs the command to its end; nothing of its servers is left.
fn run(setup: Setup, arguments: &[&str]) -> (i32, Finished) {
    setup.write_config();
    let config = setup.config().to_str().unwrap().to_owned();
    let arguments: Vec<&str> = ["--config", &config, "search"]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    let mut command = setup.start_with(&arguments);
    let finished = command.finish();
    command.wait_no_survivors(TIMEOUT);
    (finished.status.code().unwrap(), finished)
}

#[test]
fn hits_are_shown_with_their_parameters() {
    let (code, finished) = run(two_toolboxes(), &["weather", "forecast"]);
    assert_eq!(code, 0, "{}", finished.stderr);
    assert_eq!(
        finished.stdout.join("\n"),
        "1 of 1 match, among 3 tools of 2 servers in 2 toolboxes\n\n\
         life sky forecast(city: string)\n  Forecast the weather of a city"
    );
    assert_eq!(finished.stderr, "");
}

#[test]
fn a_search_without_hits_fails() {
    let (code, finished) = run(two_toolboxes(), &["zzzz"]);
    assert_eq!(code, 1);
    assert_eq!(
        finished.stdout.join("\n"),
        "nothing found for 'zzzz' among 3 tools of 2 servers in 2 toolboxes"
    );
}

#[test]
fn a_search_without_a_good_match_shows_the_nearest_and_fails() {
    let (code, finished) = run(two_toolboxes(), &["read", "my", "palm"]);
    assert_eq!(code, 1);
    assert_eq!(
        finished.stdout.join("\n"),
        "no good match for 'read my palm'; the nearest 1 among 3 tools of 2 servers in 2 toolboxes\n\n\
         dev fs read_file(path: string, head?: integer = 10, encoding?: \"utf8\"|\"base64\")\n  Read a file."
    );
    let (code, finished) = run(two_toolboxes(), &["--json", "read", "my", "palm"]);
    assert_eq!(code, 1);
    let document: Value = serde_json::from_str(&finished.stdout.join("\n")).unwrap();
    assert_eq!(document["good_match"], false);
    assert_eq!(document["hits"][0]["tool"], "read_file");
}

#[test]
fn explain_shows_the_words_and_where_they_matched() {
    let arguments = ["forecast", "--explain", "--limit", "1"];
    let (code, finished) = run(two_toolboxes(), &arguments);
    assert_eq!(code, 0, "{}", finished.stderr);
    let text = finished.stdout.join("\n");
    for part in [
        "\n  score ",
        ", first because the query is its name\n",
        "\n    forecast  ",
        "name, description",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn json_is_one_document() {
    let setup = two_toolboxes().entry("bad", json!({"command": "/no/such/program"}));
    let arguments = ["forecast", "--json", "--explain", "--toolbox", "life"];
    let (code, finished) = run(setup, &arguments);
    assert_eq!(code, 0, "{}", finished.stderr);
    let document: Value = serde_json::from_str(&finished.stdout.join("\n")).unwrap();
    let hit = &document["hits"][0];
    assert_eq!(
        (&hit["toolbox"], &hit["server"], &hit["tool"]),
        (&json!("life"), &json!("sky"), &json!("forecast"))
    );
    assert_eq!(document["good_match"], true);
    assert_eq!(hit["parameters"], "(city: string)");
    assert_eq!(hit["summary"], "Forecast the weather of a city");
    assert_eq!(hit["explanation"]["exact"], "name");
    assert_eq!(hit["explanation"]["words"][0]["word"], "forecast");
    assert_eq!(
        document["searched"],
        json!({"tools": 1, "servers": 1, "toolboxes": ["life"]})
    );
    assert_eq!(document["failed"][0]["server"], "bad");
    assert!(
        finished.stderr.contains("1 server not searched"),
        "{}",
        finished.stderr
    );
}

#[test]
fn full_detail_prints_the_definition() {
    let arguments = ["forecast", "--json", "--detail", "full"];
    let (_, finished) = run(two_toolboxes(), &arguments);
    let document: Value = serde_json::from_str(&finished.stdout.join("\n")).unwrap();
    let definition = &document["hits"][0]["definition"];
    assert_eq!(definition["inputSchema"]["required"], json!(["city"]));
}

#[test]
fn definitions_are_printed_as_their_text() {
    let tools = r#"[{"name":"scale","title":"Scale","inputSchema":{"type":"object","properties":{"by":{"title":"By","default":1e400,"maximum":1.0}}}}]"#;
    let expected = [
        (
            "compact",
            r#"{"name":"scale","inputSchema":{"type":"object","properties":{"by":{"default":1e400,"maximum":1.0}}},"server":"fs","toolbox":"dev"}"#,
        ),
        (
            "full",
            r#"{"name":"scale","title":"Scale","inputSchema":{"type":"object","properties":{"by":{"title":"By","default":1e400,"maximum":1.0}}}}"#,
        ),
    ];
    for (detail, definition) in expected {
        let setup = Setup::one(&Script::new().tools(tools));
        let (code, finished) = run(setup, &["scale", "--json", "--detail", detail]);
        assert_eq!(code, 0, "{}", finished.stderr);
        let document = finished.stdout.join("\n");
        let member = format!("\"definition\": {definition}");
        assert!(document.contains(&member), "no {member} in {document}");
    }
    let setup = Setup::one(&Script::new().tools(tools));
    let (_, finished) = run(setup, &["scale", "--detail", "compact"]);
    assert_eq!(finished.stdout.last().unwrap(), expected[0].1);
}

#[test]
fn wrong_arguments_are_refused() {
    let (code, finished) = run(two_toolboxes(), &["x", "--toolbox", "lief"]);
    assert_eq!(code, 1);
    assert!(
        finished.stderr.contains("did you mean `life`?"),
        "{}",
        finished.stderr
    );
    for arguments in [
        &["x", "--limit", "51"][..],
        &["x", "--detail", "all"],
        &[],
        &[""],
    ] {
        assert_eq!(run(two_toolboxes(), arguments).0, 2, "{arguments:?}");
    }
}
