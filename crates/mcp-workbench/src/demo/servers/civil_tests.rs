use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

#[test]
fn known_days_have_their_numbers_and_weekdays() {
    // Day numbers count from 0001-01-01; 1970-01-01 is 719162.
    let table = [
        ("0001-01-01", 0, "Monday"),
        ("1582-10-15", 577_735, "Friday"),
        ("1969-12-31", 719_161, "Wednesday"),
        ("1970-01-01", 719_162, "Thursday"),
        ("2000-02-29", 730_178, "Tuesday"),
        ("2024-02-29", 738_944, "Thursday"),
        ("2026-11-15", 739_934, "Sunday"),
        ("9999-12-31", 3_652_058, "Friday"),
    ];
    for (text, day_number, weekday) in table {
        let date = Date::parse(text).unwrap();
        assert_eq!(
            (date.day_number(), date.weekday()),
            (day_number, weekday),
            "{text}"
        );
        assert_eq!(Date::from_day_number(day_number).unwrap().to_string(), text);
    }
}

#[test]
fn invalid_dates_are_refused() {
    for text in [
        "",
        "2026",
        "2026-2-3",
        "26-02-03",
        "2026/02/03",
        "2026-02-03T",
        "+026-02-03",
        "２０26-1",
    ] {
        assert_eq!(
            Date::parse(text),
            Err(TimeError::Date {
                text: text.to_owned()
            }),
            "{text}"
        );
    }
    for text in [
        "2026-02-29",
        "2100-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-04-31",
        "0000-01-01",
        "2026-01-00",
    ] {
        assert_eq!(
            Date::parse(text),
            Err(TimeError::NoSuchDate {
                text: text.to_owned()
            }),
            "{text}"
        );
    }
}

#[test]
fn offsets_are_read_and_printed() {
    for (text, minutes, printed) in [
        ("Z", 0, "+00:00"),
        ("z", 0, "+00:00"),
        ("-00:00", 0, "+00:00"),
        ("+02:00", 120, "+02:00"),
        ("-05:30", -330, "-05:30"),
        ("-00:30", -30, "-00:30"),
        ("+23:59", 1439, "+23:59"),
    ] {
        let offset = Offset::parse(text).unwrap();
        assert_eq!(
            (offset.minutes, offset.to_string().as_str()),
            (minutes, printed)
        );
    }
    for text in [
        "", "2", "+2", "+0200", "+24:00", "+02:60", "02:00", "+02:00 ", "CET", "é:00", "++2:00",
    ] {
        assert_eq!(
            Offset::parse(text),
            Err(TimeError::Offset {
                text: text.to_owned()
            }),
            "{text}"
        );
    }
}

#[test]
fn moments_are_read_and_shown_at_an_offset() {
    for (text, unix_seconds, offset, shown) in [
        ("1970-01-01T00:00:00Z", 0, "Z", "1970-01-01T00:00:00Z"),
        ("1970-01-01T01:00+02:00", -3600, "Z", "1969-12-31T23:00:00Z"),
        (
            "2026-11-15 12:34:56.789Z",
            1_794_746_096,
            "+05:30",
            "2026-11-15T18:04:56+05:30",
        ),
        (
            "2024-02-29t23:30:00-01:00",
            1_709_253_000,
            "-08:00",
            "2024-02-29T16:30:00-08:00",
        ),
        (
            "0001-01-01T00:00:00Z",
            -62_135_596_800,
            "Z",
            "0001-01-01T00:00:00Z",
        ),
    ] {
        let moment = Moment::parse(text).unwrap();
        assert_eq!(moment.unix_seconds, unix_seconds, "{text}");
        assert_eq!(
            moment
                .at(Offset::parse(offset).unwrap())
                .unwrap()
                .to_string(),
            shown
        );
    }
    let first = Moment::parse("0001-01-01T00:00:00Z").unwrap();
    assert_eq!(first.at(Offset { minutes: -1 }), Err(TimeError::OutOfRange));
    let last = Moment::parse("9999-12-31T23:59:59Z").unwrap();
    assert_eq!(last.at(Offset { minutes: 1 }), Err(TimeError::OutOfRange));
    assert_eq!(
        Moment {
            unix_seconds: i64::MAX
        }
        .at(Offset { minutes: 1 }),
        Err(TimeError::OutOfRange)
    );
}

#[test]
fn invalid_times_are_refused() {
    for text in [
        "",
        "now",
        "2026-11-15",
        "2026-11-15T12:00:00",
        "2026-11-15T24:00:00Z",
        "2026-11-15T12:60Z",
        "2026-11-15T12:00:60Z",
        "2026-11-15T12:00:00.Z",
        "2026-11-15T12:00.5Z",
        "2026-11-15T12Z",
        "2026-11-15T12:00:00+2",
        "2026-11-15T12-00-00Z",
        "2026-11-15T12:00:00Z ",
    ] {
        assert_eq!(
            Moment::parse(text),
            Err(TimeError::Moment {
                text: text.to_owned()
            }),
            "{text}"
        );
    }
    assert!(matches!(
        Moment::parse("2026-02-30T12:00Z"),
        Err(TimeError::NoSuchDate { .. })
    ));
}

proptest! {
    #[test]
    fn every_day_number_is_a_date_and_back(day_number in 0..3_652_059_i64) {
        let date = Date::from_day_number(day_number).unwrap();
        prop_assert!(date.exists());
        prop_assert_eq!(date.day_number(), day_number);
        prop_assert_eq!(Date::parse(&date.to_string()), Ok(date));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,30}") {
        let _ = (Date::parse(&text), Offset::parse(&text), Moment::parse(&text));
    }

    #[test]
    fn a_moment_is_the_same_at_every_offset(
        unix_seconds in -62_000_000_000..253_000_000_000_i64,
        minutes in -1439..1440_i64,
    ) {
        let moment = Moment { unix_seconds };
        let shown = moment.at(Offset { minutes }).unwrap().to_string();
        prop_assert_eq!(Moment::parse(&shown), Ok(moment));
    }
}
