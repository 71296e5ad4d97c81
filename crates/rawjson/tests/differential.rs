//! A short run of `examples/differential.rs`.

mod readers;

use bytes::Bytes;
use readers::mutate::{Numbers, compare, mutated};

#[test]
fn all_readers_agree_on_mutated_texts() {
    let mut numbers = Numbers::new(1);
    let mut text = Vec::new();
    let mut accepted = 0;
    for _ in 0..20_000 {
        mutated(&mut numbers, &mut text);
        accepted += usize::from(compare(&Bytes::copy_from_slice(&text)));
    }
    // Mutations must leave enough texts that are JSON, and break enough.
    assert!((4_000..16_000).contains(&accepted), "{accepted}");
}
