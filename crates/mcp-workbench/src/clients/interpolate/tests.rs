use proptest::prelude::*;

use super::*;
use crate::config::{self, Environment};

const PROJECT: &str = "/home/me/project";

fn from(dialect: Interpolation) -> ReferenceContext<'static> {
    ReferenceContext {
        dialect,
        project: Some(Path::new(PROJECT)),
    }
}

fn text(written: &str, dialect: Interpolation) -> String {
    let translated = translate(written, "env.X", from(dialect));
    let untranslatable = translated.remarks.iter();
    let untranslatable = untranslatable.filter(|it| it.code() == "untranslatable");
    assert_eq!(untranslatable.count(), 0, "{written}");
    translated.text
}

#[test]
fn references_are_translated_to_our_syntax() {
    use Interpolation::{Braces, Curly, Dollar, EnvPrefix, None, Template};
    let cases = [
        ("${A}", Braces, "${A}"),
        ("${A:-x}", Braces, "${A:-x}"),
        ("$A", Braces, "$A"),
        ("${env:A}/b", EnvPrefix, "${A}/b"),
        ("${userHome}/x", EnvPrefix, "${userHome}/x"),
        ("${workspaceFolder}/x", EnvPrefix, "/home/me/project/x"),
        ("${workspaceFolderBasename}", EnvPrefix, "project"),
        ("a${pathSeparator}b${/}c", EnvPrefix, "a/b/c"),
        ("${input:github-token}", EnvPrefix, "${GITHUB_TOKEN}"),
        ("${input:1st}", EnvPrefix, "${INPUT_1ST}"),
        ("$A", Dollar, "${A}"),
        ("x$A-b$B_2", Dollar, "x${A}-b${B_2}"),
        ("${A}", Dollar, "${A}"),
        ("5$ or $5", Dollar, "5$ or $5"),
        ("Bearer {env:A}", Curly, "Bearer ${A}"),
        ("{\"json\": {}}", Curly, "{\"json\": {}}"),
        ("{env:A}", Braces, "{env:A}"),
        ("${{ secrets.A }}", Template, "${A}"),
        ("${", None, "$${"),
        ("${no name}", None, "$${no name}"),
        ("$$${", None, "$$$${"),
        ("$${", None, "$$${"),
        ("plain ä", None, "plain ä"),
    ];
    for (written, dialect, expected) in cases {
        #[cfg(unix)]
        assert_eq!(text(written, dialect), expected, "{written}");
    }
}

#[test]
fn without_a_project_the_folder_is_that_of_the_start() {
    let nowhere = ReferenceContext {
        dialect: Interpolation::EnvPrefix,
        project: None,
    };
    let folder = translate("${workspaceFolder}/x", "args[0]", nowhere);
    assert_eq!(folder.text, "${workspaceFolder}/x");
    let name = translate("${workspaceFolderBasename}", "args[0]", nowhere);
    assert_eq!(name.remarks[0].code(), "untranslatable");
}

#[test]
fn unsupported_references_become_literal_text() {
    let cases = [
        ("${file:/run/secret}", "${file:…}"),
        ("a ${keyring:x} b", "${keyring:…}"),
        ("${user_config.KEY}", "${user_config.KEY}"),
        ("${A:-${B:-hunter2}}", "${A:…}"),
        ("${{ matrix.a b }}", "${{ matrix.a b }}"),
        ("$${A}", "${A}"),
    ];
    for (written, reference) in cases {
        assert_eq!(
            translate(written, "env.X", from(Interpolation::EnvPrefix)),
            TranslatedText {
                text: escape_references(written),
                remarks: vec![Remark::Untranslatable {
                    key: "env.X".to_owned(),
                    reference: reference.to_owned(),
                }],
            },
            "{written}"
        );
    }
}

#[test]
fn variables_that_have_to_be_set_are_named() {
    let remarks = |written: &str, dialect| translate(written, "env.X", from(dialect)).remarks;
    assert_eq!(
        remarks(
            "${input:api key} ${input:api key}",
            Interpolation::EnvPrefix
        ),
        [Remark::SetVariable {
            variable: "API_KEY".to_owned(),
            source: ValueSource::Input
        }]
    );
    assert_eq!(
        remarks("${A}", Interpolation::None),
        [Remark::NowReplaced {
            variable: "A".to_owned()
        }]
    );
    assert_eq!(remarks("${A}", Interpolation::Braces), []);
}

proptest! {
    /// For any client file, our file stays valid.
    #[test]
    fn translated_texts_are_valid(
        written in r"([ab$}{:.\-/ä]|\$\{|env:|\{env:|input:|userHome){0,16}",
        dialect in 0..6_usize,
    ) {
        use Interpolation::{Braces, Curly, Dollar, EnvPrefix, None, Template};
        let dialect = [None, Braces, EnvPrefix, Dollar, Curly, Template][dialect];
        let translated = translate(&written, "k", from(dialect));
        let kept = translated.remarks.iter().any(|it| it.code() == "untranslatable");
        if kept {
            prop_assert_eq!(translated.text, escape_references(&written));
        } else {
            let config = serde_json::json!({"toolboxes": {"t": {
                "description": "d",
                "mcpServers": {"s": {"command": "x", "args": [translated.text]}},
            }}});
            let environment = Environment::new([], "/start".into(), Option::None);
            let parsed = config::parse(&config.to_string(), Path::new("c.json"), &environment);
            prop_assert!(parsed.is_ok(), "{:?}", parsed);
        }
    }

    #[test]
    fn a_text_without_signs_is_unchanged(written in r"[ -#%-z|~ä]{0,30}") {
        prop_assert_eq!(text(&written, Interpolation::Dollar), written);
    }
}
