use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn evaluate(text: &str) -> Result<f64, String> {
    Expression::parse(text)
        .and_then(|expression| expression.value())
        .map_err(|error| error.to_string())
}

#[test]
fn expressions_have_their_values() {
    let table = [
        ("1", 1.0),
        (" 1.5 ", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("2e3", 2000.0),
        ("25E-1", 2.5),
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("100 / 10 / 5", 2.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("(2 ^ 3) ^ 2", 64.0),
        ("-2 ^ 2", -4.0),
        ("(-2) ^ 2", 4.0),
        ("2 ^ -1", 0.5),
        ("2 * -3", -6.0),
        ("1 - -1", 2.0),
        ("--1", 1.0),
        ("-(3 - 5)", 2.0),
        ("9 ^ 0.5", 3.0),
        ("(-8) ^ 3", -512.0),
        ("0 ^ 0", 1.0),
        ("0 / 5", 0.0),
        ("((((1))))", 1.0),
        ("(17 + 4) * 2 ^ 3 / 1.5", 112.0),
    ];
    for (text, value) in table {
        assert_eq!(evaluate(text), Ok(value), "{text}");
    }
}

#[test]
fn syntax_errors_name_the_position() {
    let table = [
        (
            "",
            "unexpected end of the expression: expected a number, `(` or `-`",
        ),
        (
            "1 +",
            "unexpected end of the expression: expected a number, `(` or `-`",
        ),
        ("(1 + 2", "the `(` at character 1 is never closed"),
        (
            "1 + 2)",
            "unexpected `)` at character 6: expected one of + - * / ^ or the end",
        ),
        (
            "2 3",
            "unexpected `3` at character 3: expected one of + - * / ^ or the end",
        ),
        (
            "2e",
            "unexpected `e` at character 2: expected one of + - * / ^ or the end",
        ),
        (
            "()",
            "unexpected `)` at character 2: expected a number, `(` or `-`",
        ),
        (
            "2 ** 3",
            "unexpected `*` at character 4: expected a number, `(` or `-`",
        ),
        (
            "+1",
            "unexpected `+` at character 1: expected a number, `(` or `-`",
        ),
        (
            "é + 1",
            "unexpected `é` at character 1: expected a number, `(` or `-`",
        ),
        ("1 + 1.2.3", "`1.2.3` at character 5 is not a number"),
        (".", "`.` at character 1 is not a number"),
    ];
    for (text, expected) in table {
        assert_eq!(evaluate(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn errors_of_evaluation_name_the_part() {
    let table = [
        (
            "1 / 0",
            "division by zero: `0` is 0; check it, or remove this division",
        ),
        (
            "1 + 0/(3-3)",
            "division by zero: `3 - 3` is 0; check it, or remove this division",
        ),
        (
            "(2 - 2)^-1",
            "division by zero: `2 - 2` is 0; check it, or remove this division",
        ),
        (
            "1 + (-8)^.5",
            "`(-8) ^ 0.5` is not a real number: a negative number has only whole powers",
        ),
        (
            "10^400 - 1",
            "`10 ^ 400` is too large: values reach to about 1.8e308",
        ),
        (
            "1e999",
            "`1e999` is too large: values reach to about 1.8e308",
        ),
        (
            "1e308 * -10",
            "`1e308 * -10` is too large: values reach to about 1.8e308",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(evaluate(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn length_and_depth_are_bounded() {
    let deep = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(evaluate(&deep(63)), Ok(1.0));
    let too_deep = "the expression is nested more than 64 deep: evaluate its parts one by one";
    for text in [deep(64), "-".repeat(64) + "1", "1^".repeat(64) + "1"] {
        assert_eq!(evaluate(&text), Err(too_deep.to_owned()));
    }
    let chain = |terms: usize| vec!["1"; terms].join("+");
    assert_eq!(evaluate(&chain(500)), Ok(500.0));
    assert_eq!(
        evaluate(&chain(501)),
        Err("the expression has 1001 characters, but at most 1000 are allowed".to_owned())
    );
}

#[test]
fn printing_keeps_only_the_parentheses_that_are_needed() {
    for (text, printed) in [
        ("((1+2))*3", "(1 + 2) * 3"),
        ("(1*2)+3", "1 * 2 + 3"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("(1-2)-3", "1 - 2 - 3"),
        ("-(2^2)", "-2 ^ 2"),
        ("(-2)^2", "(-2) ^ 2"),
        ("2^(3^2)", "2 ^ 3 ^ 2"),
        ("12345678901234567890", "1.2345678901234567e19"),
        ("0.000000001", "1e-9"),
    ] {
        assert_eq!(Expression::parse(text).unwrap().to_string(), printed);
    }
}

fn expressions() -> impl Strategy<Value = Expression> {
    let operators = prop_oneof![
        Just(Operator::Add),
        Just(Operator::Subtract),
        Just(Operator::Multiply),
        Just(Operator::Divide),
        Just(Operator::Power),
    ];
    let numbers = prop_oneof![
        (0..1000_u32).prop_map(f64::from),
        (0.0..1e3_f64),
        proptest::num::f64::POSITIVE,
    ];
    numbers
        .prop_map(Expression::Number)
        .prop_recursive(6, 24, 2, move |inner| {
            prop_oneof![
                inner
                    .clone()
                    .prop_map(|inner| Expression::Negative(Box::new(inner))),
                (inner.clone(), operators.clone(), inner).prop_map(|(left, operator, right)| {
                    Expression::Binary {
                        left: Box::new(left),
                        operator,
                        right: Box::new(right),
                    }
                }),
            ]
        })
}

proptest! {
    #[test]
    fn printed_expressions_parse_to_the_same_expression(expression in expressions()) {
        let printed = expression.to_string();
        prop_assume!(printed.chars().count() <= 1000);
        prop_assert_eq!(Expression::parse(&printed), Ok(expression), "{}", printed);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+*/^()0-9.e x]{0,40}|.{0,40}") {
        if let Ok(expression) = Expression::parse(&text) {
            prop_assert!(expression.value().is_ok_and(f64::is_finite) || expression.value().is_err());
        }
    }
}
