//! Accuracy on photographs as a table: all, by class, and which class is taken for which.

use sren_lab::{ClassAccuracy, PhotographEvaluation};

/// Characters of a class name in the head of the confusion matrix.
const SHORT: usize = 6;

/// Sets, classes and, below them, a confusion matrix a set.
pub(crate) fn table(evaluation: &PhotographEvaluation) -> String {
    let plus = if evaluation.augmented { "+" } else { "" };
    let PhotographEvaluation { model, parameters, data, classes, sets, .. } = evaluation;
    let mut text = format!("{model}{plus}: {parameters} parameters, test images of {data}\n");
    text.push_str("set                            accuracy   images\n");
    // The upright set first, whatever the others are called.
    let mut sets: Vec<(&String, &ClassAccuracy)> = sets.iter().collect();
    sets.sort_by_key(|(name, _)| (name.as_str() != "upright", name.as_str()));
    for (name, set) in &sets {
        text.push_str(&format!("{name:<30} {:>6.2} %   {}\n", set.all.accuracy, set.all.n));
    }
    let width = classes.iter().map(|class| class.chars().count()).max().unwrap_or(0).max(5);
    text.push_str(&format!("\n{:<width$}", "class"));
    sets.iter().for_each(|(name, _)| text.push_str(&format!("  {name:>9}")));
    for (at, class) in classes.iter().enumerate() {
        text.push_str(&format!("\n{class:<width$}"));
        for (name, set) in &sets {
            let own = set.class_accuracy.get(at).copied().flatten();
            let own = own.map_or("-".into(), |own| format!("{own:.2} %"));
            let column = name.chars().count().max(9);
            text.push_str(&format!("  {own:>column$}"));
        }
    }
    for (name, set) in &sets {
        text.push_str(&format!("\n\n{name}: rows are the true classes, columns what was told\n"));
        text.push_str(&format!("{:<width$}", ""));
        for class in classes {
            let head: String = class.chars().take(SHORT).collect();
            text.push_str(&format!("  {head:>SHORT$}"));
        }
        for (class, row) in classes.iter().zip(set.confusion.counts()) {
            text.push_str(&format!("\n{class:<width$}"));
            row.iter().for_each(|count| text.push_str(&format!("  {count:>SHORT$}")));
        }
    }
    text
}
