use pretty_assertions::assert_eq;

use super::*;

fn described(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    description(&names)
}

fn numbered(count: usize, name: &str) -> Vec<String> {
    (0..count).map(|number| format!("{name}{number}")).collect()
}

#[test]
fn the_description_of_any_number_of_toolboxes_fits_every_client() {
    assert_eq!(described(&[]), format!("{DESCRIPTION}none is configured."));
    assert_eq!(described(&numbered(1, "t")), format!("{DESCRIPTION}t0."));
    let whole = described(&numbered(50, "toolbox"));
    assert!(whole.ends_with("toolbox48, toolbox49."), "{whole}");
    let long = "a-toolbox-with-a-very-long-name-that-says-it-all-";
    let wide = "😀".repeat(16);
    for (count, name) in [(1000, "t"), (1000, long), (60, &wide)] {
        let text = described(&numbered(count, name));
        // As full as it can be with one more name of these.
        let room = size(name) + 5;
        assert!(
            (2001 - room..=2000).contains(&size(&text)),
            "{}",
            size(&text)
        );
        let (shown, left_out) = text.rsplit_once(", … and ").unwrap();
        let shown = shown.strip_prefix(DESCRIPTION).unwrap().split(", ").count();
        assert_eq!(left_out, format!("{} more.", count - shown));
    }
}

#[test]
fn a_name_that_cannot_fit_is_only_counted() {
    let names = ["n".repeat(3000), "other".to_owned()];
    assert_eq!(described(&names), format!("{DESCRIPTION}… and 2 more."));
}
