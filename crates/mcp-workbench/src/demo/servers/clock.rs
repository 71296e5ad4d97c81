//! The clock: `now`, `convert` and `days_between`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::civil::{Date, Moment, Offset, TimeError};
use super::tools::ToolResult;

/// Returns the definitions of the clock's tools.
pub(super) fn definitions() -> Vec<Value> {
    vec![
        now_definition(),
        convert_definition(),
        days_between_definition(),
    ]
}

/// Runs a tool; returns `None` for an unknown name.
pub(super) fn call(tool: &str, arguments: &Arguments) -> Option<ToolResult> {
    match tool {
        "now" => Some(now(arguments)),
        "convert" => Some(convert(arguments)),
        "days_between" => Some(days_between(arguments)),
        _ => None,
    }
}

fn now(arguments: &Arguments) -> ToolResult {
    arguments.only(&["offset"])?;
    let offset = match arguments.optional_string("offset")? {
        None => Offset::UTC,
        Some(text) => Offset::parse(text)?,
    };
    Ok(describe(system_time()?, offset)?)
}

fn convert(arguments: &Arguments) -> ToolResult {
    arguments.only(&["time", "offset"])?;
    let moment = Moment::parse(arguments.string("time")?)?;
    let offset = Offset::parse(arguments.string("offset")?)?;
    Ok(describe(moment, offset)?)
}

fn days_between(arguments: &Arguments) -> ToolResult {
    arguments.only(&["from", "to"])?;
    let from = Date::parse(arguments.string("from")?)?;
    let to = Date::parse(arguments.string("to")?)?;
    Ok(json!({
        "days": to.day_number() - from.day_number(),
        "from_weekday": from.weekday(),
        "to_weekday": to.weekday()
    }))
}

/// Reads the system clock; times before 1970 are out of range.
fn system_time() -> Result<Moment, TimeError> {
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| TimeError::OutOfRange)?;
    let unix_seconds = i64::try_from(elapsed.as_secs()).map_err(|_| TimeError::OutOfRange)?;
    Ok(Moment { unix_seconds })
}

fn describe(moment: Moment, offset: Offset) -> Result<Value, TimeError> {
    let local = moment.at(offset)?;
    Ok(json!({
        "utc": moment.at(Offset::UTC)?.to_string(),
        "local": local.to_string(),
        "offset": offset.to_string(),
        "weekday": local.date.weekday(),
        "unix_seconds": moment.unix_seconds
    }))
}

fn now_definition() -> Value {
    json!({
        "name": "now",
        "title": "Current time",
        "description": "Tell the current date and time, in UTC and at an offset from UTC.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "offset": {
                    "type": "string",
                    "description": "Offset of the local time from UTC, such as +02:00; UTC if left out"
                }
            },
            "additionalProperties": false
        },
        "outputSchema": moment_schema(),
        // The result differs from call to call, but no call changes anything.
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    })
}

fn convert_definition() -> Value {
    json!({
        "name": "convert",
        "title": "Convert a time",
        "description": "Convert a time to another offset from UTC. Fractions of a second are dropped.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "time": {
                    "type": "string",
                    "description": "Time with its offset, such as 2026-02-28T14:30:00+02:00 or 2026-02-28T12:30Z"
                },
                "offset": {
                    "type": "string",
                    "description": "Offset to convert to, such as -05:30, or Z for UTC"
                }
            },
            "required": ["time", "offset"],
            "additionalProperties": false
        },
        "outputSchema": moment_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    })
}

fn days_between_definition() -> Value {
    json!({
        "name": "days_between",
        "title": "Days between two dates",
        "description": "Count the days from one date to another (negative if the second is earlier) and name both weekdays.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "from": { "type": "string", "description": "First date, as YYYY-MM-DD" },
                "to": { "type": "string", "description": "Second date, as YYYY-MM-DD" }
            },
            "required": ["from", "to"],
            "additionalProperties": false
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "days": { "type": "integer" },
                "from_weekday": { "type": "string" },
                "to_weekday": { "type": "string" }
            },
            "required": ["days", "from_weekday", "to_weekday"],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false }
    })
}

fn moment_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "utc": { "type": "string" },
            "local": { "type": "string" },
            "offset": { "type": "string" },
            "weekday": { "type": "string", "description": "Weekday of the local time" },
            "unix_seconds": { "type": "integer" }
        },
        "required": ["utc", "local", "offset", "weekday", "unix_seconds"],
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn run(tool: &str, arguments: Value) -> Result<Value, String> {
        let arguments = Arguments::new(Some(arguments)).unwrap();
        call(tool, &arguments)
            .unwrap()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn now_returns_one_time_in_two_forms() {
        let told = run("now", json!({"offset": "-05:30"})).unwrap();
        let utc = Moment::parse(told["utc"].as_str().unwrap()).unwrap();
        let local = Moment::parse(told["local"].as_str().unwrap()).unwrap();
        assert_eq!((utc, told["offset"].as_str()), (local, Some("-05:30")));
        assert_eq!(told["unix_seconds"], utc.unix_seconds);
        assert!(utc.unix_seconds > 1_700_000_000);
        assert_eq!(run("now", json!({})).unwrap()["offset"], "+00:00");
    }

    #[test]
    fn times_are_converted() {
        assert_eq!(
            run(
                "convert",
                json!({"time": "2026-12-31T23:30:00-02:00", "offset": "+09:00"})
            ),
            Ok(json!({
                "utc": "2027-01-01T01:30:00Z",
                "local": "2027-01-01T10:30:00+09:00",
                "offset": "+09:00",
                "weekday": "Friday",
                "unix_seconds": 1_798_767_000
            }))
        );
    }

    #[test]
    fn days_are_counted_both_ways() {
        for (from, to, days) in [
            ("2024-02-28", "2024-03-01", 2),
            ("2023-02-28", "2023-03-01", 1),
            ("2026-01-01", "2025-01-01", -365),
            ("2026-01-01", "2026-01-01", 0),
        ] {
            let counted = run("days_between", json!({"from": from, "to": to})).unwrap();
            assert_eq!(counted["days"], days, "{from} {to}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        for (tool, arguments, expected) in [
            (
                "now",
                json!({"offset": "CET"}),
                "`CET` is not an offset: write it as +02:00 or -05:30, or Z for UTC",
            ),
            (
                "convert",
                json!({"time": "noon", "offset": "Z"}),
                "`noon` is not a time with an offset: write it as 2026-02-28T14:30:00+02:00, \
                 or with Z at the end for UTC",
            ),
            (
                "convert",
                json!({"time": "2026-01-01T00:00Z"}),
                "argument `offset` is required: it must be a string",
            ),
            (
                "days_between",
                json!({"from": "2026-02-29", "to": "2026-03-01"}),
                "`2026-02-29` is not in the calendar: the years are 0001 to 9999, \
                 and a month has its days",
            ),
            (
                "days_between",
                json!({"from": "1 May", "to": "2026-03-01"}),
                "`1 May` is not a date: write it as YYYY-MM-DD, such as 2026-02-28",
            ),
        ] {
            assert_eq!(run(tool, arguments), Err(expected.to_owned()));
        }
    }
}
