use pretty_assertions::assert_eq;

use super::*;

fn strip(code: &str) -> Result<String, StripError> {
    strip_types(code, || false)
}

/// Scripts, and what is left of them.
const STRIPPED: &[(&str, &str)] = &[
    ("const a: number = 1;", "const a         = 1;"),
    (
        "let a!: string, b: X<Y>[] = [];",
        "let a         , b         = [];",
    ),
    (
        "const m = new Map<string, number>();",
        "const m = new Map                ();",
    ),
    (
        "f<string>(x as any, y!, z satisfies T)",
        "f        (x       , y , z            )",
    ),
    (
        "return a!.b![0] as unknown as T;",
        "return a .b [0]                ;",
    ),
    ("const c = [1] as const;", "const c = [1]         ;"),
    (
        "function f<T>(this: X, a?: T, ...r: any[]): a is string { return !a }",
        "function f   (         a    , ...r       )              { return !a }",
    ),
    (
        "const f = async <T,>({ a }: X = {}): Promise<T> => a ? 1 : 2;",
        "const f = async     ({ a }    = {})             => a ? 1 : 2;",
    ),
    (
        "try {} catch (e: unknown) {}",
        "try {} catch (e         ) {}",
    ),
    (
        "interface A { a: string }\n(1)",
        ";                        \n(1)",
    ),
    ("type A = B\n  [].at(0)", ";         \n  [].at(0)"),
    (
        "type A =\n  | 'ä'\n  | 2\n[1].at(0)",
        ";       \n        \n     \n[1].at(0)",
    ),
    (
        "declare const a: string;\nf()",
        ";                       \nf()",
    ),
    (
        "function f(a: string): void;\nfunction f(a) {}",
        ";                           \nfunction f(a) {}",
    ),
    (
        "import type { A } from 'a';\n1",
        ";                          \n1",
    ),
    // The line after a type without a semicolon does not continue the statement.
    ("const a = b as T\n(1)", "const a = b ;   \n(1)"),
    ("const a = b as T\n+ 1", "const a = b     \n+ 1"),
    ("const a = (b as T)\n", "const a = (b     )\n"),
    // A line may not end in front of an arrow.
    (
        "const f = (a: {\n  b: 1\n}): Promise<{\n  c: 2\n}> => a",
        "const f = (a   \n      \n            \n      \n ) => a",
    ),
    (
        "f(async <\n  T\n>(a: T) => a)",
        "f(async (\n   \n  a   ) => a)",
    ),
    (
        "abstract class A<T> extends B<T> implements C { private static x: T = 1; readonly y?: T; declare z: T; [k: string]: any; abstract m(): void; override get v(): T { return 1 } m?(): void {} }",
        "         class A    extends B                 { ;       static x    = 1; ;        y    ; ;           ; ;               ; ;                 ; ;        get v()    { return 1 } m ()       {} }",
    ),
    (
        "label: for (const k in a ? b : c) {}",
        "label: for (const k in a ? b : c) {}",
    ),
];

#[test]
fn types_become_blanks() {
    for (code, expected) in STRIPPED {
        let stripped = strip(code).unwrap();
        let lines = |text: &str| {
            text.lines()
                .map(|it| it.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&stripped), lines(expected), "{code}");
        assert_eq!(stripped.len(), code.len(), "{code}");
    }
}

#[test]
fn what_is_not_only_a_type_is_refused_with_its_place() {
    let rows = [
        (
            "const a = 1;\nenum E { A }",
            "TypeScript enums are not supported: use an object",
            (2, 1),
        ),
        (
            "const enum E { A }",
            "TypeScript enums are not supported: use an object",
            (1, 1),
        ),
        (
            "namespace N { export const a = 1 }",
            "TypeScript namespaces are not supported: use an object",
            (1, 1),
        ),
        (
            "class A { constructor(private a: string) {} }",
            "TypeScript parameter properties are not supported: declare the field, and assign it in the constructor",
            (1, 23),
        ),
        (
            "class A { @dec m() {} }",
            "TypeScript decorators are not supported: call the function instead",
            (1, 11),
        ),
        (
            "const a = b as T\n[1].at(0)",
            "TypeScript statements without a semicolon in front of [ are not supported: add the semicolon",
            (2, 1),
        ),
        (
            "const ä = <any>b;",
            "TypeScript <T>x is not supported: write x as T",
            (1, 11),
        ),
    ];
    for (code, message, (line, column)) in rows {
        let error = strip(code).unwrap_err();
        assert_eq!(error.to_string(), message, "{code}");
        let StripError::Unsupported { at, .. } = error else {
            panic!("{code}");
        };
        assert_eq!((at.line, at.column), (line, column), "{code}");
    }
}

#[test]
fn what_is_not_typescript_is_left_to_the_engine() {
    for code in ["const a = ;", "const a: = 1", "return (", "}", "\u{0}\u{1}"] {
        assert_eq!(strip(code), Err(StripError::NotTypeScript), "{code}");
    }
    assert_eq!(
        strip_types(&"a: number;\n".repeat(5000), || true),
        Err(StripError::NotTypeScript)
    );
}

#[test]
fn deep_and_long_scripts_do_not_use_up_the_stack() {
    let deep = format!(
        "const a: number = {}1{};",
        "(".repeat(20_000),
        ")".repeat(20_000)
    );
    // Either is fine; the process must survive.
    let _ = strip(&deep);
    let types = format!(
        "type A = {}1{};",
        "{ a: ".repeat(10_000),
        " }".repeat(10_000)
    );
    let _ = strip(&types);
}
