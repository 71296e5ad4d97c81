//! TypeScript as JavaScript: every type is replaced by blanks, so that lines and columns stay as they are. What TypeScript
//! adds to the language besides types (enums, namespaces, parameter properties, decorators, `<T>x`) is refused.
//!
//! This runs in the confined worker, and only for a script that is not JavaScript.

use std::ops::{ControlFlow, Range};

use thiserror::Error;
use tree_sitter::{Node, ParseOptions, Parser, Point, Tree, TreeCursor};

use crate::position::{Position, characters};

/// The nodes in which `readonly` and `abstract` are modifiers.
const MODIFIED: &[&str] = &["public_field_definition", "abstract_class_declaration"];
/// The nodes in which `?` says that something may be left out.
const OPTIONAL: &[&str] = &[
    "optional_parameter",
    "public_field_definition",
    "method_definition",
];
/// The nodes in which `!` says that something is there.
const DEFINITE: &[&str] = &[
    "non_null_expression",
    "variable_declarator",
    "public_field_definition",
];

/// A script whose types cannot be removed.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum StripError {
    /// It is not TypeScript either, or the time is over.
    #[error("not TypeScript")]
    NotTypeScript,
    #[error("TypeScript {what} not supported: {remedy}")]
    Unsupported {
        what: &'static str,
        remedy: &'static str,
        at: Position,
    },
}

/// Replaces the types of a script by blanks. Gives up when `is_over` says so.
pub(crate) fn strip_types(code: &str, is_over: impl Fn() -> bool) -> Result<String, StripError> {
    let tree = parse(code, is_over).ok_or(StripError::NotTypeScript)?;
    let mut eraser = Eraser {
        code,
        text: code.as_bytes().to_vec(),
    };
    walk(&mut tree.walk(), |place| eraser.check_brackets(place.node))?;
    walk(&mut tree.walk(), |place| eraser.visit(place))?;
    String::from_utf8(eraser.text).map_err(|_| StripError::NotTypeScript)
}

/// Returns the syntax tree of a script without errors.
fn parse(code: &str, is_over: impl Fn() -> bool) -> Option<Tree> {
    let mut parser = Parser::new();
    let language = tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into();
    parser.set_language(&language).ok()?;
    let mut go_on = |_: &tree_sitter::ParseState| {
        if is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let read = &mut |at: usize, _: Point| code.as_bytes().get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(read, None, Some(options))?;
    (!tree.root_node().has_error()).then_some(tree)
}

/// The treatment of a node.
enum Step {
    Descend,
    /// It has been dealt with.
    Next,
}

struct Eraser<'a> {
    code: &'a str,
    text: Vec<u8>,
}

/// A node with the nodes around it. The parser's own `parent` walks down from the root each time, which takes quadratic time
/// in a script that is nested deeply.
#[derive(Clone, Copy)]
struct NodePosition<'a, 'tree> {
    node: Node<'tree>,
    /// The outermost first.
    around: &'a [Node<'tree>],
}

impl<'tree> NodePosition<'_, 'tree> {
    fn parent(self) -> Option<Node<'tree>> {
        self.around.last().copied()
    }

    fn is_in(self, parents: &[&str]) -> bool {
        self.parent().is_some_and(|it| parents.contains(&it.kind()))
    }
}

/// Visits all nodes in their order. This does not recurse: a script can be nested deeply.
fn walk<'tree>(
    cursor: &mut TreeCursor<'tree>,
    mut visit: impl FnMut(NodePosition<'_, 'tree>) -> Result<Step, StripError>,
) -> Result<(), StripError> {
    let mut around = Vec::new();
    loop {
        let node = cursor.node();
        let step = visit(NodePosition {
            node,
            around: &around,
        })?;
        if matches!(step, Step::Descend) && cursor.goto_first_child() {
            around.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(());
            }
            around.pop();
        }
    }
}

impl Eraser<'_> {
    /// Refuses a type that continues on the next line with a bracket: TypeScript ends the statement there, and the parser
    /// does not.
    fn check_brackets(&self, node: Node<'_>) -> Result<Step, StripError> {
        let children = match node.kind() {
            "lookup_type" | "array_type" => node.child(0).zip(node.child(1)),
            _ => None,
        };
        match children {
            Some((of, bracket))
                if self.code[of.end_byte()..bracket.start_byte()].contains('\n') =>
            {
                Err(self.unsupported(
                    bracket,
                    "statements without a semicolon in front of [ are",
                    "add the semicolon",
                ))
            }
            _ => Ok(Step::Descend),
        }
    }

    fn visit(&mut self, place: NodePosition<'_, '_>) -> Result<Step, StripError> {
        self.check_supported(place.node)?;
        let node = place.node;
        match node.kind() {
            "type_parameters"
            | "type_annotation"
            | "asserts_annotation"
            | "type_predicate_annotation" => self.erase_of_function(place),
            "type_arguments" | "implements_clause" => self.blank(node.byte_range()),
            "accessibility_modifier" | "override_modifier" => self.erase_modifier(place),
            "readonly" | "abstract" if place.is_in(MODIFIED) => self.erase_modifier(place),
            "?" if place.is_in(OPTIONAL) => self.blank(node.byte_range()),
            "!" if place.is_in(DEFINITE) => self.blank(node.byte_range()),
            "as" | "satisfies" if place.is_in(&["as_expression", "satisfies_expression"]) => {
                self.erase_to_end_of_parent(place);
            }
            "interface_declaration"
            | "type_alias_declaration"
            | "ambient_declaration"
            | "function_signature"
            | "method_signature"
            | "abstract_method_signature"
            | "index_signature" => self.erase_statement(node),
            "public_field_definition" if has_child(node, &["declare", "abstract"]) => {
                self.erase_statement(node);
            }
            "import_statement" if has_child(node, &["type"]) => self.erase_statement(node),
            "required_parameter" if has_child(node, &["this"]) => self.erase_with_comma(place),
            _ => return Ok(Step::Descend),
        }
        Ok(Step::Next)
    }

    /// Refuses what is more than a type.
    fn check_supported(&self, node: Node<'_>) -> Result<(), StripError> {
        let is_property = || {
            has_child(
                node,
                &["accessibility_modifier", "override_modifier", "readonly"],
            )
        };
        let (what, remedy) = match node.kind() {
            "enum_declaration" => ("enums are", "use an object"),
            "internal_module" | "module" => ("namespaces are", "use an object"),
            "decorator" => ("decorators are", "call the function instead"),
            "type_assertion" => ("<T>x is", "write x as T"),
            "required_parameter" | "optional_parameter" if is_property() => (
                "parameter properties are",
                "declare the field, and assign it in the constructor",
            ),
            _ => return Ok(()),
        };
        Err(self.unsupported(node, what, remedy))
    }

    fn unsupported(&self, node: Node<'_>, what: &'static str, remedy: &'static str) -> StripError {
        let Point { row, column } = node.start_position();
        let number = |it: usize| u32::try_from(it + 1).unwrap_or(u32::MAX);
        let line = number(row);
        StripError::Unsupported {
            what,
            remedy,
            at: Position {
                line,
                column: characters(self.code, line, number(column)),
            },
        }
    }

    /// Replaces bytes by as many blanks. The ends of lines stay.
    fn blank(&mut self, range: Range<usize>) {
        for byte in &mut self.text[range] {
            if !matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    /// Blanks a statement or a member of a class. The semicolon keeps the lines before and after apart.
    fn erase_statement(&mut self, node: Node<'_>) {
        self.blank(node.byte_range());
        self.text[node.start_byte()] = b';';
    }

    /// Blanks a modifier. At the start of a member it may be all that separates the member from the line before.
    fn erase_modifier(&mut self, place: NodePosition<'_, '_>) {
        self.blank(place.node.byte_range());
        let start = place.node.start_byte();
        let is_first = place.parent().is_some_and(|it| it.start_byte() == start);
        if is_first && place.is_in(&["public_field_definition", "method_definition"]) {
            self.text[start] = b';';
        }
    }

    /// Blanks a type of a function. An arrow function may have no end of line between its parts, so the bracket beside the
    /// type takes the other end of it.
    fn erase_of_function(&mut self, place: NodePosition<'_, '_>) {
        let range = place.node.byte_range();
        self.blank(range.clone());
        let has_lines = self.code[range.clone()].contains('\n');
        if !has_lines || !place.is_in(&["arrow_function"]) {
            return;
        }
        let parameters = place
            .parent()
            .and_then(|it| it.child_by_field_name("parameters"));
        let Some(parameters) = parameters.map(|it| it.byte_range()) else {
            return;
        };
        let (old, new, bracket) = match place.node.kind() {
            "type_parameters" => (parameters.start, range.start, b'('),
            _ => (parameters.end - 1, range.end - 1, b')'),
        };
        self.text[old] = b' ';
        self.text[new] = bracket;
    }

    /// Blanks `as T` or `satisfies T`. If the next line would then continue the statement, a semicolon keeps it apart: the
    /// parser sees a call of `x as T` there, which TypeScript does not have.
    fn erase_to_end_of_parent(&mut self, place: NodePosition<'_, '_>) {
        let [.., outer, parent] = place.around else {
            return;
        };
        let start = place.node.start_byte();
        self.blank(start..parent.end_byte());
        let continues = [
            "call_expression",
            "member_expression",
            "subscript_expression",
        ];
        if continues.contains(&outer.kind()) && outer.start_byte() == parent.start_byte() {
            self.text[start] = b';';
        }
    }

    /// Blanks a parameter that is only a type, and the comma after it.
    fn erase_with_comma(&mut self, place: NodePosition<'_, '_>) {
        let after = place.node.end_byte();
        let rest = &self.code[after..];
        let space = rest.len() - rest.trim_start().len();
        let comma = usize::from(rest.trim_start().starts_with(','));
        self.blank(place.node.start_byte()..after + space + comma);
    }
}

fn has_child(node: Node<'_>, kinds: &[&str]) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .any(|it| kinds.contains(&it.kind()))
}

#[cfg(test)]
mod tests;
