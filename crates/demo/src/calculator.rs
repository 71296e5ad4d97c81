//! The calculator: `evaluate`.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = signed (("*" | "/") signed)*
//! signed  = "-" signed | power
//! power   = atom ("^" signed)?
//! atom    = number | "(" sum ")"
//! ```

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{ToolResult, object, read_arguments};

/// The longest expression, in characters.
const MAX_LENGTH: usize = 1000;
/// The maximum nesting of parentheses, signs and powers, which bounds the stack.
const MAX_DEPTH: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evaluate {
    expression: String,
}

pub(crate) fn definitions() -> Value {
    json!([{
        "name": "evaluate",
        "title": "Evaluate an expression",
        "description": "Calculate the value of an arithmetic expression with + - * / ^ (power), parentheses, minus signs and decimal numbers, in double precision.",
        "inputSchema": object(&json!({
            "expression": {
                "type": "string",
                "description": "Expression, such as (2 + 3) * 4 ^ 0.5",
                "minLength": 1,
                "maxLength": MAX_LENGTH
            }
        })),
        "outputSchema": object(&json!({
            "expression": { "type": "string" },
            "value": { "type": "number" }
        })),
        "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false }
    }])
}

pub(crate) fn evaluate(arguments: Value) -> ToolResult {
    let Evaluate { expression } = read_arguments(arguments)?;
    let value = value(&expression)?;
    Ok(json!({ "expression": expression, "value": json_number(value) }))
}

/// Returns the value of an expression, which is always finite.
fn value(expression: &str) -> Result<f64, String> {
    if expression.chars().count() > MAX_LENGTH {
        return Err(format!("longer than {MAX_LENGTH} characters"));
    }
    let mut parser = Parser {
        rest: expression.trim_start(),
        depth: 0,
    };
    let value = parser.sum()?;
    if parser.rest.is_empty() {
        Ok(value)
    } else {
        Err(parser.expected("an operator or the end"))
    }
}

/// Converts a finite number; whole numbers have no point: 42, not 42.0.
fn json_number(value: f64) -> Value {
    serde_json::from_str(&value.to_string()).unwrap_or_default()
}

/// A parser that calculates the value as it reads.
struct Parser<'a> {
    /// The unread part, without leading white space.
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value = finite(value + self.product()?)?;
            } else if self.take("-") {
                value = finite(value - self.product()?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            if self.take("*") {
                value = finite(value * self.signed()?)?;
            } else if self.take("/") {
                let divisor = self.signed()?;
                if divisor == 0.0 {
                    return Err("division by zero".to_owned());
                }
                value = finite(value / divisor)?;
            } else {
                return Ok(value);
            }
        }
    }

    /// Every cycle of the grammar goes through here, so this is where the depth is counted.
    fn signed(&mut self) -> Result<f64, String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let value = if self.take("-") {
            -self.signed()?
        } else {
            self.power()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        if self.take("^") {
            finite(base.powf(self.signed()?))
        } else {
            Ok(base)
        }
    }

    fn atom(&mut self) -> Result<f64, String> {
        if self.take("(") {
            let value = self.sum()?;
            return if self.take(")") {
                Ok(value)
            } else {
                Err(self.expected("an operator or `)`"))
            };
        }
        let is_part = |it: char| it.is_ascii_digit() || it == '.';
        let end = self.rest.find(|it| !is_part(it));
        let number = &self.rest[..end.unwrap_or(self.rest.len())];
        let value = number
            .parse()
            .map_err(|_| self.expected("a number, `(` or `-`"))?;
        self.take(number);
        finite(value)
    }

    /// Consumes a token if it is next, and the white space after it.
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest).trim_start();
        rest.is_some()
    }

    fn expected(&self, what: &str) -> String {
        if self.rest.is_empty() {
            format!("unexpected end: expected {what}")
        } else {
            format!("unexpected `{}`: expected {what}", self.rest)
        }
    }
}

fn finite(value: f64) -> Result<f64, String> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err("the result is not a real number, or larger than 1.8e308".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn evaluated(expression: &str) -> Result<String, String> {
        let result = evaluate(json!({ "expression": expression }))?;
        assert_eq!(result["expression"], expression);
        Ok(result["value"].to_string())
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        for (expression, expected) in [
            (" (17 + 4) * 2^3 / 1.5 ", "112"),
            ("1 - 2 - 3", "-4"),
            ("24 / 4 / 2", "3"),
            ("2 ^ 3 ^ 2", "512"),
            ("-2 ^ 2", "-4"),
            ("2 ^ -1", "0.5"),
            ("2 * -3", "-6"),
            ("--1", "1"),
            ("((1))", "1"),
            (".5 + 1.", "1.5"),
            ("0.1 + 0.2", "0.30000000000000004"),
            ("2 ^ 53", "9007199254740992"),
            ("10 ^ 20", "1e+20"),
        ] {
            assert_eq!(evaluated(expression).unwrap(), expected, "{expression}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let not_real = "the result is not a real number, or larger than 1.8e308";
        for (expression, expected) in [
            ("1 / (2 - 2)", "division by zero"),
            ("(0 - 8) ^ 0.5", not_real),
            ("0 ^ -1", not_real),
            ("1 / 10 ^ 999", not_real),
            ("", "unexpected end: expected a number, `(` or `-`"),
            ("(1 + 2", "unexpected end: expected an operator or `)`"),
            ("1+two", "unexpected `two`: expected a number, `(` or `-`"),
            ("1.2.3", "unexpected `1.2.3`: expected a number, `(` or `-`"),
            ("1 é", "unexpected `é`: expected an operator or the end"),
        ] {
            assert_eq!(evaluated(expression).unwrap_err(), expected);
        }
    }

    #[test]
    fn long_and_deep_expressions_are_refused() {
        let error = evaluated(&"1".repeat(MAX_LENGTH + 1)).unwrap_err();
        assert_eq!(error, "longer than 1000 characters");
        let nested = |depth| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(evaluated(&nested(MAX_DEPTH - 1)).as_deref(), Ok("1"));
        let error = evaluated(&nested(MAX_DEPTH)).unwrap_err();
        assert_eq!(error, "nested more than 64 levels deep");
    }
}
