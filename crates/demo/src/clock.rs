//! The clock: `now` and `days_between`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{NoArguments, ToolResult, object, read_arguments};

const SECONDS_PER_DAY: i64 = 86_400;

/// The weekdays from 1970-01-01 on.
const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DaysBetween {
    from: String,
    to: String,
}

pub(crate) fn definitions() -> Value {
    json!([
        {
            "name": "now",
            "title": "Current time",
            "description": "Return the current date and time in UTC.",
            "inputSchema": object(&json!({})),
            "outputSchema": object(&json!({
                "utc": { "type": "string" },
                "weekday": { "type": "string" },
                "unix_seconds": { "type": "integer" }
            })),
            "annotations": { "readOnlyHint": true, "openWorldHint": false }
        },
        {
            "name": "days_between",
            "title": "Days between two dates",
            "description": "Count the days from one date to another (negative if the second is earlier) and name both weekdays.",
            "inputSchema": object(&json!({
                "from": { "type": "string", "description": "First date, as YYYY-MM-DD" },
                "to": { "type": "string", "description": "Second date, as YYYY-MM-DD" }
            })),
            "outputSchema": object(&json!({
                "days": { "type": "integer" },
                "from_weekday": { "type": "string" },
                "to_weekday": { "type": "string" }
            })),
            "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
        }
    ])
}

pub(crate) fn now(arguments: Value) -> ToolResult {
    let NoArguments {} = read_arguments(arguments)?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since_epoch
        .ok()
        .and_then(|it| it.as_secs().try_into().ok())
        .ok_or("the system clock is before 1970")?;
    Ok(describe(seconds))
}

pub(crate) fn days_between(arguments: Value) -> ToolResult {
    let DaysBetween { from, to } = read_arguments(arguments)?;
    let (from, to) = (parse_date(&from)?, parse_date(&to)?);
    Ok(json!({ "days": to - from, "from_weekday": weekday(from), "to_weekday": weekday(to) }))
}

/// Formats a time from 1970 on.
fn describe(unix_seconds: i64) -> Value {
    let days = unix_seconds / SECONDS_PER_DAY;
    let second = unix_seconds % SECONDS_PER_DAY;
    let (year, month, day) = date(days);
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    json!({
        "utc": format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z"),
        "weekday": weekday(days),
        "unix_seconds": unix_seconds
    })
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar, from the year 1 on. Months may be
/// 1 to 13.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // The year starts in March here, so that the leap day is its last day. Then every five months have 153 days.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 719_469
}

/// Returns year, month and day of a day from 1970-01-01 on.
fn date(days: i64) -> (i64, i64, i64) {
    // No year has more than 366 days, so this starts at most a few years early.
    let mut year = 1970 + days / 366;
    while day_number(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 12;
    while day_number(year, month, 1) > days {
        month -= 1;
    }
    (year, month, days - day_number(year, month, 1) + 1)
}

fn weekday(days: i64) -> &'static str {
    WEEKDAYS[usize::try_from(days.rem_euclid(7)).unwrap_or_default()]
}

/// Parses `YYYY-MM-DD` to a day number.
fn parse_date(text: &str) -> Result<i64, String> {
    let has_form = text.len() == 10
        && text.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !has_form {
        return Err(format!(
            "`{text}` is not a date: write it as YYYY-MM-DD, such as 2026-02-28"
        ));
    }
    let mut parts = text.split('-').map(|part| part.parse().unwrap_or_default());
    let mut part = || parts.next().unwrap_or_default();
    let (year, month, day) = (part(), part(), part());
    let exists = year >= 1 && (1..=12).contains(&month) && {
        let length = day_number(year, month + 1, 1) - day_number(year, month, 1);
        (1..=length).contains(&day)
    };
    if exists {
        Ok(day_number(year, month, day))
    } else {
        Err(format!("`{text}` is not in the calendar"))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn times_are_formatted() {
        for (seconds, utc, weekday) in [
            (0, "1970-01-01T00:00:00Z", "Thursday"),
            (951_782_399, "2000-02-28T23:59:59Z", "Monday"),
            (951_782_400, "2000-02-29T00:00:00Z", "Tuesday"),
            (1_798_767_000, "2027-01-01T01:30:00Z", "Friday"),
            (253_402_300_799, "9999-12-31T23:59:59Z", "Friday"),
        ] {
            let expected = json!({ "utc": utc, "weekday": weekday, "unix_seconds": seconds });
            assert_eq!(describe(seconds), expected);
        }
        let now = now(json!({})).unwrap();
        assert!(now["unix_seconds"].as_i64().unwrap() > 1_700_000_000);
    }

    #[test]
    fn every_day_is_formatted_and_parsed_back() {
        for days in 0..80_000 {
            let (year, month, day) = date(days);
            let text = format!("{year:04}-{month:02}-{day:02}");
            assert_eq!(parse_date(&text), Ok(days), "{text}");
        }
    }

    #[test]
    fn days_are_counted_both_ways() {
        for (from, to, days) in [
            ("2024-02-28", "2024-03-01", 2),
            ("2023-02-28", "2023-03-01", 1),
            ("2026-01-01", "2025-01-01", -365),
            ("2026-01-01", "2026-01-01", 0),
            ("0001-01-01", "9999-12-31", 3_652_058),
        ] {
            let counted = days_between(json!({ "from": from, "to": to })).unwrap();
            assert_eq!(counted["days"], days, "{from} {to}");
        }
        let counted = days_between(json!({ "from": "0001-01-01", "to": "1582-10-15" })).unwrap();
        assert_eq!(counted["from_weekday"], "Monday");
        assert_eq!(counted["to_weekday"], "Friday");
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        let dates = "2026-02-29 1900-02-29 2026-13-01 2026-00-10 2026-04-31 0000-01-01 2026-01-00";
        for text in dates.split(' ') {
            let expected = format!("`{text}` is not in the calendar");
            assert_eq!(parse_date(text), Err(expected));
        }
        for text in ["1 May", "2026-2-28", "2026/02/28", "+026-02-28"] {
            let error = parse_date(text).unwrap_err();
            assert!(error.contains("write it as YYYY-MM-DD"), "{error}");
        }
    }
}
