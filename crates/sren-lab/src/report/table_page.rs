//! The page of `sren table`: the rows beside the paper's, with ways to the pages of their runs.

use std::fmt::Write;
use std::path::Path;

use crate::artifact::atomic_write;
use crate::error::Result;
use crate::plot::escape;
use crate::table::TableRow;

/// Writes the page of a table.
pub fn write_table(path: &Path, rows: &[TableRow]) -> Result<()> {
    atomic_write(path, page(rows).as_bytes())
}

fn page(rows: &[TableRow]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Table 1</title><style>{}</style></head><body>\n<h1>Table 1</h1>\n\
         <div class=\"scroll\"><table class=\"figures\"><tr><th>per cent</th><th>upright</th>\
         <th>R</th><th>S</th><th>SRT</th></tr>",
        include_str!("style.css"),
    );
    for row in rows {
        let seeds: String = (1..=row.seeds.len())
            .map(|seed| format!(" <a href=\"{0}-{seed}/report.html\">{seed}</a>", escape(&row.row)))
            .collect();
        let name = format!("{}, seed{seeds}", escape(&row.row));
        line(&mut page, "ours", &name, &row.mean);
        if row.seeds.len() > 1 {
            line(&mut page, "", "spread", &row.spread);
        }
        if let Some(paper) = &row.paper {
            line(&mut page, "", "the paper's", paper);
        }
    }
    let images = rows.iter().flat_map(|row| &row.seeds).flat_map(|one| one.sets.values());
    let _ = write!(
        page,
        "</table></div><p class=\"soft\">{} test digits; R: rotated by any angle, S: scaled by 1 to \
         2, SRT: both and moved by up to 10 pixels. The paper's networks have 11.7 million \
         parameters and 200 epochs.</p>\n<footer>sren {}</footer>\n</body></html>\n",
        images.map(|found| found.n).max().unwrap_or(0),
        env!("CARGO_PKG_VERSION"),
    );
    page
}

fn line(page: &mut String, class: &str, name: &str, values: &[f64; 4]) {
    let cells = values.map(|value| format!("<td>{value:.2}</td>")).concat();
    let _ = write!(page, "<tr class=\"{class}\"><td>{name}</td>{cells}</tr>");
}
