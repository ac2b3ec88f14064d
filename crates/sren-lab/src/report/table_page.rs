//! The page of `sren table`: the rows beside the paper's, with links to the pages of their runs.

use std::path::Path;

use maud::{Markup, html};

use super::page_frame::{about_digits, frame};
use crate::artifact::atomic_write;
use crate::error::Result;
use crate::table::TableRow;

/// Writes the page of a table.
pub fn write_table(path: &Path, rows: &[TableRow]) -> Result<()> {
    atomic_write(path, page(rows).into_string().as_bytes())
}

fn page(rows: &[TableRow]) -> Markup {
    let images = rows.iter().flat_map(|row| &row.seeds).flat_map(|one| one.sets.values());
    let images = images.map(|found| found.n).max().unwrap_or(0);
    frame(
        "Table 1",
        &html! {
            div.scroll {
                table.figures {
                    tr { th { "per cent" } th { "upright" } th { "R" } th { "S" } th { "SRT" } }
                    @for row in rows {
                        tr.ours {
                            td {
                                (row.row) ", seed"
                                @for seed in 1..=row.seeds.len() {
                                    " " a href={ (row.row) "-" (seed) "/report.html" } { (seed) }
                                }
                            }
                            (cells(&row.mean))
                        }
                        @if row.seeds.len() > 1 {
                            tr { td { "range over seeds" } (cells(&row.spread)) }
                        }
                        @if let Some(paper) = &row.paper {
                            tr { td { "paper" } (cells(paper)) }
                        }
                    }
                }
            }
            (about_digits(images))
        },
    )
}

fn cells(values: &[f64; 4]) -> Markup {
    html! { @for value in values { td { (format!("{value:.2}")) } } }
}
