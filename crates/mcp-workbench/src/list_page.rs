//! Pages of the lists that clients get. The definitions of all servers together can be larger than a message may be.

use rawjson::{Kind, ObjectText, RawJson};
use thiserror::Error;

/// The size of the items of a page. It leaves room for the rest of a message, which may have 16 MiB.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// A cursor that was not given out, or that the list has become too short for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cursor: unknown")]
pub(crate) struct UnknownCursor;

/// Returns the page that a request for a list asks for, with the items under `key`: the first page, or the one of a
/// cursor. A cursor is the number of items before its page.
pub(crate) fn page(
    params: Option<&RawJson>,
    key: &str,
    items: &[RawJson],
) -> Result<RawJson, UnknownCursor> {
    let rest = &items[start(params, items.len())?..];
    let mut size = 0;
    let fitting = rest.iter().take_while(|item| {
        size += item.as_bytes().len();
        size <= MAX_PAGE_BYTES
    });
    // An item that is larger than a page has a page of its own.
    let count = fitting.count().max(1).min(rest.len());
    let (shown, later) = rest.split_at(count);
    // Written once, into memory of the right size: a page may have megabytes.
    let bytes = shown.iter().map(|item| item.as_bytes().len() + 1).sum();
    let page = ObjectText::with_room(bytes).array(key, shown);
    Ok(if later.is_empty() {
        page.finish()
    } else {
        let next = items.len() - later.len();
        page.member("nextCursor", &next.to_string()).finish()
    })
}

fn start(params: Option<&RawJson>, length: usize) -> Result<usize, UnknownCursor> {
    let cursor = params.and_then(|params| params.member("cursor"));
    let Some(cursor) = cursor.filter(|cursor| cursor.kind() != Kind::Null) else {
        return Ok(0);
    };
    let start = cursor.as_text().and_then(|text| text.parse().ok());
    // No page has the cursor 0 or the length of the list.
    start
        .filter(|start| (1..length).contains(start))
        .ok_or(UnknownCursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(cursor: &str) -> RawJson {
        RawJson::of(&serde_json::json!({ "cursor": cursor }))
    }

    #[test]
    fn a_small_list_has_one_page() {
        let items = [RawJson::of(&1), RawJson::of(&2)];
        let all = page(None, "tools", &items).unwrap();
        assert_eq!(all.as_str(), r#"{"tools":[1,2]}"#);
        assert_eq!(
            page(None, "tools", &[]).unwrap().as_str(),
            r#"{"tools":[]}"#
        );
        let null = RawJson::of(&serde_json::json!({ "cursor": null }));
        assert_eq!(page(Some(&null), "tools", &items).unwrap(), all);
    }

    #[test]
    fn the_pages_of_a_large_list_have_all_its_items_in_order() {
        let sizes = [3, 4, 2, 9, 1, 1];
        let items = sizes.map(|mib| RawJson::of(&"x".repeat(mib << 20)));
        let (mut cursor, mut counts) = (None, Vec::new());
        loop {
            let page = page(cursor.as_ref(), "tools", &items).unwrap();
            counts.push(page.member("tools").unwrap().elements().unwrap().len());
            let Some(next) = page.member("nextCursor") else {
                break;
            };
            cursor = Some(params(&next.as_text().unwrap()));
        }
        assert_eq!(counts, [2, 1, 1, 2]);
    }

    #[test]
    fn a_cursor_that_was_not_given_out_is_refused() {
        let items = [RawJson::of(&1), RawJson::of(&2)];
        for cursor in ["", "x", "-1", "0", "2", "99999999999999999999"] {
            let page = page(Some(&params(cursor)), "tools", &items);
            assert_eq!(page, Err(UnknownCursor), "{cursor:?}");
        }
        let number = RawJson::of(&serde_json::json!({ "cursor": 1 }));
        assert_eq!(page(Some(&number), "tools", &items), Err(UnknownCursor));
    }
}
