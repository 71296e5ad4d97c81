//! Bars of a chart, drawn to an eighth of a character.

/// The parts of a character, from one eighth to seven.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Draws a bar for `value`, where `largest` fills `width` characters. A value above zero is never drawn empty.
pub(in crate::cli) fn bar(value: usize, largest: usize, width: usize) -> String {
    if value == 0 || largest == 0 {
        return String::new();
    }
    let eighths = (value.saturating_mul(width * 8) / largest).clamp(1, width * 8);
    let mut text = "█".repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1) {
        text.push(EIGHTHS[part]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_their_values() {
        assert_eq!(bar(10, 10, 4), "████");
        assert_eq!(bar(5, 10, 4), "██");
        assert_eq!(bar(3, 8, 1), "▍");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(0, 0, 4), "");
        assert_eq!(bar(20, 10, 4), "████");
    }
}
