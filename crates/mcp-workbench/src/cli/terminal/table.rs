//! Plain tables. Columns are as wide as their content; on a narrow terminal the widest text columns are cut.

use super::{
    cut,
    style::{Ink, OutputStyle},
};

const GAP: &str = "  ";

/// The minimum width of a text column.
const MIN_TEXT_WIDTH: usize = 8;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum Column {
    /// Left-aligned text.
    Text(&'static str),
    /// Right-aligned numbers.
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

    /// Formats the table, each line behind `indent`.
    pub(in crate::cli) fn render(&self, style: OutputStyle, indent: &str) -> String {
        let widths = self.widths(style, indent);
        let headings: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.heading().to_owned())
            .collect();
        let mut text = String::new();
        if headings.iter().any(|heading| !heading.is_empty()) {
            text.push_str(&style.paint(Ink::Faint, &self.line(&headings, &widths, indent)));
            text.push('\n');
        }
        for row in &self.rows {
            text.push_str(&self.line(row, &widths, indent));
            text.push('\n');
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize], indent: &str) -> String {
        let columns = self.columns.iter().zip(widths).enumerate();
        let cells = columns.map(|(index, (column, width))| {
            let cell = cells.get(index).map_or("", String::as_str);
            column.padded(&cut(cell, *width), *width)
        });
        // Padding of the last column is trimmed, so that copied lines have no trailing blanks.
        let line = cells.collect::<Vec<_>>().join(GAP);
        format!("{indent}{line}").trim_end().to_owned()
    }

    /// Returns the widths of the columns, reduced to the width of the terminal.
    fn widths(&self, style: OutputStyle, indent: &str) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len()).map(|it| self.width(it)).collect();
        let Some(room) = style.width() else {
            return widths;
        };
        let between = GAP.len() * self.columns.len().saturating_sub(1);
        let around = indent.chars().count() + between;
        // Take one character at a time from the widest text column, so that wide columns shrink evenly.
        while widths.iter().sum::<usize>() + around > room {
            let texts = self
                .columns
                .iter()
                .zip(&mut widths)
                .filter(|(column, _)| matches!(column, Column::Text(_)));
            let widest = texts.map(|(_, width)| width).max();
            let Some(widest) = widest.filter(|width| **width > MIN_TEXT_WIDTH) else {
                break;
            };
            *widest -= 1;
        }
        widths
    }

    fn width(&self, index: usize) -> usize {
        let heading = self.columns[index].heading().chars().count();
        let cells = self
            .rows
            .iter()
            .filter_map(|row| row.get(index))
            .map(|cell| cell.chars().count());
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
            table().render(OutputStyle::PLAIN, "  "),
            "  name      tools  what\n  \
               fs           12  reads and writes files\n  \
               database      3\n"
        );
    }

    #[test]
    fn the_widest_texts_are_cut_to_the_terminal() {
        let shown = table().render(OutputStyle::of_width(false, 37), "");
        assert_eq!(
            shown,
            "name      tools  what\n\
             fs           12  reads and writes fi…\n\
             database      3\n"
        );
        let shown = table().render(OutputStyle::of_width(false, 20), "");
        assert_eq!(
            shown,
            "name      tools  what\n\
             fs           12  reads a…\n\
             database      3\n"
        );
    }
}
