use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::{
    budget::{Cut, Structured},
    call::{ClientId, Principal},
};

const BUDGET: usize = 100;
const OWNER: Owner = Owner::Principal(Principal::Local);

fn results(results: usize, bytes: usize) -> Results {
    Results {
        least_budget: AtomicUsize::new(BUDGET),
        store: Mutex::default(),
        bounds: Bounds {
            results,
            bytes,
            age: MAX_AGE,
        },
        is_watched: AtomicBool::new(false),
    }
}

fn result(letter: char, length: usize) -> RawJson {
    let text = letter.to_string().repeat(length);
    RawJson::of(&json!({ "content": [{ "type": "text", "text": text }] }))
}

fn store_result(results: &Results, owner: Owner, result: &RawJson) -> Option<Address> {
    let cut = Cut::of(result, BUDGET, Structured::MayGo).expect("over the budget");
    let stored = results.store_result(WholeResult {
        owner,
        json: result,
        text: cut.text(),
        text_pages: cut.pages(BUDGET),
        page_size: BUDGET,
    })?;
    Some(Address::first(&stored.id, View::Text))
}

/// Returns for each result whether it is still stored.
fn there<const N: usize>(results: &Results, addresses: [&Address; N]) -> [bool; N] {
    addresses.map(|address| results.find(address, OWNER).is_ok())
}

#[tokio::test(start_paused = true)]
async fn pages_joined_are_the_text_and_the_result() {
    let results = results(10, 100_000);
    let result = result('ü', 1000);
    let address = store_result(&results, OWNER, &result).unwrap();
    let stored = results.find(&address, OWNER).unwrap();
    let all = |view| -> String {
        (1..=stored.pages(view))
            .map(|page| stored.page(view, page).unwrap())
            .collect()
    };
    assert_eq!(all(View::Text), "ü".repeat(1000));
    assert_eq!(all(View::Json), result.as_str());
    let pages = stored.pages(View::Text);
    for page in [0, pages + 1] {
        let refused = stored.page(View::Text, page);
        assert_eq!(refused, Err(PageError::Unknown { pages }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_can_be_read_only_by_its_owner() {
    let results = results(10, 100_000);
    let owners = [
        OWNER,
        Owner::Principal(Principal::Anybody),
        Owner::Principal(Principal::Holder(1)),
        Owner::Principal(Principal::Holder(2)),
        Owner::Session(ClientId(1)),
        Owner::Session(ClientId(2)),
    ];
    for owner in owners {
        let address = store_result(&results, owner, &result('x', 200)).unwrap();
        for other in owners {
            let found = results.find(&address, other);
            assert_eq!(found.is_ok(), other == owner, "{owner:?} {other:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_oldest_results_are_removed_if_there_are_too_many() {
    let results = results(2, 100_000);
    let store_result = |letter| store_result(&results, OWNER, &result(letter, 200)).unwrap();
    let (a, b) = (store_result('a'), store_result('b'));
    assert_eq!(there(&results, [&a, &b]), [true, true]);
    // The same once more is the newest.
    assert_eq!(store_result('a'), a);
    let c = store_result('c');
    assert_eq!(there(&results, [&a, &b, &c]), [true, false, true]);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_results_are_removed_if_they_are_too_large() {
    let results = results(10, 5000);
    let store_result = |letter, length| store_result(&results, OWNER, &result(letter, length));
    let (a, b) = (
        store_result('a', 1000).unwrap(),
        store_result('b', 1000).unwrap(),
    );
    let c = store_result('c', 1000).unwrap();
    assert_eq!(there(&results, [&a, &b, &c]), [false, true, true]);
    // One that is too large by itself is not kept, and takes nothing from the others.
    assert_eq!(store_result('d', 5000), None);
    assert_eq!(there(&results, [&b, &c]), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_result_expires() {
    let results = results(10, 100_000);
    let store_result = |letter| store_result(&results, OWNER, &result(letter, 200)).unwrap();
    let a = store_result('a');
    tokio::time::advance(MAX_AGE / 2).await;
    let b = store_result('b');
    tokio::time::advance(MAX_AGE / 2).await;
    assert_eq!(there(&results, [&a, &b]), [false, true]);
    assert_eq!(results.find(&a, OWNER), Err(PageError::Gone));
    let next = Instant::now() + MAX_AGE / 2;
    assert_eq!(results.remove_expired(), Some(next));
    tokio::time::advance(MAX_AGE / 2).await;
    assert_eq!(results.remove_expired(), None);
    assert_eq!(results.store().bytes, 0);
}
