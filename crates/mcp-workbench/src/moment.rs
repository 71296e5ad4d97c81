//! Formats times as RFC 3339 in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;

/// Appends a time with milliseconds.
pub(crate) fn write_time(line: &mut Vec<u8>, time: SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut milliseconds = *b".000Z";
    put_digits(&mut milliseconds[1..4], since.subsec_millis().into());
    line.extend_from_slice(&seconds_text(since.as_secs()));
    line.extend_from_slice(&milliseconds);
}

/// Formats a time with seconds.
pub(crate) fn moment(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut text = seconds_text(since.as_secs()).to_vec();
    text.push(b'Z');
    String::from_utf8(text).expect("digits and separators")
}

/// Returns a time given in seconds since 1970, without the time zone.
fn seconds_text(seconds: u64) -> [u8; 19] {
    let (year, month, day) = date(seconds / SECONDS_PER_DAY);
    let second = seconds % SECONDS_PER_DAY;
    let mut text = *b"0000-00-00T00:00:00";
    put_digits(&mut text[..4], year);
    put_digits(&mut text[5..7], month);
    put_digits(&mut text[8..10], day);
    put_digits(&mut text[11..13], second / 3600);
    put_digits(&mut text[14..16], second / 60 % 60);
    put_digits(&mut text[17..], second % 60);
    text
}

/// Writes the last digits of a number into a place.
fn put_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10).to_le_bytes()[0];
        number /= 10;
    }
}

/// Returns the date of a day number since 1970. Years start in March, so that a leap day is the last day of its
/// year; 400 years always have the same number of days.
fn date(days: u64) -> (u64, u64, u64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01, and 146,097 days are 400 years.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    // Without the leap days: one in 4 years (1,460 days), none in 100 (36,524), and one in 400.
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, five months have 153 days.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn points_in_time_are_written_as_rfc_3339() {
        let cases = [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.001Z"),
            (1_709_164_800, 0, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599, 0, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ];
        for (seconds, milliseconds, expected) in cases {
            let time = UNIX_EPOCH + Duration::new(seconds, milliseconds * 1_000_000);
            let mut line = Vec::new();
            write_time(&mut line, time);
            assert_eq!(String::from_utf8(line).unwrap(), expected);
            let to_the_second = format!("{}Z", &expected[..19]);
            assert_eq!(moment(time), to_the_second);
        }
    }
}
