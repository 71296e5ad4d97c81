//! The calculator: `evaluate`.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::expression::Expression;
use super::tools::ToolResult;

/// The largest whole number up to which every whole number has an exact floating-point value.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Returns the definitions of the calculator's tools.
pub(super) fn definitions() -> Vec<Value> {
    vec![json!({
        "name": "evaluate",
        "title": "Evaluate an expression",
        "description": "Calculate the value of an arithmetic expression with + - * / ^ (power), parentheses, minus signs and decimal numbers, in double precision.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "Expression, such as (2 + 3) * 4 ^ 0.5",
                    "minLength": 1,
                    "maxLength": 1000
                }
            },
            "required": ["expression"],
            "additionalProperties": false
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "expression": { "type": "string", "description": "The expression as it was understood" },
                "value": { "type": "number" }
            },
            "required": ["expression", "value"],
            "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    })]
}

/// Runs a tool; returns `None` for an unknown name.
pub(super) fn call(tool: &str, arguments: &Arguments) -> Option<ToolResult> {
    match tool {
        "evaluate" => Some(evaluate(arguments)),
        _ => None,
    }
}

fn evaluate(arguments: &Arguments) -> ToolResult {
    arguments.only(&["expression"])?;
    let expression = Expression::parse(arguments.string("expression")?)?;
    let value = expression.value()?;
    Ok(json!({ "expression": expression.to_string(), "value": json_number(value) }))
}

/// Converts a number; whole numbers have no point: 42, not 42.0.
fn json_number(value: f64) -> Value {
    if value.fract() == 0.0
        && value.abs() <= MAX_EXACT_INTEGER
        // Formatting avoids a lossy cast of the float.
        && let Ok(integer) = format!("{value:.0}").parse::<i64>()
    {
        return json!(integer);
    }
    json!(value)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn run(arguments: Value) -> Result<String, String> {
        let arguments = Arguments::new(Some(arguments)).unwrap();
        call("evaluate", &arguments)
            .unwrap()
            .map(|result| result.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_json_numbers() {
        for (expression, expected) in [
            ("(2+4)*7", r#"{"expression":"(2 + 4) * 7","value":42}"#),
            ("1/4", r#"{"expression":"1 / 4","value":0.25}"#),
            ("-0", r#"{"expression":"-0","value":0}"#),
            (
                "2^53",
                r#"{"expression":"2 ^ 53","value":9007199254740992}"#,
            ),
            ("10^20", r#"{"expression":"10 ^ 20","value":1e+20}"#),
            (
                "0.1+0.2",
                r#"{"expression":"0.1 + 0.2","value":0.30000000000000004}"#,
            ),
        ] {
            assert_eq!(
                run(json!({ "expression": expression })),
                Ok(expected.to_owned())
            );
        }
    }

    #[test]
    fn errors_say_what_to_fix() {
        for (arguments, expected) in [
            (
                json!({"expression": "1/0"}),
                "division by zero: `0` is 0; check it, or remove this division",
            ),
            (
                json!({"expression": 5}),
                "argument `expression` must be a string, not a number",
            ),
            (
                json!({"expr": "1"}),
                "unknown argument `expr`: this tool takes `expression`",
            ),
        ] {
            assert_eq!(run(arguments), Err(expected.to_owned()));
        }
    }
}
