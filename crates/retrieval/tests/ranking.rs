//! The invariants of the ranking, on our own set and on the development sets if they are present.

use std::{collections::HashMap, fs, path::PathBuf};

use retrieval::{
    baseline::{self, Baseline, Reached},
    floor, places,
    score::Scores,
    set::{Question, Set},
};
use search::{Index, Query};

fn recorded() -> Baseline {
    let text = fs::read_to_string(places::baseline()).expect("the baseline is committed");
    serde_json::from_str(&text).expect("the baseline was written by us")
}

#[track_caller]
fn not_lost(what: &str, now: Reached, before: Reached) {
    assert!(
        !now.falls_below(&before),
        "the ranking of {what} got worse: {now:?}, and it was {before:?}\nhint: if that is meant, write it in with \
         ./scripts/retrieval --accept"
    );
}

#[test]
fn our_own_set_is_ranked_no_worse_than_before() {
    not_lost("our own set", baseline::own().unwrap(), recorded().own);
}

#[test]
fn the_development_sets_are_ranked_no_worse_than_before() {
    if let Some(now) = baseline::development().unwrap() {
        not_lost("the development sets", now, recorded().development);
    }
}

#[test]
fn a_lower_score_is_detected() {
    let before = recorded().development;
    let worse = Reached {
        ndcg: before.ndcg - 0.02,
        ..before
    };
    assert!(worse.falls_below(&before) && !before.falls_below(&worse));
}

/// The tool at the first rank: its server and its name.
fn first(index: &Index, query: &str) -> Option<(String, String)> {
    let found = index.search(&Query {
        text: query,
        toolbox: None,
        limit: 1,
    });
    let tool = &found.hits.first()?.tool;
    Some((tool.server.to_string(), tool.tool.to_string()))
}

#[test]
fn a_full_name_is_always_the_first_hit() {
    let folders: Vec<PathBuf> = [vec![places::own_set()], places::development_sets()].concat();
    for folder in folders {
        let set = Set::read(&folder).unwrap();
        let index = set.index();
        let mut owners: HashMap<&str, Vec<&str>> = HashMap::new();
        for shelf in &set.shelves {
            for (tool, _) in &shelf.tools {
                owners
                    .entry(tool.as_str())
                    .or_default()
                    .push(shelf.server.as_str());
            }
        }
        for (tool, servers) in owners {
            let (server, found) = first(&index, tool).unwrap();
            assert_eq!(found, tool);
            assert!(servers.contains(&server.as_str()), "{tool} of {server}");
            for server in servers {
                let expected = Some((server.to_owned(), tool.to_owned()));
                assert_eq!(first(&index, &format!("{server}/{tool}")), expected);
                if set.name == "own" {
                    assert_eq!(first(&index, &format!("{server} {tool}")), expected);
                }
            }
        }
    }
}

/// The shares are those of docs/search.md.
#[test]
fn the_floor_rarely_loses_answers_and_refuses_unanswerable_queries() {
    let folders: Vec<PathBuf> = [vec![places::own_set()], places::development_sets()].concat();
    for folder in folders {
        let set = Set::read(&folder).unwrap();
        let errors = floor::errors(&set, &set.index());
        assert!(
            errors.refused * 100 <= errors.answered * 4,
            "{}: {errors:?}",
            set.name
        );
        assert!(
            errors.recall - errors.recall_shown < 0.001,
            "{}: {errors:?}",
            set.name
        );
        if set.name == "own" {
            assert!(
                errors.accepted * 100 <= errors.unanswered * 42,
                "{errors:?}"
            );
        }
    }
}

#[test]
fn every_answer_of_a_set_is_one_of_its_tools() {
    let set = Set::read(&places::own_set()).unwrap();
    let tools: Vec<String> = set
        .shelves
        .iter()
        .flat_map(|shelf| {
            shelf
                .tools
                .iter()
                .map(|(tool, _)| format!("{}/{tool}", shelf.server))
        })
        .collect();
    for question in &set.questions {
        for tool in question.groups.iter().flatten() {
            assert!(tools.contains(tool), "{}: {tool}", question.qid);
        }
    }
}

#[test]
fn scores_agree_with_evaluate_py() {
    let question = Question {
        qid: "q".into(),
        query: String::new(),
        kind: String::new(),
        groups: vec![vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]],
    };
    let ranked = ["x", "c", "b", "a"].map(str::to_owned);
    let scores = Scores::of(&question, &ranked);
    // By evaluate.py: dcg is 1/log2(3) + 1/log2(5), and the best is 1 + 1/log2(3).
    let expected = Scores {
        recall: [0.0, 0.5, 1.0, 1.0],
        hit: 0.0,
        reciprocal_rank: 0.5,
        ndcg: (1.0 / 3_f64.log2() + 1.0 / 5_f64.log2()) / (1.0 + 1.0 / 3_f64.log2()),
    };
    assert_eq!(format!("{scores:.12?}"), format!("{expected:.12?}"));
    assert_eq!(Scores::of(&question, &[]), Scores::default());
    let nothing = Question {
        groups: Vec::new(),
        ..question
    };
    assert_eq!(Scores::of(&nothing, &ranked), Scores::default());
}

/// A set whose ids are not `server/tool`, with a tool twice, numbers as ids of queries, and no file about servers.
#[test]
fn hits_are_reported_with_the_ids_of_the_set() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("odd set");
    fs::create_dir_all(&folder).unwrap();
    let tools = r#"{"id":"one","server":"a b","name":"odd tool:x","description":null}
{"id":"two","server":"s/x","name":"y","description":"reads files"}
{"id":"three","server":"s/x","name":"y","description":"reads files","inputSchema":null}
{"server":"s","name":"writes","description":"writes files"}
"#;
    let queries = r#"{"qid":7,"query":"reads files","groups":[["three"]]}"#;
    fs::write(folder.join("tools.jsonl"), tools).unwrap();
    fs::write(folder.join("queries.jsonl"), queries).unwrap();
    let set = Set::read(&folder).unwrap();
    let index = set.index();
    assert_eq!(set.questions[0].qid, 7);
    let ranked = |query| retrieval::ranked(&set, &index, query);
    assert_eq!(ranked("reads files"), ["two", "three", "s/writes"]);
    assert_eq!(ranked("odd tool:x")[0], "one");
}
