//! Parses an expression by recursive descent:
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = signed (("*" | "/") signed)*
//! signed  = "-" signed | power
//! power   = atom ("^" signed)?
//! atom    = number | "(" sum ")"
//! ```

use super::{Expression, ExpressionError, Operator};

/// The longest expression, in characters. It also bounds how deep a chain such as `1+1+1` is.
const MAX_LENGTH: usize = 1000;
/// The maximum nesting of parentheses, signs and powers.
const MAX_DEPTH: usize = 64;

type Parsed = Result<Expression, ExpressionError>;

impl Expression {
    pub(in super::super) fn parse(text: &str) -> Parsed {
        let characters: Vec<char> = text.chars().collect();
        if characters.len() > MAX_LENGTH {
            return Err(ExpressionError::TooLong {
                length: characters.len(),
                limit: MAX_LENGTH,
            });
        }
        let mut parser = Parser {
            characters,
            next: 0,
            depth: 0,
        };
        let expression = parser.sum()?;
        match parser.peek() {
            None => Ok(expression),
            Some(found) => Err(ExpressionError::NoOperator {
                found,
                position: parser.position(),
            }),
        }
    }
}

struct Parser {
    characters: Vec<char>,
    /// The index of the next character.
    next: usize,
    depth: usize,
}

impl Parser {
    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(left),
            };
            self.next += 1;
            left = binary(left, operator, self.product()?);
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                _ => return Ok(left),
            };
            self.next += 1;
            left = binary(left, operator, self.signed()?);
        }
    }

    /// Every cycle of the grammar goes through here, so this is where the depth is counted.
    fn signed(&mut self) -> Parsed {
        if self.depth == MAX_DEPTH {
            return Err(ExpressionError::TooDeep { limit: MAX_DEPTH });
        }
        self.depth += 1;
        let parsed = if self.take('-') {
            self.signed()
                .map(|inner| Expression::Negative(Box::new(inner)))
        } else {
            self.power()
        };
        self.depth -= 1;
        parsed
    }

    fn power(&mut self) -> Parsed {
        let base = self.atom()?;
        if self.take('^') {
            Ok(binary(base, Operator::Power, self.signed()?))
        } else {
            Ok(base)
        }
    }

    fn atom(&mut self) -> Parsed {
        match self.peek() {
            None => Err(ExpressionError::Incomplete),
            Some('(') => self.parenthesised(),
            Some('0'..='9' | '.') => self.number(),
            Some(found) => Err(ExpressionError::NoOperand {
                found,
                position: self.position(),
            }),
        }
    }

    fn parenthesised(&mut self) -> Parsed {
        let opened_at = self.position();
        self.next += 1;
        let inner = self.sum()?;
        match self.peek() {
            Some(')') => {
                self.next += 1;
                Ok(inner)
            }
            None => Err(ExpressionError::Unclosed {
                position: opened_at,
            }),
            Some(found) => Err(ExpressionError::NoOperator {
                found,
                position: self.position(),
            }),
        }
    }

    /// Parses digits with at most one point, and an exponent such as `e-3` if digits follow it.
    fn number(&mut self) -> Parsed {
        let start = self.next;
        self.skip(|character| character.is_ascii_digit() || character == '.');
        if self.is_exponent() {
            self.next += 2;
            self.skip(|character| character.is_ascii_digit());
        }
        let text: String = self.characters[start..self.next].iter().collect();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Expression::Number(number)),
            Ok(_) => Err(ExpressionError::TooLarge { part: text }),
            Err(_) => Err(ExpressionError::BadNumber {
                text,
                position: start + 1,
            }),
        }
    }

    fn is_exponent(&self) -> bool {
        matches!(
            self.characters.get(self.next..).unwrap_or_default(),
            ['e' | 'E', '0'..='9', ..] | ['e' | 'E', '+' | '-', '0'..='9', ..]
        )
    }

    fn skip(&mut self, belongs: impl Fn(char) -> bool) {
        while self
            .characters
            .get(self.next)
            .is_some_and(|character| belongs(*character))
        {
            self.next += 1;
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.next += 1;
        }
        is_next
    }

    /// Returns the next character that is not white space, without consuming it.
    fn peek(&mut self) -> Option<char> {
        self.skip(char::is_whitespace);
        self.characters.get(self.next).copied()
    }

    /// Returns the position of the next character, from 1.
    fn position(&self) -> usize {
        self.next + 1
    }
}

fn binary(left: Expression, operator: Operator, right: Expression) -> Expression {
    Expression::Binary {
        left: Box::new(left),
        operator,
        right: Box::new(right),
    }
}
