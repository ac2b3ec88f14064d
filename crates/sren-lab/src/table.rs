//! Our figures beside the paper's Table 1.

use serde::Serialize;
use sren_data::{AugmentationPolicy, TestSet};

use crate::evaluation::Evaluation;
use crate::paper::paper_row;
use crate::text_table::TextTable;

/// One row: an equivariance group, trained with one or several seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TableRow {
    /// Its name: cnn, so2, scale, sren, sren+ or cnn-full.
    pub row: String,
    /// One evaluation per seed, on all four test sets.
    pub seeds: Vec<Evaluation>,
    /// Mean accuracy over the seeds upright, on R, S and SRT.
    pub mean: [f64; 4],
    /// Largest minus smallest over the seeds.
    pub spread: [f64; 4],
    /// The paper's.
    pub paper: Option<[f64; 4]>,
}

impl TableRow {
    /// The row `name` from its evaluations.
    pub fn new(name: &str, seeds: Vec<Evaluation>) -> Self {
        let of = |set: TestSet| -> Vec<f64> {
            let found = seeds.iter().filter_map(|one| one.sets.get(set.name()));
            found.map(|found| found.accuracy).collect()
        };
        let mean = TestSet::ALL.map(|set| {
            let values = of(set);
            values.iter().sum::<f64>() / values.len().max(1) as f64
        });
        let spread = TestSet::ALL.map(|set| {
            let values = of(set);
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            (most - values.iter().copied().fold(f64::MAX, f64::min)).max(0.0)
        });
        let (model, augment) = row_parts(name);
        let paper = paper_row(model, augment).map(|(_, row)| row);
        Self { row: name.into(), seeds, mean, spread, paper }
    }
}

/// The equivariance group of the row `name`, and how its training images are augmented.
pub fn row_parts(name: &str) -> (&str, AugmentationPolicy) {
    use AugmentationPolicy::{Full, None as Upright, Paper};
    let augmented = [Paper, Full].into_iter();
    let mut parts =
        augmented.filter_map(|policy| Some((name.strip_suffix(policy.suffix())?, policy)));
    parts.next().unwrap_or((name, Upright))
}

/// The table for the terminal.
pub fn table_text(rows: &[TableRow]) -> String {
    let mut table = TextTable::new(["per cent", "upright", "r", "s", "srt"]);
    let mut line = |name: String, values: &[f64; 4]| {
        let values = values.iter().map(|value| format!("{value:.2}"));
        table.row(std::iter::once(name).chain(values));
    };
    for row in rows {
        let seeds = row.seeds.len();
        let name = if seeds > 1 { format!("{}, {seeds} seeds", row.row) } else { row.row.clone() };
        line(name, &row.mean);
        if seeds > 1 {
            line("  range over seeds".into(), &row.spread);
        }
        if let Some(paper) = &row.paper {
            line("  paper".into(), paper);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::Accuracy;

    #[test]
    fn seeds_have_a_mean_and_a_range() {
        let one = |accuracy: f64| Evaluation {
            model: "sren".into(),
            augment: AugmentationPolicy::Paper,
            parameters: 1,
            sets: TestSet::ALL.map(|set| (set.name().into(), Accuracy { accuracy, n: 4 })).into(),
        };
        let row = TableRow::new("sren+", vec![one(90.0), one(94.0)]);
        assert_eq!((row.mean, row.spread), ([92.0; 4], [4.0; 4]));
        assert_eq!(row.paper, Some([99.42, 98.3, 99.28, 95.1]));
        let text = table_text(&[row, TableRow::new("cnn", vec![one(50.0)])]);
        assert!(
            text.contains("sren+, 2 seeds") && text.contains("range") && text.contains("33.56")
        );
    }
}
