//! Plain tables: a heading where there is one, columns that are as wide as they need to be, and a last column that gets the rest.

use super::{
    cut,
    look::{Ink, Look},
};

/// What stands between two columns.
const GAP: &str = "  ";

/// The last column is not cut below this.
const LEAST_WIDTH: usize = 20;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum Column {
    /// Text, which begins at the left.
    Text(&'static str),
    /// Numbers, which end at the right.
    Number(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Text(heading) | Self::Number(heading) => heading,
        }
    }

    fn padded(self, cell: &str, width: usize) -> String {
        match self {
            Self::Text(_) => format!("{cell:<width$}"),
            Self::Number(_) => format!("{cell:>width$}"),
        }
    }
}

/// A table that is filled row by row.
pub(in crate::cli) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(in crate::cli) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; its cells are visible text.
    pub(in crate::cli) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// The table as lines, each behind `indent`.
    pub(in crate::cli) fn render(&self, look: Look, indent: &str) -> String {
        let headings = self
            .columns
            .iter()
            .map(|column| column.heading().to_owned());
        let headings: Vec<String> = headings.collect();
        let mut text = String::new();
        if headings.iter().any(|heading| !heading.is_empty()) {
            text.push_str(&look.paint(Ink::Faint, &self.line(&headings, look, indent)));
            text.push('\n');
        }
        for row in &self.rows {
            text.push_str(&self.line(row, look, indent));
            text.push('\n');
        }
        text
    }

    fn line(&self, cells: &[String], look: Look, indent: &str) -> String {
        let mut line = indent.to_owned();
        for (index, column) in self.columns.iter().enumerate() {
            let cell = cells.get(index).map_or("", String::as_str);
            if index + 1 == self.columns.len() {
                let used = line.chars().count();
                let room = look
                    .width()
                    .map(|width| width.saturating_sub(used).max(LEAST_WIDTH));
                line.push_str(&room.map_or_else(|| cell.to_owned(), |room| cut(cell, room)));
            } else {
                line.push_str(&column.padded(cell, self.width(index)));
                line.push_str(GAP);
            }
        }
        line.trim_end().to_owned()
    }

    fn width(&self, index: usize) -> usize {
        let heading = self.columns[index].heading().chars().count();
        let cells = self.rows.iter().filter_map(|row| row.get(index));
        let cells = cells.map(|cell| cell.chars().count());
        cells.chain([heading]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [
            Column::Text("name"),
            Column::Number("tools"),
            Column::Text("what"),
        ];
        let mut table = Table::new(columns);
        table.row([
            "fs".to_owned(),
            "12".to_owned(),
            "reads and writes files".to_owned(),
        ]);
        table.row(["database".to_owned(), "3".to_owned(), String::new()]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        assert_eq!(
            table().render(Look::PLAIN, "  "),
            "  name      tools  what\n  \
               fs           12  reads and writes files\n  \
               database      3\n"
        );
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        let shown = table().render(Look::of_width(false, 37), "");
        assert_eq!(
            shown,
            "name      tools  what\n\
             fs           12  reads and writes fi…\n\
             database      3\n"
        );
    }
}
