//! The tables of characters without a visible form and of lookalikes, compared with the data of Unicode.

use std::{fs, path::Path};

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{
        DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, NoncharacterCodePoint,
        PrependedConcatenationMark, Script,
    },
};
use mcp_workbench::internal::config::Environment;
use unicode_security::{GeneralSecurityProfile, confusable_detection::skeleton};

/// The width of a line of the table, as rustfmt fills it.
const WIDTH: usize = 100;

/// The characters with a property, as ranges.
fn ranges(has: impl Fn(char) -> bool) -> Vec<(char, char)> {
    let mut ranges: Vec<(char, char)> = Vec::new();
    let mut is_open = false;
    for character in ('\0'..=char::MAX).skip(0x80) {
        let has = has(character);
        match ranges.last_mut() {
            Some((_, last)) if is_open && has => *last = character,
            _ if has => ranges.push((character, character)),
            _ => {}
        }
        is_open = has;
    }
    ranges
}

fn table(doc: &str, name: &str, ranges: &[(char, char)]) -> String {
    let number = |it: char| format!("'\\u{{{:X}}}'", u32::from(it));
    let lines = ranges
        .iter()
        .map(|(first, last)| format!("    ({}, {}),\n", number(*first), number(*last)));
    format!(
        "\n/// {doc}\npub(super) const {name}: &[(char, char)] = &[\n{}];\n",
        lines.collect::<String>()
    )
}

/// Returns the characters that look like one ASCII letter or digit, each with that.
fn lookalikes() -> Vec<(char, char)> {
    let category = CodePointMapData::<GeneralCategory>::new();
    let skeleton = |it: char| skeleton(&it.to_string()).collect::<String>();
    let ascii = ('0'..='z').filter(char::is_ascii_alphanumeric);
    let ascii: Vec<(char, String)> = ascii.map(|it| (it, skeleton(it))).collect();
    // Beyond are ideographs and what has no visible form.
    let lookalikes = ('\u{80}'..'\u{20000}').filter_map(|character| {
        let own = skeleton(character);
        let alike = ascii.iter().filter(|(_, skeleton)| *skeleton == own);
        let alike: Vec<char> = alike.map(|(ascii, _)| *ascii).collect();
        // `0` and `O` look alike, and so do `1`, `I` and `l`.
        let same_kind = alike.iter().find(|it| {
            let is_digit = category.get(character) == GeneralCategory::DecimalNumber;
            it.is_ascii_digit() == is_digit && it.is_ascii_uppercase() == character.is_uppercase()
        });
        Some((character, *same_kind.or(alike.last())?))
    });
    lookalikes.collect()
}

/// Returns whether a lookalike has no honest place in a word of ASCII letters. Letters of languages in Latin script have
/// one, small Greek letters in formulas, digits, and scripts whose words are written beside Latin ones without a space.
fn is_imitation(character: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    if !GeneralCategoryGroup::Letter.contains(category) && category != GeneralCategory::LetterNumber
    {
        return false;
    }
    let is_alphabet = match CodePointMapData::<Script>::new().get(character) {
        Script::Cyrillic | Script::Armenian => true,
        Script::Greek => character.is_uppercase() || matches!(character, 'ο' | 'ν'),
        _ => false,
    };
    is_alphabet || !character.identifier_allowed()
}

/// Returns a sorted table of code points, each followed by eight bits of ASCII.
fn packed(doc: &str, name: &str, lookalikes: &[(char, char)]) -> String {
    let mut lines = vec!["   ".to_owned()];
    for (character, ascii) in lookalikes {
        let entry = format!(" 0x{:X}{:02X},", u32::from(*character), u32::from(*ascii));
        if lines
            .last()
            .is_some_and(|line| line.len() + entry.len() > WIDTH)
        {
            lines.push("   ".to_owned());
        }
        lines.last_mut().expect("there is one").push_str(&entry);
    }
    format!(
        "\n/// {doc}\n#[expect(clippy::unreadable_literal, reason = \"nobody reads them\")]\npub(super) const {name}: &[u32] = &[\n{}\n];\n",
        lines.join("\n")
    )
}

fn generated() -> String {
    let (imitations, familiar): (Vec<_>, Vec<_>) =
        { lookalikes().into_iter() }.partition(|(character, _)| is_imitation(*character));
    let category = CodePointMapData::<GeneralCategory>::new();
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let noncharacter = CodePointSetData::new::<NoncharacterCodePoint>();
    let prepended = CodePointSetData::new::<PrependedConcatenationMark>();
    let invisible = ranges(|it| match category.get(it) {
        // Some signs of Arabic and Syriac are of this category although they are drawn.
        GeneralCategory::Format => !prepended.contains(it),
        GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => true,
        _ => ignorable.contains(it) || noncharacter.contains(it),
    });
    let private = ranges(|it| category.get(it) == GeneralCategory::PrivateUse);
    let spaces = ranges(|it| category.get(it) == GeneralCategory::SpaceSeparator);
    [
        "//! Characters by properties of Unicode, generated by the test `unicode_table`. Do not edit.\n".to_owned(),
        table(
            "Default-ignorable characters, format characters that are not drawn, line separators and noncharacters.",
            "INVISIBLE",
            &invisible,
        ),
        table("Characters of private use.", "PRIVATE_USE", &private),
        table("Spaces other than U+0020.", "SPACES", &spaces),
        packed(
            "Letters that look like an ASCII letter or digit and have no honest place in a word of ASCII letters.",
            "IMITATIONS",
            &imitations,
        ),
        packed(
            "Other characters that look like an ASCII letter or digit.",
            "FAMILIAR",
            &familiar,
        ),
    ]
    .concat()
}

/// Fails when the committed table differs from Unicode's data; with `UPDATE_UNICODE=1` it is rewritten.
#[test]
fn the_tables_match_unicode() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/visible/table.rs");
    let table = generated();
    let update = Environment::of_process()
        .variable("UPDATE_UNICODE")
        .is_some();
    if update {
        fs::write(&file, &table).expect("writing the table");
    }
    let committed = fs::read_to_string(&file).expect("the table is committed");
    assert!(
        committed == table,
        "src/visible/table.rs is stale; run this test with UPDATE_UNICODE=1"
    );
}
