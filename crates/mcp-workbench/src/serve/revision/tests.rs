use super::*;

#[test]
fn an_unknown_revision_is_answered_with_the_newest() {
    let cases = [
        ("2024-11-05", "2024-11-05", false),
        ("2025-03-26", "2025-03-26", true),
        ("2025-06-18", "2025-06-18", false),
        ("2025-11-25", "2025-11-25", false),
        ("2024-10-07", "2025-11-25", false),
        ("2099-01-01", "2025-11-25", false),
        ("2025-03-26 ", "2025-11-25", false),
        ("", "2025-11-25", false),
    ];
    for (wanted, spoken, has_batches) in cases {
        let revision = Revision::negotiate(wanted);
        assert_eq!(
            (revision.name(), revision.has_batches()),
            (spoken, has_batches),
            "{wanted}"
        );
    }
}

#[test]
fn later_revisions_are_greater() {
    let names = Revision::ALL.map(Revision::name);
    assert!(names.is_sorted() && Revision::ALL.is_sorted());
}
