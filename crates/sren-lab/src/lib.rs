//! Experiments with sren: measurements and reports.
