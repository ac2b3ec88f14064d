//! Accuracy on photographs as tables: over all images, by class, and the confusion matrices.

use sren_lab::{ClassAccuracy, PhotographEvaluation, TextTable, grouped};

/// Characters of a line, and of a class name in the head of a confusion matrix that would be wider.
const LINE: usize = 120;
const SHORT: usize = 6;

/// Sets, classes and, below them, one confusion matrix per set.
pub(crate) fn table(evaluation: &PhotographEvaluation, images: &str) -> String {
    let suffix = evaluation.augment.suffix();
    let PhotographEvaluation { model, parameters, data, classes, sets, .. } = evaluation;
    // The upright set first, then the others by name.
    let mut sets: Vec<(&String, &ClassAccuracy)> = sets.iter().collect();
    sets.sort_by_key(|(name, _)| (name.as_str() != "upright", name.as_str()));
    let mut overall = TextTable::new(["set", "accuracy", "images"]);
    for (name, set) in &sets {
        let accuracy = format!("{:.2} %", set.all.accuracy);
        overall.row([name.to_string(), accuracy, grouped(set.all.n)]);
    }
    let names = sets.iter().map(|(name, _)| name.as_str());
    let mut by_class = TextTable::new(std::iter::once("class").chain(names));
    for (at, class) in classes.iter().enumerate() {
        let accuracies = sets.iter().map(|(_, set)| {
            let accuracy = set.class_accuracy.get(at).copied().flatten();
            accuracy.map_or("-".into(), |accuracy| format!("{accuracy:.2} %"))
        });
        by_class.row(std::iter::once(class.clone()).chain(accuracies));
    }
    let parameters = grouped(*parameters);
    let mut text = format!(
        "{model}{suffix}: {parameters} parameters, {images} of {data}\n\n{overall}\n\n{by_class}"
    );
    let longest = classes.iter().map(|class| class.chars().count()).max().unwrap_or(0);
    let width: usize = classes.iter().map(|class| class.chars().count().max(4) + 2).sum();
    let letters = if longest + width <= LINE { longest } else { SHORT };
    let heads = || classes.iter().map(|class| class.chars().take(letters).collect::<String>());
    for (name, set) in &sets {
        let mut confusion = TextTable::new(std::iter::once(String::new()).chain(heads()));
        for (class, row) in classes.iter().zip(set.confusion.counts()) {
            let counts = row.iter().map(usize::to_string);
            confusion.row(std::iter::once(class.clone()).chain(counts));
        }
        text.push_str(&format!(
            "\n\n{name}: rows are the true classes, columns the predicted ones\n{confusion}"
        ));
    }
    text
}
