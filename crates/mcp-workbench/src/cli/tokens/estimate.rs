//! Estimates the number of tokens of a text. A real tokenizer brings megabytes of vocabulary, and every model has
//! its own. This splits a text as the tokenizer `o200k_base` does, and gives each piece the mean cost of pieces
//! of its kind.
//!
//! The means were taken over the definitions of 209 tools of 16 published servers. The estimate for each of these
//! is within 5 % of the real count, and within 1 % for all together; for servers outside the sample it was within
//! 3 %. Tests compare it with recorded counts: the one below, and `tests/real/tokens.rs` with published servers.
//! `scripts/count-tokens` counts with a real tokenizer.

/// Costs are in hundredths of a token.
const TOKEN: usize = 100;

/// Cost of a word of lower-case letters, perhaps capitalized, alone or after a space, by its length from 1 on.
const PLAIN_WORD: [usize; 15] = [
    100, 100, 101, 100, 101, 102, 103, 107, 120, 108, 110, 139, 120, 145, 170,
];

/// Cost of the same after a quote, a dash or another sign that belongs to the piece.
const LED_WORD: [usize; 12] = [100, 100, 104, 116, 160, 111, 126, 173, 184, 152, 200, 240];

/// Cost of a word of capitals, by its length from 1 on.
const CAPITALS: [usize; 7] = [100, 103, 113, 108, 120, 140, 190];

/// Cost of a run of signs such as `":{"`, by its length from 1 on.
const SIGNS: [usize; 8] = [100, 100, 101, 128, 207, 277, 357, 418];

/// Cost of each character beyond the tables.
const FURTHER_LETTER: usize = 25;
const FURTHER_SIGN: usize = 50;

/// Costs of a letter of another alphabet, a letter of a script without spaces, and a sign beyond ASCII.
const FOREIGN_LETTER: usize = 30;
const IDEOGRAPH: usize = 70;
const FOREIGN_SIGN: usize = 75;

/// The first character of scripts without spaces between words, or with syllables for letters.
const FIRST_IDEOGRAPH: char = '\u{2E80}';

/// The number of digits in one token.
const DIGITS: usize = 3;

/// Estimates the number of tokens of a text.
pub(in crate::cli) fn tokens(text: &str) -> usize {
    let characters: Vec<char> = text.chars().collect();
    let mut rest = &characters[..];
    let mut cost = 0;
    while !rest.is_empty() {
        let (length, part) = next_piece(rest);
        cost += part;
        rest = &rest[length..];
    }
    // Rounded to the nearest token.
    (cost + TOKEN / 2) / TOKEN
}

/// Returns the length and the cost of the next piece.
fn next_piece(text: &[char]) -> (usize, usize) {
    let first = text[0];
    // The tokenizer takes one sign in front of a word, such as a space or quote, as part of it.
    let is_led = !first.is_alphanumeric()
        && !matches!(first, '\r' | '\n')
        && text.get(1).is_some_and(|it| it.is_alphabetic());
    if is_led || first.is_alphabetic() {
        let lead = usize::from(is_led);
        let word = word_length(&text[lead..]);
        return (
            lead + word,
            word_cost(&text[lead..lead + word], is_led && first != ' '),
        );
    }
    if first.is_numeric() {
        let digits = text.iter().take(DIGITS);
        return (digits.take_while(|it| it.is_numeric()).count(), TOKEN);
    }
    let is_sign = |it: &char| !it.is_whitespace() && !it.is_alphanumeric();
    // A space in front of signs belongs to them, and so do the line breaks and slashes behind them.
    let lead = usize::from(first == ' ' && text.get(1).is_some_and(is_sign));
    if is_sign(&text[lead]) {
        let signs = text[lead..].iter().take_while(|it| is_sign(it)).count();
        let tail = text[lead + signs..]
            .iter()
            .take_while(|it| matches!(it, '\r' | '\n' | '/'))
            .count();
        let length = lead + signs + tail;
        return (length, sign_cost(&text[..length]));
    }
    let spaces = text.iter().take_while(|it| it.is_whitespace()).count();
    (spaces, TOKEN)
}

/// Returns the length of a word: capitals and the lower-case letters after them. `inputSchema` is two words.
fn word_length(text: &[char]) -> usize {
    let capitals = text.iter().take_while(|it| it.is_uppercase()).count();
    let small = text[capitals..].iter();
    capitals
        + small
            .take_while(|it| it.is_alphabetic() && !it.is_uppercase())
            .count()
}

fn word_cost(word: &[char], is_led: bool) -> usize {
    if !word.iter().all(char::is_ascii) {
        let letters = word.iter().map(|letter| {
            if *letter >= FIRST_IDEOGRAPH {
                IDEOGRAPH
            } else {
                FOREIGN_LETTER
            }
        });
        return letters.sum::<usize>().max(TOKEN);
    }
    let table: &[usize] = if word.len() > 1 && word.iter().all(|it| it.is_uppercase()) {
        &CAPITALS
    } else if is_led {
        &LED_WORD
    } else {
        &PLAIN_WORD
    };
    by_length(table, word.len(), FURTHER_LETTER)
}

fn sign_cost(signs: &[char]) -> usize {
    let foreign = signs.iter().filter(|it| !it.is_ascii()).count();
    if foreign > 0 {
        let plain = signs.len() - foreign;
        return (foreign * FOREIGN_SIGN + plain * FURTHER_SIGN).max(TOKEN);
    }
    by_length(&SIGNS, signs.len(), FURTHER_SIGN)
}

/// Returns the entry of a table for a length; beyond its end, each further character costs `further`.
fn by_length(table: &[usize], length: usize, further: usize) -> usize {
    let within = length.min(table.len());
    table[within - 1] + (length - within) * further
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Definitions of small servers. Those of published servers are in `tests/real/tokens.rs`.
    #[test]
    fn definitions_are_counted_within_five_percent() {
        let cases = [
            (
                r#"{"name":"convert","description":"Convert a time to another offset from UTC. Fractions of a second are dropped.","inputSchema":{"type":"object","properties":{"time":{"type":"string","description":"Time with its offset, such as 2026-02-28T14:30:00+02:00 or 2026-02-28T12:30Z"},"offset":{"type":"string","description":"Offset to convert to, such as -05:30, or Z for UTC"}},"required":["time","offset"],"additionalProperties":false}}"#,
                118,
            ),
            (
                r#"{"name":"evaluate","description":"Calculate the value of an arithmetic expression with + - * / ^ (power), parentheses, minus signs and decimal numbers, in double precision.","inputSchema":{"type":"object","properties":{"expression":{"type":"string","description":"Expression, such as (2 + 3) * 4 ^ 0.5","minLength":1,"maxLength":1000}},"required":["expression"],"additionalProperties":false}}"#,
                93,
            ),
            (
                r#"{"name":"search","description":"Return the notes that contain a text, in upper or lower case, the oldest first.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"Text to style for","minLength":1}},"required":["query"],"additionalProperties":false}}"#,
                63,
            ),
        ];
        for (definition, real) in cases {
            let estimated = tokens(definition);
            assert!(
                estimated.abs_diff(real) * 20 <= real,
                "{estimated} for {real}: {definition}"
            );
        }
    }

    #[test]
    fn estimates_of_other_texts_are_close() {
        let cases = [
            ("", 0),
            ("hello world", 2),
            (
                "Öffnet eine Datei und gibt ihren Inhalt zurück. Größere Dateien werden über mehrere Aufrufe gelesen, überflüssige Leerzeichen bleiben erhalten.",
                32,
            ),
            (
                "Читает содержимое файла из файловой системы. Большие файлы читаются по частям, каталоги не обрабатываются.",
                28,
            ),
            (
                "读取文件系统中的文件内容。大型文件会分段读取,目录将被忽略。请提供完整路径。",
                25,
            ),
            (
                "NODE_ENV GITHUB_PERSONAL_ACCESS_TOKEN IMPORTANT: NEVER USE THIS FOR PRODUCTION",
                16,
            ),
            (
                "✅ Use this 🚀 for fast → slow … “quotes” — dashes ⚠️ warnings",
                20,
            ),
        ];
        for (text, real) in cases {
            let estimated = tokens(text);
            assert!(
                estimated.abs_diff(real) * 4 <= real,
                "{estimated} for {real}: {text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_count(text in "\\PC{0,60}|[a-z{}\":, \r\n]{0,60}") {
            prop_assert!(tokens(&text) <= text.len() + 1);
        }
    }
}
