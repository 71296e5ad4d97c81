//! Matches a URI against a template. It covers enough of RFC 6570 to find the server of a resource: a plain
//! expression matches one segment of a path, one with an operator matches anything.

/// A piece of a template.
enum Piece<'a> {
    /// Text that must match literally.
    Literal(&'a str),
    /// At least one character, but no slash.
    Part,
    /// Anything, including nothing.
    Anything,
}

/// Returns whether `uri` can be an expansion of `template`.
pub(super) fn matches(template: &str, uri: &str) -> bool {
    let pieces = pieces(template);
    // The reachable positions in the URI after each piece. This stays linear in the template, whatever it contains.
    let mut reachable = vec![false; uri.len() + 1];
    reachable[0] = true;
    for piece in pieces {
        reachable = step(&piece, uri, &reachable);
    }
    reachable[uri.len()]
}

fn step(piece: &Piece<'_>, uri: &str, from: &[bool]) -> Vec<bool> {
    let mut to = vec![false; from.len()];
    let mut carried = false;
    for (at, reached) in from.iter().enumerate() {
        match piece {
            Piece::Literal(text) => {
                if *reached && uri.as_bytes()[at..].starts_with(text.as_bytes()) {
                    to[at + text.len()] = true;
                }
            }
            Piece::Part => {
                // Before `carried` takes this position in: a part has at least one character.
                to[at] = carried;
                carried = (carried || *reached) && uri.as_bytes().get(at) != Some(&b'/');
            }
            Piece::Anything => {
                carried |= *reached;
                to[at] = carried;
            }
        }
    }
    to
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((expression, behind)) = after.split_once('}') else {
            // A brace that is not closed is text.
            break;
        };
        pieces.push(Piece::Literal(literal));
        let plain = expression.starts_with(|it: char| it.is_alphanumeric() || it == '_');
        let single = !expression.contains(['*', ',', ':']);
        pieces.push(if plain && single {
            Piece::Part
        } else {
            Piece::Anything
        });
        rest = behind;
    }
    pieces.push(Piece::Literal(rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn uris_are_matched_to_templates() {
        let rows = [
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template//data", false),
            (
                "test://template/{id}/data",
                "test://template/7/8/data",
                false,
            ),
            (
                "test://template/{id}/data",
                "test://template/7/data/more",
                false,
            ),
            ("file:///{+path}", "file:///a/b/c", true),
            ("file:///{path*}", "file:///a/b", true),
            ("u:{a}-{b}", "u:1-2-3", true),
            ("u:{a}-{b}", "u:12", false),
            ("u:x", "u:x", true),
            ("u:x", "u:y", false),
            ("{anything}", "", false),
            ("u:{unclosed", "u:{unclosed", true),
            ("search{?q,n}", "search?q=1", true),
        ];
        for (template, uri, expected) in rows {
            assert_eq!(matches(template, uri), expected, "{template} {uri}");
        }
    }
}
