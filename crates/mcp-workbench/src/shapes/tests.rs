use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::*;

/// The shape of a tool after these results, and the shapes of its server.
fn learned(results: &[Value]) -> (Shapes, ToolShape) {
    let shapes = Shapes::default();
    let tool = shapes.of(&"list".into());
    for result in results {
        let seen = tool.0.as_ref().unwrap();
        seen.offer(&RawJson::of(result));
        assert!(shapes.take_samples());
        shapes.read_samples(|it| Some(it.clone()));
    }
    (shapes, tool)
}

fn twice(result: &Value) -> Option<String> {
    learned(&[result.clone(), result.clone()]).1.signature()
}

#[test]
fn results_become_signatures_without_values() {
    let issue = |labels: Value| json!({"number": 1, "title": "secret", "labels": labels});
    let some = json!({"issues": [issue(json!(["a"])), {"number": 2}], "total": 2});
    let others = json!({"issues": [], "total": 0, "next": null});
    let cases = [
        (
            vec![some.clone(), some.clone(), others.clone()],
            "→ {issues: {number, title?, labels?: string[]}[], total} (seen in 3 results)",
        ),
        (
            vec![others.clone(), others],
            "→ {issues: unknown[], total, next} (seen in 2 results)",
        ),
        (
            vec![json!([1, "a"]), json!([null])],
            "→ (null | number | string)[] (seen in 2 results)",
        ),
        (
            vec![json!({"a": {"b": {"c": [[1]]}}}); 2],
            "→ {a: {b: {c: number[][]}}} (seen in 2 results)",
        ),
        (
            vec![json!({"x": 1}), json!([{"x": 1}])],
            "→ {}[] | {} (seen in 2 results)",
        ),
    ];
    for (results, expected) in cases {
        let shown = learned(&results).1.signature();
        if expected.starts_with("→ {}") {
            // A name that only one result had is not shown, and the rest says nothing.
            assert_eq!(shown, None);
        } else {
            assert_eq!(shown.as_deref(), Some(expected));
        }
    }
    assert_eq!(
        learned(&[some.clone(), some]).1.typescript().as_deref(),
        Some(
            "{ issues: { number: number; title?: string; labels?: string[] }[]; total: number } /* seen in 2 results */"
        )
    );
}

#[test]
fn nothing_is_shown_of_one_result_or_of_plain_values() {
    assert_eq!(learned(&[json!({"a": 1})]).1.signature(), None);
    for plain in [json!("text"), json!(7), json!(null), json!({})] {
        assert_eq!(twice(&plain), None, "{plain}");
    }
}

#[test]
fn names_that_are_data_are_forgotten() {
    let entry = json!({"age": 1, "mail": "x"});
    let scalars = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| ((*name).to_owned(), json!(1)))
            .collect::<Map<_, _>>()
            .into()
    };
    let many: Vec<String> = (0..40)
        .map(|n| format!("user{}", (b'a' + n % 26) as char) + &"x".repeat(n.into()))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (result, expected) in [
        (
            json!({"alice": entry, "bob": entry}),
            "→ {[key]: {age, mail}} (seen in 2 results)",
        ),
        (
            json!({"alice": [entry], "bob": [entry]}),
            "→ {[key]: {age, mail}[]} (seen in 2 results)",
        ),
        (
            scalars(&["a@b.test"]),
            "→ {[key]: number} (seen in 2 results)",
        ),
        (
            scalars(&["/etc/passwd", "mode"]),
            "→ {[key]: number} (seen in 2 results)",
        ),
        (scalars(&["12345"]), "→ {[key]: number} (seen in 2 results)"),
        (
            scalars(&["id-20261118"]),
            "→ {[key]: number} (seen in 2 results)",
        ),
        (
            scalars(&["deadbeef01"]),
            "→ {[key]: number} (seen in 2 results)",
        ),
        (
            scalars(&["Alice Smith"]),
            "→ {[key]: number} (seen in 2 results)",
        ),
        (scalars(&["naïve"]), "→ {[key]: number} (seen in 2 results)"),
        (scalars(&many), "→ {[key]: number} (seen in 2 results)"),
    ] {
        let (shapes, tool) = learned(&[result.clone(), result.clone()]);
        assert_eq!(tool.signature().as_deref(), Some(expected), "{result}");
        let stored = shapes.to_json(None).unwrap();
        for name in result.as_object().unwrap().keys() {
            assert!(
                !stored.as_str().contains(name.as_str()),
                "{name} in {}",
                stored.as_str()
            );
        }
    }
    // Names that vary from result to result.
    let varying: Vec<Value> = [
        "ann", "bea", "cleo", "dora", "edna", "fay", "gwen", "hope", "ida", "joy",
    ]
    .map(|name| scalars(&[name]))
    .to_vec();
    let (shapes, tool) = learned(&varying);
    assert_eq!(
        tool.signature().as_deref(),
        Some("→ {[key]: number} (seen in 10 results)")
    );
    assert!(!shapes.to_json(None).unwrap().as_str().contains("ann"));
}

#[test]
fn hostile_results_stay_within_the_bounds() {
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({ "a": [deep] });
    }
    let wide: Map<String, Value> = (0..30)
        .map(|n| {
            let name = |n: u8| {
                ((b'a' + n % 26) as char)
                    .to_string()
                    .repeat(usize::from(n / 26) + 1)
            };
            let inner: Map<String, Value> = (0..30).map(|m| (name(m), json!({ "x": n }))).collect();
            (name(n), if n % 2 == 0 { inner.into() } else { json!(1) })
        })
        .collect();
    for result in [
        deep,
        wide.into(),
        json!(vec![json!({"a": vec![0; 100]}); 1000]),
    ] {
        let (shapes, tool) = learned(&[result.clone(), result]);
        let shown = tool.signature().unwrap_or_default();
        assert!(
            shown.chars().count() <= SIGNATURE_CHARACTERS + 40,
            "{shown}"
        );
        let parts = lock(&tool.0.as_ref().unwrap().learned).shape.parts();
        assert!(parts <= MAX_PARTS, "{parts}");
        let _ = shapes.to_json(None);
    }
    let (shapes, tool) = learned(&[]);
    tool.0
        .as_ref()
        .unwrap()
        .offer(&RawJson::of(&"x".repeat(MAX_RESULT_BYTES)));
    assert!(!shapes.take_samples(), "a large result is not read");
    for number in 0..MAX_TOOLS + 5 {
        shapes.of(&format!("tool{number}").as_str().into());
    }
    assert_eq!(shapes.tools().len(), MAX_TOOLS);
}

#[test]
fn shapes_outlive_a_run_and_broken_ones_do_not() {
    let (shapes, _) = learned(&[json!({"a": 1}), json!({"a": 1, "b": []})]);
    let stored = shapes.to_json(None).unwrap();
    let next = Shapes::default();
    next.load(Some(&stored));
    next.load(Some(&stored));
    let tool = next.of(&"list".into());
    assert_eq!(
        tool.signature().as_deref(),
        Some("→ {a} (seen in 2 results)")
    );
    // Another process has learned another tool.
    let other = stored.as_str().replace("list", "other");
    let both = next
        .to_json(Some(&RawJson::parse(&other.into()).unwrap()))
        .unwrap();
    assert!(both.as_str().contains("\"list\"") && both.as_str().contains("\"other\""));
    for broken in [
        json!(7),
        json!({"list": {"results": 2, "shape": {"o": {"n": 2, "m": [{"a": "a b", "n": 2, "r": 2, "s": {}}]}}}}),
        json!({"list": {"results": 2, "shape": {"k": 999}}}),
    ] {
        let shapes = Shapes::default();
        shapes.load(Some(&RawJson::of(&broken)));
        assert_eq!(shapes.of(&"list".into()).signature(), None, "{broken}");
    }
}

#[test]
fn a_stable_shape_is_read_now_and_then() {
    let (shapes, tool) = learned(&[]);
    let mut read = 0;
    for _ in 0..10_000 {
        if let Some(seen) = tool.due() {
            seen.offer(&RawJson::of(&json!({"a": 1})));
            shapes.take_samples();
            shapes.read_samples(|it| Some(it.clone()));
            read += 1;
        }
    }
    assert!((10..=60).contains(&read), "{read}");
    // Text is not JSON, and is looked at rarely from the first result on.
    let tool = shapes.of(&"text".into());
    let mut read = 0;
    for _ in 0..1000 {
        if let Some(seen) = tool.due() {
            seen.offer(&RawJson::of(&json!({})));
            shapes.read_samples(|_| None);
            read += 1;
        }
    }
    assert_eq!(read, 4);
}

#[test]
fn a_call_without_a_result_leaves_its_place_to_the_next() {
    let (_, tool) = learned(&[]);
    let first = tool.due();
    assert!(first.is_some());
    assert!(
        tool.due().is_none(),
        "one of several calls in flight is read"
    );
    drop(first);
    let second = tool.due().expect("the first call had no result");
    second.offer(&RawJson::of(&json!({"a": 1})));
    assert!(tool.due().is_none(), "a result waits to be read");
}
