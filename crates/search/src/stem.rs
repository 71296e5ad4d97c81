//! Stemming of English words by the Porter2 algorithm: "run" finds "running" and "runs".

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Returns the stem of a word.
pub(crate) fn stemmed(word: &str) -> String {
    let mut word = word.to_owned();
    stem(&mut word);
    word
}

/// Replaces a lower-case ASCII word with its stem; leaves any other word unchanged.
pub(crate) fn stem(word: &mut String) {
    if word.len() <= 2 || !word.bytes().all(|letter| letter.is_ascii_lowercase()) {
        return;
    }
    if let Some(stem) = exception(word) {
        stem.clone_into(word);
        return;
    }
    let mut letters = Letters::new(std::mem::take(word));
    letters.remove_plural();
    // The algorithm ends here for these words.
    if !matches!(
        letters.text.as_slice(),
        b"inning"
            | b"outing"
            | b"canning"
            | b"herring"
            | b"earring"
            | b"proceed"
            | b"exceed"
            | b"succeed"
    ) {
        letters.remove_past();
        letters.change_y();
        letters.shorten_suffix();
        letters.remove_derivation();
        letters.remove_suffix();
        letters.remove_final();
    }
    letters.text.make_ascii_lowercase();
    *word = String::from_utf8(letters.text).expect("it was ASCII before");
}

/// Returns the stem of a word for which the rules give a wrong one.
fn exception(word: &str) -> Option<&'static str> {
    Some(match word {
        "skis" => "ski",
        "skies" => "sky",
        "dying" => "die",
        "lying" => "lie",
        "tying" => "tie",
        "idly" => "idl",
        "gently" => "gentl",
        "ugly" => "ugli",
        "early" => "earli",
        "only" => "onli",
        "singly" => "singl",
        "news" => "news",
        // Abbreviations that end in s are not plurals.
        "sms" => "sms",
        "dns" => "dns",
        "aws" => "aws",
        "gps" => "gps",
        "css" => "css",
        "rss" => "rss",
        "os" => "os",
        "atlas" => "atlas",
        "bias" => "bias",
        "canvas" => "canvas",
        _ => return None,
    })
}

/// The suffixes of the third step with their replacements, longest first among those with the same ending.
const SHORTENED: &[(&str, &str)] = &[
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
    ("ogi", "og"),
    ("li", ""),
];

/// The suffixes of the fourth step with their replacements.
const DERIVED: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ative", ""),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];

/// The suffixes that are removed.
const REMOVED: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion", "al", "er", "ic",
];

/// A word while it is stemmed. `Y` marks a y that is a consonant.
struct Letters {
    text: Vec<u8>,
    /// The start of the region after the first consonant that follows a vowel (R1).
    first: usize,
    /// The start of the same region within R1 (R2).
    second: usize,
}

impl Letters {
    fn new(word: String) -> Self {
        let mut text = word.into_bytes();
        for at in 0..text.len() {
            if text[at] == b'y' && (at == 0 || is_vowel(text[at - 1])) {
                text[at] = b'Y';
            }
        }
        // With these beginnings the usual rule would give unrelated words one stem, such as "general" and "generate".
        let first = [
            "gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ", "inter",
        ]
        .iter()
        .find(|start| text.starts_with(start.as_bytes()))
        .map_or_else(|| region(&text, 0), |start| start.len());
        let second = region(&text, first);
        Self {
            text,
            first,
            second,
        }
    }

    fn ends(&self, suffix: &str) -> bool {
        // Comparing the last letter first rules out most words quickly.
        self.text.last() == suffix.as_bytes().last() && self.text.ends_with(suffix.as_bytes())
    }

    fn cut(&mut self, suffix: &str) {
        self.text.truncate(self.text.len() - suffix.len());
    }

    fn replace(&mut self, suffix: &str, with: &str) {
        self.cut(suffix);
        self.text.extend_from_slice(with.as_bytes());
    }

    /// Returns whether a suffix lies within the region that begins at `start`.
    fn lies_in(&self, suffix: &str, start: usize) -> bool {
        self.text.len() >= start + suffix.len()
    }

    /// Returns whether there is a vowel before `end`.
    fn has_vowel(&self, end: usize) -> bool {
        self.text[..end].iter().any(|letter| is_vowel(*letter))
    }

    /// Returns whether the word ends in a short syllable.
    fn ends_short(&self) -> bool {
        let text = &self.text;
        let end = text.len();
        if end == 2 {
            return is_vowel(text[0]) && !is_vowel(text[1]);
        }
        end > 2
            && !is_vowel(text[end - 3])
            && is_vowel(text[end - 2])
            && !is_vowel(text[end - 1])
            && !matches!(text[end - 1], b'w' | b'x' | b'Y')
    }

    fn is_short(&self) -> bool {
        self.first >= self.text.len() && self.ends_short()
    }

    fn remove_plural(&mut self) {
        if self.ends("sses") {
            self.cut("es");
        } else if self.ends("ied") || self.ends("ies") {
            let short = self.text.len() == 4;
            self.replace("ies", if short { "ie" } else { "i" });
        } else if self.ends("s") && !self.ends("us") && !self.ends("ss") {
            let end = self.text.len();
            if end > 2 && self.has_vowel(end - 2) {
                self.cut("s");
            }
        }
    }

    fn remove_past(&mut self) {
        for suffix in ["eedly", "eed"] {
            if self.ends(suffix) {
                if self.lies_in(suffix, self.first) {
                    self.replace(suffix, "ee");
                }
                return;
            }
        }
        let suffixes = ["ingly", "edly", "ing", "ed"];
        let Some(suffix) = suffixes.into_iter().find(|suffix| self.ends(suffix)) else {
            return;
        };
        if !self.has_vowel(self.text.len() - suffix.len()) {
            return;
        }
        self.cut(suffix);
        let doubled = ["bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"];
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.text.push(b'e');
        } else if doubled.iter().any(|pair| self.ends(pair)) {
            // "added" becomes "add", and "egging" becomes "egg".
            if !(self.text.len() == 3 && matches!(self.text[0], b'a' | b'e' | b'o')) {
                self.text.pop();
            }
        } else if self.is_short() {
            self.text.push(b'e');
        }
    }

    fn change_y(&mut self) {
        let end = self.text.len();
        if end > 2 && matches!(self.text[end - 1], b'y' | b'Y') && !is_vowel(self.text[end - 2]) {
            self.text[end - 1] = b'i';
        }
    }

    fn shorten_suffix(&mut self) {
        let found = SHORTENED.iter().find(|(suffix, _)| self.ends(suffix));
        let Some(&(suffix, with)) = found else { return };
        if !self.lies_in(suffix, self.first) {
            return;
        }
        let before = self.text[..self.text.len() - suffix.len()].last().copied();
        let allowed = match suffix {
            "ogi" => before == Some(b'l'),
            "li" => before.is_some_and(|letter| b"cdeghkmnrt".contains(&letter)),
            _ => true,
        };
        if allowed {
            self.replace(suffix, with);
        }
    }

    fn remove_derivation(&mut self) {
        let found = DERIVED.iter().find(|(suffix, _)| self.ends(suffix));
        let Some(&(suffix, with)) = found else { return };
        let region = if suffix == "ative" {
            self.second
        } else {
            self.first
        };
        if self.lies_in(suffix, region) {
            self.replace(suffix, with);
        }
    }

    fn remove_suffix(&mut self) {
        let Some(suffix) = REMOVED.iter().find(|suffix| self.ends(suffix)) else {
            return;
        };
        if !self.lies_in(suffix, self.second) {
            return;
        }
        let before = self.text[..self.text.len() - suffix.len()].last();
        if *suffix != "ion" || matches!(before, Some(b's' | b't')) {
            self.cut(suffix);
        }
    }

    fn remove_final(&mut self) {
        if self.ends("e") {
            let second = self.lies_in("e", self.second);
            let first = self.lies_in("e", self.first);
            self.text.pop();
            if !second && (!first || self.ends_short()) {
                self.text.push(b'e');
            }
        } else if self.ends("ll") && self.lies_in("l", self.second) {
            self.text.pop();
        }
    }
}

/// Returns the start of the region after the first consonant that follows a vowel, searching from `start`.
fn region(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < text.len() && !is_vowel(text[at]) {
        at += 1;
    }
    while at < text.len() && is_vowel(text[at]) {
        at += 1;
    }
    (at + 1).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_family_have_one_stem() {
        let cases = [
            ("running", "run"),
            ("runs", "run"),
            ("repositories", "repositori"),
            ("repository", "repositori"),
            ("deleted", "delet"),
            ("deleting", "delet"),
            ("delete", "delet"),
            ("searches", "search"),
            ("generation", "generat"),
            ("generate", "generat"),
            ("translations", "translat"),
            ("quickly", "quick"),
            ("cries", "cri"),
            ("ties", "tie"),
            ("hopping", "hop"),
            ("hoping", "hope"),
            ("added", "add"),
            ("university", "universiti"),
            ("news", "news"),
            ("proceed", "proceed"),
            ("exceeding", "exceed"),
            ("usefulness", "use"),
            ("by", "by"),
            ("café", "café"),
        ];
        for (word, expected) in cases {
            let mut word = word.to_owned();
            stem(&mut word);
            assert_eq!(word, expected);
        }
    }
}
