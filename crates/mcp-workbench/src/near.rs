//! Suggestions for misspelled names: keys of the configuration, toolboxes, servers and tools. The search is
//! conservative, because a wrong suggestion is worse than none.

/// Longer names are compared only without case and separators.
const MAX_COMPARED: usize = 128;

/// Returns the candidate that `name` is probably a misspelling of, if one is near enough. Of equally near ones it
/// returns the first, and never a candidate that equals `name`.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    nearest_few(name, candidates, 1).first().copied()
}

/// Returns the candidates that `name` is probably a misspelling of, the nearest first, at most `limit` of them.
pub(crate) fn nearest_few<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let wanted = FoldedName::of(name);
    let candidates = candidates.filter(|candidate| *candidate != name);
    let mut near: Vec<(usize, &'a str)> = candidates
        .filter_map(|it| Some((wanted.distance(&FoldedName::of(it))?, it)))
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(limit);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A name without the parts that people get wrong most easily: case and separators.
struct FoldedName(Vec<char>);

impl FoldedName {
    fn of(name: &str) -> Self {
        let letters = name
            .chars()
            .filter(|letter| !matches!(letter, '_' | '-' | ' ' | '.' | '/'));
        Self(letters.flat_map(char::to_lowercase).collect())
    }

    /// Returns the number of slips between two names, or `None` if there are too many for a misspelling.
    fn distance(&self, other: &Self) -> Option<usize> {
        let (a, b) = (&self.0, &other.0);
        if a.is_empty() || b.is_empty() {
            return None;
        }
        if a == b {
            return Some(0);
        }
        let allowed = match a.len().min(b.len()) {
            // Nearly every name of two letters is one slip away from another.
            0..=2 => 0,
            3..=5 => 1,
            6..=11 => 2,
            12..=MAX_COMPARED => 3,
            _ => 0,
        };
        // A slip changes the length by one at most.
        if a.len().abs_diff(b.len()) > allowed {
            return None;
        }
        let distance = slips(a, b);
        (distance <= allowed).then_some(distance)
    }
}

/// Returns the optimal string alignment distance: letters added, left out, replaced, or swapped with their neighbour.
fn slips(a: &[char], b: &[char]) -> usize {
    // Three rows of the table are enough, since a swap looks two rows back.
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &to) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(from != to);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let known = ["toolboxes", "toolMode", "mcpServers", "read_file", "env"];
        let cases = [
            ("toolboxs", Some("toolboxes")),
            ("tolboxes", Some("toolboxes")),
            ("toolbxoes", Some("toolboxes")),
            ("toolmode", Some("toolMode")),
            ("tool_mode", Some("toolMode")),
            ("mcpservers", Some("mcpServers")),
            ("MCPServer", Some("mcpServers")),
            ("readFile", Some("read_file")),
            ("read_fil", Some("read_file")),
            ("enb", Some("env")),
            ("servers", None),
            ("toolboxes", None),
            ("en", None),
            ("x", None),
            ("", None),
            ("___", None),
            ("completely different", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
    }

    #[test]
    fn the_nearest_wins_and_then_the_first() {
        assert_eq!(
            nearest("reader_a", ["reader_ab", "Reader_A"].into_iter()),
            Some("Reader_A")
        );
        assert_eq!(
            nearest("reader_a", ["reader_b", "reader_c"].into_iter()),
            Some("reader_b")
        );
    }

    #[test]
    fn the_nearest_few_are_in_order() {
        let known = ["list_pulls", "list_issue", "listissues", "get_issue"];
        assert_eq!(
            nearest_few("list_isues", known.into_iter(), 2),
            ["listissues", "list_issue"]
        );
        assert_eq!(nearest_few("x", known.into_iter(), 2), [""; 0]);
    }

    #[test]
    fn very_long_names_are_not_compared() {
        let long = "x".repeat(100_000);
        let other = format!("{long}y");
        assert_eq!(nearest(&long, std::iter::once(other.as_str())), None);
    }
}
