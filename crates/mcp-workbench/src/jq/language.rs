//! The language: the functions that a filter may use, its check and its evaluation.

use jaq_core::{
    Compiler, Ctx, Cv, Vars, compile,
    data::JustLut,
    load::{self, Arena, File, Loader, parse::Def},
    native::{Fun, bome, run, v},
};
use jaq_json::{Val, read};
use jaq_std::ValT;
use regex_lite::RegexBuilder;

use super::FilterError;

type Data = JustLut<Val>;
/// The maximum size of a compiled regular expression.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

type Error = jaq_core::Error<Val>;

/// Definitions of the standard library whose functions are not available: they need the clock, other crates, or write
/// to stderr. `None` stands for every number of parameters.
const LEFT_OUT: &[(&str, Option<usize>)] = &[
    ("stderr", None),
    ("debug", None),
    ("halt", None),
    ("halt_error", None),
    ("logb", None),
    ("significand", None),
    ("pow10", None),
    ("drem", None),
    ("nexttoward", None),
    ("scalb", None),
    ("gamma", None),
    // The one with flags is native.
    ("test", Some(2)),
    ("scan", None),
    ("scan_", None),
    ("match", None),
    ("capture", None),
    ("split", Some(2)),
    ("splits", None),
    ("sub", None),
    ("gsub", None),
    ("todate", None),
    ("fromdate", None),
    ("@html", None),
    ("@htmld", None),
    ("@uri", None),
    ("@urid", None),
    ("@base64", None),
    ("@base64d", None),
];

/// Checks the syntax of a filter, and that it uses only functions that exist.
pub(super) fn check(code: &str) -> Result<(), FilterError> {
    let arena = Arena::default();
    compile(code, &arena).map(drop)
}

/// Applies a filter to a JSON text, and passes each output to `each`, which returns false if there is no room for
/// more. Strings are passed as they are, other values as JSON.
pub(super) fn evaluate(
    code: &str,
    input: &[u8],
    mut each: impl FnMut(&[u8]) -> bool,
) -> Result<(), String> {
    let arena = Arena::default();
    let filter = compile(code, &arena).map_err(|error| error.to_string())?;
    let input = read::parse_single(input).map_err(|error| format!("invalid JSON: {error}"))?;
    let context = Ctx::<Data>::new(&filter.lut, Vars::new([]));
    for output in filter.id.run((context, input)) {
        let output = jaq_core::unwrap_valr(output).map_err(message)?;
        let has_room = match output.as_utf8_bytes() {
            Some(text) => each(text),
            None => each(output.to_string().as_bytes()),
        };
        if !has_room {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns an error as text: a string as it is, another value as JSON.
fn message(error: Error) -> String {
    let value = error.into_val();
    text(&value).map_or_else(|_| value.to_string(), str::to_owned)
}

fn compile<'a>(code: &'a str, arena: &'a Arena) -> Result<jaq_core::Filter<Data>, FilterError> {
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(is_available);
    let main = File { code, path: () };
    let modules = Loader::new(defs)
        .load(arena, main)
        .map_err(|errors| load_error(code, &errors))?;
    // Files of data are named by `import` too.
    load::import(&modules, |_| Err(String::new())).map_err(|errors| load_error(code, &errors))?;
    let natives = jaq_core::funs()
        .chain(jaq_std::base_funs())
        .chain(jaq_json::funs())
        .filter(|(name, _, _)| !is_left_out(name, None));
    let compiled = Compiler::default()
        .with_funs(natives.chain([test()]))
        .compile(modules);
    compiled.map_err(|errors| compile_error(code, &errors))
}

fn is_available(def: &Def<&'static str>) -> bool {
    !is_left_out(def.name, Some(def.args.len()))
}

fn is_left_out(name: &str, parameters: Option<usize>) -> bool {
    let mut left_out = LEFT_OUT.iter();
    left_out.any(|(it, count)| *it == name && (count.is_none() || *count == parameters))
}

/// Returns the function `test(re; flags)`. Its engine takes linear time.
fn test() -> Fun<Data> {
    run(("test", v(2), |arguments| bome(matches(arguments))))
}

fn matches(mut arguments: Cv<'_, Data>) -> Result<Val, Error> {
    // The last parameter is popped first.
    let flags = arguments.0.pop_var();
    let pattern = arguments.0.pop_var();
    let (pattern, flags) = (text(&pattern)?, text(&flags)?);
    let mut builder = RegexBuilder::new(pattern);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            's' => builder.dot_matches_new_line(true),
            // They matter only for the positions of matches.
            'g' | 'n' => &mut builder,
            _ => return Err(Error::str(format!("invalid flag of test: {flag}"))),
        };
    }
    let pattern = builder
        .size_limit(MAX_PATTERN_BYTES)
        .build()
        .map_err(|error| Error::str(format!("invalid regex: {error}")))?;
    // The second part of the arguments is the input of the filter.
    Ok(Val::from(pattern.is_match(text(&arguments.1)?)))
}

fn text(value: &Val) -> Result<&str, Error> {
    let text = value.as_utf8_bytes().map(str::from_utf8);
    match text {
        Some(Ok(text)) => Ok(text),
        _ => Err(Error::typ(value.clone(), "string")),
    }
}

/// Returns the first error of the parser.
fn load_error(code: &str, errors: &load::Errors<&str, ()>) -> FilterError {
    match errors.first().map(|(_, error)| error) {
        Some(load::Error::Lex(errors)) => match errors.first() {
            Some((expected, place)) => {
                syntax(code, place, &format!("expected {}", expected.as_str()))
            }
            None => FilterError::NotChecked,
        },
        Some(load::Error::Parse(errors)) => match errors.first() {
            Some((expected, found)) => {
                let expected = expected.as_str();
                let what = match *found {
                    "" => format!("expected {expected}, found the end of the filter"),
                    found => format!("expected {expected}, found `{found}`"),
                };
                syntax(code, found, &what)
            }
            None => FilterError::NotChecked,
        },
        Some(load::Error::Io(errors)) => match errors.first() {
            Some((place, _)) => syntax(code, place, "modules are not available"),
            None => FilterError::NotChecked,
        },
        None => FilterError::NotChecked,
    }
}

/// Returns the first undefined name.
fn compile_error(code: &str, errors: &compile::Errors<&str, ()>) -> FilterError {
    let mut errors = errors.iter().flat_map(|(_, errors)| errors);
    match errors.next() {
        Some((name, kind)) => {
            let what = format!("undefined {} `{name}`", kind.as_str());
            syntax(code, name, &what)
        }
        None => FilterError::NotChecked,
    }
}

/// Creates an error at a part of the filter.
fn syntax(code: &str, part: &str, what: &str) -> FilterError {
    // Parts are slices of the filter, so that their address gives their place in it.
    let at = (part.as_ptr() as usize).checked_sub(code.as_ptr() as usize);
    let before = at.and_then(|at| code.get(..at)).unwrap_or(code);
    FilterError::Syntax {
        what: what.to_owned(),
        column: before.chars().count() + 1,
    }
}
