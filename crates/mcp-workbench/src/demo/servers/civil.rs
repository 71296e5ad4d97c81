//! Dates and times of the proleptic Gregorian calendar, years 1 to 9999. There is no time zone database: a zone
//! is an offset from UTC.

use std::fmt;

const SECONDS_PER_DAY: i64 = 86_400;
const LAST_YEAR: i64 = 9999;

const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Reasons why a date, a time or an offset is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TimeError {
    /// Not in the format of a date.
    #[error("`{text}` is not a date: write it as YYYY-MM-DD, such as 2026-02-28")]
    Date { text: String },
    /// A date that the calendar does not have.
    #[error(
        "`{text}` is not in the calendar: the years are 0001 to 9999, and a month has its days"
    )]
    NoSuchDate { text: String },
    /// Not in the format of a time.
    #[error(
        "`{text}` is not a time with an offset: write it as 2026-02-28T14:30:00+02:00, \
         or with Z at the end for UTC"
    )]
    Moment { text: String },
    /// Not in the format of an offset.
    #[error("`{text}` is not an offset: write it as +02:00 or -05:30, or Z for UTC")]
    Offset { text: String },
    /// The time is outside of the supported years.
    #[error("that time is outside of the years 0001 to 9999")]
    OutOfRange,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    year: i64,
    month: i64,
    day: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    minutes: i64,
}

/// A point in time, in seconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Negative before 1970.
    pub(super) unix_seconds: i64,
}

/// A point in time at an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalTime {
    pub(super) date: Date,
    second_of_day: i64,
    offset: Offset,
}

impl Date {
    /// Parses `YYYY-MM-DD`.
    pub(super) fn parse(text: &str) -> Result<Self, TimeError> {
        let written = || TimeError::Date {
            text: text.to_owned(),
        };
        let (Some(year), Some(month), Some(day)) =
            (number(text, 0, 4), number(text, 5, 2), number(text, 8, 2))
        else {
            return Err(written());
        };
        if text.len() != 10 || text.get(4..5) != Some("-") || text.get(7..8) != Some("-") {
            return Err(written());
        }
        let date = Self { year, month, day };
        if date.exists() {
            Ok(date)
        } else {
            Err(TimeError::NoSuchDate {
                text: text.to_owned(),
            })
        }
    }

    /// Returns the number of days since 0001-01-01.
    pub(super) fn day_number(self) -> i64 {
        let months_before = (1..self.month).zip(month_lengths(self.year));
        days_before_year(self.year)
            + months_before.map(|(_, length)| length).sum::<i64>()
            + self.day
            - 1
    }

    /// Returns the date with a day number.
    fn from_day_number(day_number: i64) -> Result<Self, TimeError> {
        if !(0..days_before_year(LAST_YEAR + 1)).contains(&day_number) {
            return Err(TimeError::OutOfRange);
        }
        // Assumes 366 days per year: never too late, and at most 27 years too early.
        let mut year = day_number / 366 + 1;
        while days_before_year(year + 1) <= day_number {
            year += 1;
        }
        let mut day = day_number - days_before_year(year) + 1;
        let mut month = 1;
        for length in month_lengths(year) {
            if day <= length {
                break;
            }
            day -= length;
            month += 1;
        }
        Ok(Self { year, month, day })
    }

    /// Returns the English name of the weekday.
    pub(super) fn weekday(self) -> &'static str {
        // 0001-01-01 was a Monday.
        let days_into_week = self.day_number().rem_euclid(7);
        WEEKDAYS[usize::try_from(days_into_week).unwrap_or_default()]
    }

    fn exists(self) -> bool {
        let length = (1..)
            .zip(month_lengths(self.year))
            .find(|(month, _)| *month == self.month);
        (1..=LAST_YEAR).contains(&self.year)
            && length.is_some_and(|(_, length)| (1..=length).contains(&self.day))
    }
}

impl Offset {
    pub(super) const UTC: Self = Self { minutes: 0 };

    /// Parses `+HH:MM`, `-HH:MM` or `Z`.
    pub(super) fn parse(text: &str) -> Result<Self, TimeError> {
        if text.eq_ignore_ascii_case("z") {
            return Ok(Self::UTC);
        }
        let sign = match text.get(..1) {
            Some("+") => 1,
            Some("-") => -1,
            _ => 0,
        };
        match (number(text, 1, 2), text.get(3..4), number(text, 4, 2)) {
            (Some(hours @ 0..=23), Some(":"), Some(minutes @ 0..=59))
                if sign != 0 && text.len() == 6 =>
            {
                Ok(Self {
                    minutes: sign * (hours * 60 + minutes),
                })
            }
            _ => Err(TimeError::Offset {
                text: text.to_owned(),
            }),
        }
    }
}

impl Moment {
    /// Parses a date, `T` or a space, a time of day with or without seconds, and an offset. A fraction of a
    /// second is dropped.
    pub(super) fn parse(text: &str) -> Result<Self, TimeError> {
        let written = || TimeError::Moment {
            text: text.to_owned(),
        };
        let (date, rest) = text.split_at_checked(10).ok_or_else(written)?;
        let time = rest.strip_prefix(['T', 't', ' ']).ok_or_else(written)?;
        let split = time.find(['Z', 'z', '+', '-']).ok_or_else(written)?;
        let (clock, offset) = time.split_at(split);
        let second_of_day = parse_clock(clock).ok_or_else(written)?;
        let offset = Offset::parse(offset).map_err(|_| written())?;
        let days = Date::parse(date)?.day_number() - epoch();
        Ok(Self {
            unix_seconds: days * SECONDS_PER_DAY + second_of_day - offset.minutes * 60,
        })
    }

    /// Returns the local time at an offset.
    pub(super) fn at(self, offset: Offset) -> Result<LocalTime, TimeError> {
        let seconds = self
            .unix_seconds
            .checked_add(offset.minutes * 60)
            .ok_or(TimeError::OutOfRange)?;
        let date = Date::from_day_number(seconds.div_euclid(SECONDS_PER_DAY) + epoch())?;
        Ok(LocalTime {
            date,
            second_of_day: seconds.rem_euclid(SECONDS_PER_DAY),
            offset,
        })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let minutes = self.minutes.abs();
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (minutes, second) = (self.second_of_day / 60, self.second_of_day % 60);
        write!(
            f,
            "{}T{:02}:{:02}:{second:02}",
            self.date,
            minutes / 60,
            minutes % 60
        )?;
        if self.offset == Offset::UTC {
            f.write_str("Z")
        } else {
            self.offset.fmt(f)
        }
    }
}

/// Returns the day number of 1970-01-01.
fn epoch() -> i64 {
    days_before_year(1970)
}

/// Returns the number of days in all years before this one, from year 1 on.
fn days_before_year(year: i64) -> i64 {
    let years = year - 1;
    years * 365 + years / 4 - years / 100 + years / 400
}

fn month_lengths(year: i64) -> [i64; 12] {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if is_leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// Parses `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction` to seconds since midnight.
fn parse_clock(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let has_fraction = clock.len() != text.len();
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let hours @ 0..=23 = number(clock, 0, 2)? else {
        return None;
    };
    let minutes @ 0..=59 = number(clock, 3, 2)? else {
        return None;
    };
    let seconds = match clock.len() {
        5 if !has_fraction => 0,
        8 if clock.get(5..6) == Some(":") => number(clock, 6, 2)?,
        _ => return None,
    };
    let is_written = clock.get(2..3) == Some(":") && is_fraction && seconds < 60;
    is_written.then_some((hours * 60 + minutes) * 60 + seconds)
}

/// Parses `width` decimal digits from byte `start` on.
fn number(text: &str, start: usize, width: usize) -> Option<i64> {
    let digits = text.get(start..start + width)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
#[path = "civil_tests.rs"]
mod tests;
