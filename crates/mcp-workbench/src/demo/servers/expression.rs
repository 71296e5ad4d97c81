//! Arithmetic: what an expression is, its value, and how it is printed. `parse` reads it.
//!
//! Numbers are double-precision floating point. `^` binds tighter than a minus sign before it
//! (`-2 ^ 2` is -4) and groups from the right; the other operators group from the left.

mod parse;

use std::fmt;

/// An expression that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// A number as written, never negative.
    Number(f64),
    /// A minus sign before something.
    Negative(Box<Self>),
    /// Two things with an operator between.
    Binary {
        /// What is left of the operator.
        left: Box<Self>,
        operator: Operator,
        /// What is right of it.
        right: Box<Self>,
    },
}

/// What stands between two numbers.
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

/// Why an expression cannot be read, or has no value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ExpressionError {
    /// It is longer than what is read.
    #[error("the expression has {length} characters, and at most {limit} are read")]
    TooLong { length: usize, limit: usize },
    /// Its parentheses, signs and powers stand too deep in each other.
    #[error("the expression is nested more than {limit} deep: evaluate its parts one by one")]
    TooDeep { limit: usize },
    #[error("the expression ends where a number, `(` or `-` must follow")]
    Incomplete,
    /// A parenthesis is open at its end.
    #[error("the `(` at character {position} is never closed")]
    Unclosed {
        /// Where it stands, from 1 on.
        position: usize,
    },
    /// Something stands where a number or the like must stand.
    #[error("`{found}` at character {position} stands where a number, `(` or `-` must stand")]
    NoOperand {
        found: char,
        /// Where it stands, from 1 on.
        position: usize,
    },
    /// Something stands where an operator must stand.
    #[error(
        "`{found}` at character {position} stands where one of + - * / ^ or the end must stand"
    )]
    NoOperator {
        found: char,
        /// Where it stands, from 1 on.
        position: usize,
    },
    /// A number is not written as one.
    #[error("`{text}` at character {position} is not a number")]
    BadNumber {
        text: String,
        /// Where it begins, from 1 on.
        position: usize,
    },
    /// Something is divided by zero.
    #[error("division by zero: `{divisor}` is 0; check it, or leave this division out")]
    DivisionByZero { divisor: String },
    /// A root of a negative number.
    #[error("`{part}` is not a real number: a negative number has only whole powers")]
    NotReal { part: String },
    /// The value does not fit.
    #[error("`{part}` is too large: values reach to about 1.8e308")]
    TooLarge { part: String },
}

/// How tightly an expression holds together; the tighter, the later in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tightness {
    Sum,
    Product,
    Negative,
    Power,
    Atom,
}

impl Expression {
    /// Its value, which is always a finite number.
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

    fn tightness(&self) -> Tightness {
        match self {
            Self::Number(_) => Tightness::Atom,
            Self::Negative(_) => Tightness::Negative,
            Self::Binary { operator, .. } => operator.tightness(),
        }
    }

    /// Prints it, in parentheses if it is looser than its place allows.
    fn print_within(&self, f: &mut fmt::Formatter<'_>, place: Tightness) -> fmt::Result {
        if self.tightness() < place {
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

    fn tightness(self) -> Tightness {
        match self {
            Self::Add | Self::Subtract => Tightness::Sum,
            Self::Multiply | Self::Divide => Tightness::Product,
            Self::Power => Tightness::Power,
        }
    }

    /// How tight the operands must be to stand on its left and on its right without parentheses.
    fn sides(self) -> (Tightness, Tightness) {
        match self.tightness() {
            Tightness::Sum => (Tightness::Sum, Tightness::Product),
            Tightness::Product => (Tightness::Product, Tightness::Negative),
            _ => (Tightness::Atom, Tightness::Negative),
        }
    }
}

/// As it was understood: spaces around operators, and only the parentheses that it needs.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write_number(f, *number),
            Self::Negative(inner) => {
                f.write_str("-")?;
                inner.print_within(f, Tightness::Negative)
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

/// Numbers far from 1 are printed with an exponent.
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
