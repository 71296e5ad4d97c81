//! Recognizes spelling mistakes in the words of a query.

/// Returns whether two words differ by one slip: a letter added, left out, replaced, or swapped with its neighbour.
/// The first letter must match: it is nearly always right, and cheap to compare.
pub(crate) fn is_one_slip_away(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > 1 || a.first() != b.first() || a == b {
        return false;
    }
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    let end = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    match (a, b) {
        // Two letters on both sides are one slip only if they are swapped.
        ([first, second], [third, fourth]) => first == fourth && second == third,
        _ => a.len() <= 1 && b.len() <= 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_distinguished_from_two() {
        for word in ["wether", "weathers", "wheather", "weahter", "weatxer"] {
            assert!(is_one_slip_away(word, "weather"), "{word}");
        }
        for word in ["weather", "eather", "wether s", "waether x", "wxxther", ""] {
            assert!(!is_one_slip_away(word, "weather"), "{word}");
        }
    }
}
