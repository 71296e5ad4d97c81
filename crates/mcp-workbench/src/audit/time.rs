//! Moments as RFC 3339 has them, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 86_400;

/// Now, to the millisecond.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    written(since.as_secs(), since.subsec_millis())
}

/// A moment, to the second.
pub fn moment(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    written(since.as_secs(), 0).replace(".000Z", "Z")
}

/// A moment by its seconds since 1970.
fn written(seconds: u64, milliseconds: u32) -> String {
    let (year, month, day) = date(seconds / SECONDS_A_DAY);
    let second = seconds % SECONDS_A_DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date of a day by its number since 1970. Years are counted from March, so that the day that is sometimes there
/// is the last one; 400 years always have the same number of days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_everybody_reads_them() {
        let cases = [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.001Z"),
            (1_709_164_800, 0, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599, 0, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ];
        for (seconds, milliseconds, expected) in cases {
            assert_eq!(written(seconds, milliseconds), expected);
        }
    }
}
