//! Arithmetic expressions: their structure, value and printed form. `parse` reads them.
//!
//! Numbers are double-precision floating point. `^` binds tighter than a minus sign before it
//! (`-2 ^ 2` is -4) and groups from the right; the other operators group from the left.

mod parse;

use std::fmt;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// A number as written, never negative.
    Number(f64),
    /// A negation.
    Negative(Box<Self>),
    /// Two operands with an operator.
    Binary {
        left: Box<Self>,
        operator: Operator,
        right: Box<Self>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `^`
    Power,
}

/// Reasons why an expression cannot be parsed or has no value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ExpressionError {
    #[error("the expression has {length} characters, but at most {limit} are allowed")]
    TooLong { length: usize, limit: usize },
    /// Parentheses, signs and powers are nested too deeply.
    #[error("the expression is nested more than {limit} deep: evaluate its parts one by one")]
    TooDeep { limit: usize },
    #[error("unexpected end of the expression: expected a number, `(` or `-`")]
    Incomplete,
    #[error("the `(` at character {position} is never closed")]
    Unclosed {
        /// The position, from 1.
        position: usize,
    },
    /// An unexpected character where an operand must be.
    #[error("unexpected `{found}` at character {position}: expected a number, `(` or `-`")]
    NoOperand {
        found: char,
        /// The position, from 1.
        position: usize,
    },
    /// An unexpected character where an operator must be.
    #[error("unexpected `{found}` at character {position}: expected one of + - * / ^ or the end")]
    NoOperator {
        found: char,
        /// The position, from 1.
        position: usize,
    },
    /// An invalid number.
    #[error("`{text}` at character {position} is not a number")]
    BadNumber {
        text: String,
        /// The position, from 1.
        position: usize,
    },
    #[error("division by zero: `{divisor}` is 0; check it, or remove this division")]
    DivisionByZero { divisor: String },
    /// A root of a negative number.
    #[error("`{part}` is not a real number: a negative number has only whole powers")]
    NotReal { part: String },
    /// The value is too large for a floating-point number.
    #[error("`{part}` is too large: values reach to about 1.8e308")]
    TooLarge { part: String },
}

/// The precedence of an expression, from loose to tight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Sum,
    Product,
    Negative,
    Power,
    Atom,
}

impl Expression {
    /// Returns the value, which is always finite.
    pub(super) fn value(&self) -> Result<f64, ExpressionError> {
        let (left, operator, right) = match self {
            Self::Number(number) => return Ok(*number),
            Self::Negative(inner) => return Ok(-inner.value()?),
            Self::Binary {
                left,
                operator,
                right,
            } => (left, *operator, right),
        };
        let (first, second) = (left.value()?, right.value()?);
        let value = operator.apply(first, second);
        match operator {
            // Only an infinite or undefined value needs an explanation.
            _ if value.is_finite() => Ok(value),
            Operator::Divide if second == 0.0 => Err(ExpressionError::DivisionByZero {
                divisor: right.to_string(),
            }),
            Operator::Power if first == 0.0 => Err(ExpressionError::DivisionByZero {
                divisor: left.to_string(),
            }),
            Operator::Power if value.is_nan() => Err(ExpressionError::NotReal {
                part: self.to_string(),
            }),
            _ => Err(ExpressionError::TooLarge {
                part: self.to_string(),
            }),
        }
    }

    fn precedence(&self) -> Precedence {
        match self {
            Self::Number(_) => Precedence::Atom,
            Self::Negative(_) => Precedence::Negative,
            Self::Binary { operator, .. } => operator.precedence(),
        }
    }

    /// Prints the expression, in parentheses if its precedence requires them.
    fn print_within(&self, f: &mut fmt::Formatter<'_>, place: Precedence) -> fmt::Result {
        if self.precedence() < place {
            write!(f, "({self})")
        } else {
            write!(f, "{self}")
        }
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Power => libm::pow(left, right),
        }
    }

    fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Power => '^',
        }
    }

    fn precedence(self) -> Precedence {
        match self {
            Self::Add | Self::Subtract => Precedence::Sum,
            Self::Multiply | Self::Divide => Precedence::Product,
            Self::Power => Precedence::Power,
        }
    }

    /// Returns the precedence that the left and the right operand need to go without parentheses.
    fn sides(self) -> (Precedence, Precedence) {
        match self.precedence() {
            Precedence::Sum => (Precedence::Sum, Precedence::Product),
            Precedence::Product => (Precedence::Product, Precedence::Negative),
            _ => (Precedence::Atom, Precedence::Negative),
        }
    }
}

/// Prints the expression as it was parsed: spaces around operators, and only the parentheses that it needs.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write_number(f, *number),
            Self::Negative(inner) => {
                f.write_str("-")?;
                inner.print_within(f, Precedence::Negative)
            }
            Self::Binary {
                left,
                operator,
                right,
            } => {
                let (left_place, right_place) = operator.sides();
                left.print_within(f, left_place)?;
                write!(f, " {} ", operator.symbol())?;
                right.print_within(f, right_place)
            }
        }
    }
}

/// Prints a number, with an exponent if it is far from 1.
fn write_number(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    if number == 0.0 || (1e-6..1e16).contains(&number) {
        write!(f, "{number}")
    } else {
        write!(f, "{number:e}")
    }
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
