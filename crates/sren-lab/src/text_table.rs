//! Tables for the terminal.

use std::fmt::{self, Display, Formatter};

use comfy_table::{CellAlignment, Table, presets};

/// Lines of cells under a head: the first column to the left, the others to the right.
#[derive(Debug, Clone)]
pub struct TextTable {
    table: Table,
}

impl TextTable {
    /// An empty table with a head.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Self {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_header(head.into_iter().map(Into::into));
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if index == 0 { 0 } else { 2 }, 0));
            if index > 0 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { table }
    }

    /// Aligns column `index` to the left.
    #[must_use]
    pub fn left(mut self, index: usize) -> Self {
        if let Some(column) = self.table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Left);
        }
        self
    }

    /// Adds a line.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.table.add_row(cells.into_iter().map(Into::into));
    }
}

impl Display for TextTable {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(&self.table.trim_fmt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = TextTable::new(["set", "accuracy", "note"]).left(2);
        table.row(["upright", "9.50", "a"]);
        table.row(["é", "100.00", "longer"]);
        let expected = "set      accuracy  note\nupright      9.50  a\né          100.00  longer";
        assert_eq!(table.to_string(), expected);
    }
}
