//! The scanner against a corpus: published attack shapes, reworded, and honest definitions. Each shape has an expected
//! verdict, and the page about the scanner has the sums.

use std::{collections::BTreeMap, fs, path::Path};

use bytes::Bytes;
use mcp_workbench::internal::policy::scan::{ServerTools, Severity, across, hard, scan};
use rawjson::RawJson;
use serde_json::{Map, Value, json};

const ATTACKS: &str = include_str!("attacks.jsonl");
const BENIGN: &str = include_str!("benign.jsonl");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The expected verdict of the scanner on a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caught {
    Hard,
    Soft,
    Missed,
}

impl Caught {
    fn of_word(word: &Value) -> Self {
        match word.as_str() {
            Some("hard") => Self::Hard,
            Some("soft") => Self::Soft,
            Some("missed") => Self::Missed,
            _ => panic!("no word for what is to come of a shape: {word}"),
        }
    }
}

fn raw(value: &Value) -> RawJson {
    RawJson::parse(&Bytes::from(value.to_string())).unwrap()
}

/// The shapes of a file. What would be too long to be written out is: `@repeat N text` as a string, and `@many` in an
/// object for so many empty members.
fn shapes(file: &str) -> Vec<Value> {
    let lines = file.lines();
    let shapes = lines.map(|line| written_out(serde_json::from_str(line).unwrap()));
    shapes.collect()
}

fn written_out(value: Value) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix("@repeat ") {
            Some(rest) => {
                let (count, part) = rest.split_once(' ').unwrap();
                part.repeat(count.parse().unwrap()).into()
            }
            None => text.into(),
        },
        Value::Array(elements) => elements.into_iter().map(written_out).collect(),
        Value::Object(members) => match members.get("@many").and_then(Value::as_u64) {
            Some(count) => (0..count).map(|it| (format!("p{it}"), json!({}))).collect(),
            None => {
                let members = members.into_iter();
                let members: Map<_, _> = members.map(|(key, it)| (key, written_out(it))).collect();
                members.into()
            }
        },
        plain => plain,
    }
}

fn caught(shape: &Value) -> Caught {
    let mut worst = Caught::Missed;
    let mut definitions: Vec<RawJson> = Vec::new();
    definitions.extend(shape.get("definition").map(raw));
    let lists = shape["lists"].as_array().cloned().unwrap_or_default();
    let lists: Vec<(String, Vec<(String, RawJson)>)> = { lists.iter() }
        .map(|list| {
            let tools = list[1].as_array().unwrap().iter();
            let tools = tools.map(|it| (it["name"].as_str().unwrap().to_owned(), raw(it)));
            (list[0].as_str().unwrap().to_owned(), tools.collect())
        })
        .collect();
    let listed = { lists.iter() }.map(|(server, tools)| ServerTools {
        server,
        tools: tools.iter().map(|(name, it)| (name.as_str(), it)).collect(),
    });
    if !across(&listed.collect::<Vec<_>>()).is_empty() {
        worst = Caught::Soft;
    }
    definitions.extend(
        lists
            .into_iter()
            .flat_map(|(_, tools)| tools.into_iter().map(|it| it.1)),
    );
    for definition in definitions {
        let findings = scan(&definition);
        let is_hard = findings.iter().any(|it| it.severity() == Severity::Hard);
        // The quick look is not less strict than the thorough one.
        assert_eq!(hard(&definition).is_some(), is_hard, "{shape}");
        if is_hard {
            return Caught::Hard;
        }
        if !findings.is_empty() {
            worst = Caught::Soft;
        }
    }
    worst
}

#[test]
fn attacks_are_detected_as_recorded_in_the_corpus() {
    let mut wrong = Vec::new();
    for shape in shapes(ATTACKS) {
        let (caught, expected) = (caught(&shape), Caught::of_word(&shape["expect"]));
        if caught != expected {
            wrong.push(format!(
                "{} {}: {caught:?}, not {expected:?}",
                shape["threat"], shape["shape"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn honest_definitions_have_no_findings() {
    let mut wrong = Vec::new();
    for shape in shapes(BENIGN) {
        if caught(&shape) != Caught::Missed {
            let definition = shape.get("definition").map(raw);
            let findings = definition.map(|it| scan(&it));
            wrong.push(format!("{}: {findings:?}", shape["shape"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scanner_page_has_the_measured_rates() {
    let mut rates: BTreeMap<u32, [usize; 4]> = BTreeMap::new();
    let shapes = shapes(ATTACKS);
    for shape in &shapes {
        let threat = shape["threat"].as_str().unwrap();
        let number = threat.trim_start_matches('T').parse().unwrap();
        let [all, hard, soft, missed] = rates.entry(number).or_default();
        *all += 1;
        *match Caught::of_word(&shape["expect"]) {
            Caught::Hard => hard,
            Caught::Soft => soft,
            Caught::Missed => missed,
        } += 1;
    }
    let page = fs::read_to_string(Path::new(ROOT).join("docs/scanner.md")).unwrap();
    let mut sums = [0; 4];
    for (threat, rate) in &rates {
        let cells = rate.map(|it| format!("| {it} ")).concat();
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| T{threat} ")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("{cells}|"))),
            "T{threat} {cells}| in {row:?}"
        );
        for (sum, it) in sums.iter_mut().zip(rate) {
            *sum += it;
        }
    }
    let row = format!("| all | | {} |", sums.map(|it| it.to_string()).join(" | "));
    assert!(page.contains(&row), "{row}");
    let benign = format!(
        "{} honest definitions of the project",
        self::shapes(BENIGN).len()
    );
    assert!(page.contains(&benign), "{benign}");
    assert!(shapes.len() >= 60);
}

/// The definitions of real servers that are kept beside the repository for another purpose, where they are.
#[test]
fn real_definitions_are_not_withheld_and_rarely_reported() {
    let sets = Path::new(ROOT).join("../shared/retrieval/dev");
    let Ok(sets) = fs::read_dir(sets) else {
        return;
    };
    let (mut count, mut told) = (0, 0);
    for set in sets {
        let Ok(text) = fs::read_to_string(set.unwrap().path().join("tools.jsonl")) else {
            continue;
        };
        for line in text.lines() {
            let definition = RawJson::parse(&Bytes::from(line.to_owned())).unwrap();
            let definition = definition.without_members(&["id", "server"]);
            assert_eq!(hard(&definition), None, "{definition:?}");
            count += 1;
            told += usize::from(!scan(&definition).is_empty());
        }
    }
    assert!(told * 100 < count, "{told} of {count}");
    let page = fs::read_to_string(Path::new(ROOT).join("docs/scanner.md")).unwrap();
    let figures = format!("{told} of {count} real definitions");
    // Other sets than those of the page have other figures.
    assert!(count != 6301 || page.contains(&figures), "{figures}");
}
