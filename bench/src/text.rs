//! The texts that results are made of: what tools return, from source code to base64.

use clap::ValueEnum;
use serde::Deserialize;

/// The kind of text of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Text {
    /// Lines of one letter.
    #[default]
    Smooth,
    /// The same without line ends.
    Line,
    /// Source code in Rust.
    Rust,
    /// Source code in Python.
    Python,
    /// Changes as `git diff` shows them.
    Diff,
    /// Log lines with quotes, paths with backslashes and an accented letter.
    Log,
    /// JSON inside of the string.
    Json,
    /// German prose.
    German,
    /// Japanese prose.
    Japanese,
    /// Chat messages with emoji.
    Emoji,
    /// Bytes in base64.
    Base64,
}

impl Text {
    /// All kinds, in the order in which they are reported.
    pub const ALL: [Self; 11] = [
        Self::Smooth,
        Self::Line,
        Self::Rust,
        Self::Python,
        Self::Diff,
        Self::Log,
        Self::Json,
        Self::German,
        Self::Japanese,
        Self::Emoji,
        Self::Base64,
    ];

    /// The name in calls and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::Line => "line",
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Diff => "diff",
            Self::Log => "log",
            Self::Json => "json",
            Self::German => "german",
            Self::Japanese => "japanese",
            Self::Emoji => "emoji",
            Self::Base64 => "base64",
        }
    }

    /// Returns JSON text of a string with at least so many bytes, without its quotes.
    pub fn in_json(self, bytes: usize) -> String {
        let sample = serde_json::Value::from(self.sample()).to_string();
        let sample = &sample[1..sample.len() - 1];
        sample.repeat(bytes.div_ceil(sample.len()))
    }

    /// A piece of such a text, a few kilobytes long where lines differ from each other.
    fn sample(self) -> String {
        match self {
            Self::Smooth => "x".repeat(78) + "\n",
            Self::Line => "x".repeat(80),
            Self::Rust => include_str!("session.rs").to_owned(),
            Self::Python => PYTHON.to_owned(),
            Self::Diff => DIFF.to_owned(),
            Self::Log => (0..64).map(log_line).collect(),
            Self::Json => (0..32).map(record).collect(),
            Self::German => GERMAN.to_owned(),
            Self::Japanese => JAPANESE.to_owned(),
            Self::Emoji => EMOJI.to_owned(),
            Self::Base64 => base64(6 * 1024),
        }
    }
}

fn log_line(number: usize) -> String {
    let (second, port) = (number % 60, 40_000 + number * 37);
    format!(
        "2026-11-16T09:31:{second:02}.{:03}Z INFO café-service: request=\"GET /v1/items/{number}?q=\\\"new\\\"\" \
         file=\"C:\\\\data\\\\items\\\\{number}.json\" peer=10.0.3.7:{port} status=200\n",
        number * 13 % 1000
    )
}

fn record(number: usize) -> String {
    let record = serde_json::json!({
        "id": number,
        "name": format!("item {number}"),
        "tags": ["new", "\"quoted\"", "a\\b"],
        "owner": {"mail": format!("user{number}@example.org"), "active": number.is_multiple_of(3)},
        "note": "first line\nsecond line",
    });
    format!("{record}\n")
}

/// Letters of base64 without a pattern.
fn base64(length: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[(state >> 58) as usize])
    });
    letters.take(length).collect()
}

const PYTHON: &str = r##"
class Inventory:
    """Counts what is in stock, by name."""

    def __init__(self, path: str = "stock.json") -> None:
        self.path = path
        self.counts: dict[str, int] = {}

    def load(self) -> "Inventory":
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                name, _, count = line.rstrip("\n").partition("\t")
                if not name or name.startswith("#"):
                    continue
                self.counts[name] = self.counts.get(name, 0) + int(count or "0")
        return self

    def report(self, least: int = 1) -> str:
        rows = sorted(self.counts.items(), key=lambda row: (-row[1], row[0]))
        return "\n".join(f"{name:<24}\t{count:>6}" for name, count in rows if count >= least)


if __name__ == "__main__":
    print(Inventory("C:\\data\\stock.tsv").load().report())
"##;

const DIFF: &str = r#"diff --git a/src/stock.rs b/src/stock.rs
index 3b18e51..9f2c0aa 100644
--- a/src/stock.rs
+++ b/src/stock.rs
@@ -12,9 +12,12 @@ impl Stock {
     /// Returns the count of an item.
     pub fn count(&self, name: &str) -> usize {
-        self.counts.get(name).copied().unwrap_or(0)
+        let name = name.trim_matches('"');
+        self.counts.get(name).copied().unwrap_or_default()
     }
 
     pub fn report(&self) -> String {
-        format!("{} items\n", self.counts.len())
+        let mut report = format!("{} items\t\"all\"\n", self.counts.len());
+        report.push_str("\\ end of report\n");
+        report
     }
 }
"#;

const GERMAN: &str = "Über den Dächern der Stadt lag am frühen Morgen noch Nebel. Die Bäckerei an der Ecke öffnete um sechs, \
und wer früh genug kam, bekam die größten Brötchen. „Schönes Wetter heute“, sagte die Verkäuferin, obwohl es \
draußen regnete; sie lächelte dabei. Später wärmte die Sonne die Straße, und die Kinder übten Fußball \
auf dem Platz vor dem Rathaus.\n";

const JAPANESE: &str = "朝の駅は静かで、始発の電車を待つ人は三人しかいなかった。売店の明かりがつくと、温かい缶コーヒーの匂いが\
ホームに広がった。窓の外には川が流れ、橋の上を自転車がゆっくり渡っていく。「今日は晴れますね」と駅員が言った。\
彼女はうなずいて、手帳に短い予定を書きこんだ。\n";

const EMOJI: &str = "Release is out 🚀🎉 thanks everyone! 👩‍💻👨‍🔧 Tests: ✅✅✅❌ (flaky one again 😅)\n\
Lunch at 12? 🍜🥗 — I'm in 🙋🏽‍♀️, bring the 🐶 along ❤️🔥\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_json_string_of_its_size() {
        for text in Text::ALL {
            for bytes in [100, 64 << 10] {
                let json = text.in_json(bytes);
                assert!(json.len() >= bytes, "{text:?}");
                let read: String = serde_json::from_str(&format!("\"{json}\"")).unwrap();
                assert!(!read.is_empty(), "{text:?}");
            }
            assert_eq!(Text::from_str(text.name(), false), Ok(text));
        }
    }

    #[test]
    fn texts_differ_in_their_special_bytes() {
        let has = |text: Text, part: &str| text.in_json(1 << 10).contains(part);
        assert!(has(Text::Log, r"\\\\") && has(Text::Log, "é"));
        assert!(has(Text::Json, r#"\\\""#));
        assert!(has(Text::Japanese, "駅") && has(Text::Emoji, "🚀"));
        assert!(!has(Text::Base64, "\\") && !has(Text::Line, "\\"));
    }
}
