//! Line differences of two texts in the format of `diff -u`.

use std::{fmt::Write, path::Path};

use crate::visible::visible;

/// The number of unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// The largest product of line counts that is compared line by line; larger texts are shown as removed and added.
const MAX_COMPARED: usize = 4_000_000;

/// A line with its role in the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffLine<'t> {
    Unchanged(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// Returns the difference of a file before and after; empty if there is none.
pub(in crate::cli) fn unified(file: &Path, before: &str, after: &str) -> String {
    let lines = compare(&split(before), &split(after));
    let hunks = hunks(&lines);
    if hunks.is_empty() {
        return String::new();
    }
    let old = if before.is_empty() {
        Path::new("/dev/null")
    } else {
        file
    };
    let mut text = format!("--- {}\n+++ {}\n", old.display(), file.display());
    for hunk in hunks {
        write_hunk(&mut text, &lines, hunk);
    }
    text
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns all lines in order, each with its role.
fn compare<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<DiffLine<'t>> {
    // Equal lines at both ends are skipped, so that the quadratic comparison sees only the part that changed.
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = before.iter().zip(after).take_while(same).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(same)
        .count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let unchanged = |lines: &[&'t str]| {
        lines
            .iter()
            .map(|line| DiffLine::Unchanged(line))
            .collect::<Vec<_>>()
    };
    let mut lines = unchanged(&before[..head]);
    lines.extend(changed(old, new));
    lines.extend(unchanged(&before[before.len() - tail..]));
    lines
}

/// Returns the shortest sequence of changes from the old to the new lines.
fn changed<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<DiffLine<'t>> {
    if old.len().saturating_mul(new.len()) > MAX_COMPARED {
        let removed = old.iter().map(|line| DiffLine::Removed(line));
        return removed
            .chain(new.iter().map(|line| DiffLine::Added(line)))
            .collect();
    }
    let common = common_lengths(old, new);
    let (mut a, mut b) = (0, 0);
    let mut lines = Vec::new();
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            lines.push(DiffLine::Unchanged(old[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == new.len() || (a < old.len() && common[a + 1][b] >= common[a][b + 1]) {
            // Of two ways of the same length, the one that removes first is shown, as by `diff -u`.
            lines.push(DiffLine::Removed(old[a]));
            a += 1;
        } else {
            lines.push(DiffLine::Added(new[b]));
            b += 1;
        }
    }
    lines
}

/// Returns, for each pair of positions, the length of the longest common subsequence of the remaining lines.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<Vec<usize>> {
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a][b] = if old[a] == new[b] {
                common[a + 1][b + 1] + 1
            } else {
                common[a + 1][b].max(common[a][b + 1])
            };
        }
    }
    common
}

/// Returns the ranges to show: changes with their context.
fn hunks(lines: &[DiffLine<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if matches!(line, DiffLine::Unchanged(_)) {
            continue;
        }
        let (start, end) = (
            at.saturating_sub(CONTEXT),
            (at + 1 + CONTEXT).min(lines.len()),
        );
        match hunks.last_mut() {
            // Contexts that overlap or touch make one hunk.
            Some(last) if start <= last.end => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

fn write_hunk(text: &mut String, lines: &[DiffLine<'_>], hunk: std::ops::Range<usize>) {
    let old = |lines: &[DiffLine<'_>]| {
        lines
            .iter()
            .filter(|it| !matches!(it, DiffLine::Added(_)))
            .count()
    };
    let new = |lines: &[DiffLine<'_>]| {
        lines
            .iter()
            .filter(|it| !matches!(it, DiffLine::Removed(_)))
            .count()
    };
    let (before, shown) = (&lines[..hunk.start], &lines[hunk]);
    let side = |skipped: usize, count: usize| {
        // An empty side counts from 0, as `diff -u` does.
        let first = skipped + usize::from(count > 0);
        format!("{first},{count}")
    };
    let old_side = side(old(before), old(shown));
    let new_side = side(new(before), new(shown));
    let _ = writeln!(text, "@@ -{old_side} +{new_side} @@");
    for line in shown {
        let (mark, line) = match line {
            DiffLine::Unchanged(line) => (' ', line),
            DiffLine::Removed(line) => ('-', line),
            DiffLine::Added(line) => ('+', line),
        };
        let _ = writeln!(text, "{mark}{}", shown_line(line));
        if !line.ends_with('\n') {
            text.push_str("\\ No newline at end of file\n");
        }
    }
}

/// Makes a line visible for a terminal, without its line break; tabs stay.
fn shown_line(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    let parts: Vec<_> = line.split('\t').map(visible).collect();
    parts.join("\t")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn changes_are_shown_with_context() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n\t\u{1b}[0m12";
        assert_eq!(
            unified(Path::new("a.json"), before, after),
            "--- a.json\n+++ a.json\n@@ -2,11 +2,11 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n 10\n \
             11\n-12\n+\t⟦U+001B⟧[0m12\n\\ No newline at end of file\n"
        );
        assert_eq!(unified(Path::new("a.json"), before, before), "");
    }

    #[test]
    fn far_changes_are_shown_apart() {
        let numbers: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let before = numbers.join("\r\n");
        let after = before
            .replace("2\r\n3", "2\r\nnew\r\n3")
            .replace("15\r\n", "");
        let shown = unified(Path::new("a.json"), &before, &after);
        let heads: Vec<&str> = shown.lines().filter(|it| it.starts_with("@@")).collect();
        assert_eq!(heads, ["@@ -1,6 +1,7 @@", "@@ -13,7 +14,6 @@"]);
        assert!(
            shown.contains("\n+new\n") && shown.contains("\n-15\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_new_file_is_all_new() {
        assert_eq!(
            unified(Path::new("a.json"), "", "{\n}\n"),
            "--- /dev/null\n+++ a.json\n@@ -0,0 +1,2 @@\n+{\n+}\n"
        );
    }
}
