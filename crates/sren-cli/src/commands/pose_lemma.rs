//! `sren equivariance --pose`: the equivariance of the local frames.

use std::path::Path;

use serde::Serialize;
use sren::{PoseEstimator, PoseEstimatorConfig};
use sren_data::{Mnist, Split, find_images, read_image};
use sren_lab::{Lemma, LemmaProtocol, LemmaSubject, TextTable, lemma, spread};

use crate::Failure;
use crate::output::{print, print_json};

/// What is measured, and how it is printed.
#[derive(Debug)]
pub(crate) struct PoseLemma<'a> {
    pub(crate) data: Option<&'a Path>,
    pub(crate) images: u32,
    pub(crate) seed: u64,
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Report {
    lemma: Lemmas,
}

#[derive(Serialize)]
struct Lemmas {
    mnist: Lemma,
    #[serde(skip_serializing_if = "Option::is_none")]
    natural: Option<Lemma>,
}

impl PoseLemma<'_> {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let estimator = PoseEstimatorConfig::new().init()?;
        let natural = self.data.map(|folder| self.natural(&estimator, folder));
        let natural = natural.transpose()?;
        let lemmas = Lemmas { mnist: self.mnist(&estimator)?, natural };
        if self.json {
            return print_json(&Report { lemma: lemmas });
        }
        let mut table = TextTable::new([
            "images",
            "equivariant",
            "have a pose",
            "angle error",
            "ln scale error",
            "positions",
        ]);
        let natural = lemmas.natural.as_ref().map(|natural| ("photographs", natural));
        for (name, lemma) in std::iter::once(("MNIST", &lemmas.mnist)).chain(natural) {
            table.row([
                name.to_string(),
                format!("{:.1} %", 100.0 * lemma.ok),
                format!("{:.1} %", 100.0 * lemma.share),
                format!("{:.2} deg", lemma.median_angle_deg),
                format!("{:.4}", lemma.median_log_scale),
                lemma.n.to_string(),
            ]);
        }
        print(&format!(
            "{table}\n\nequivariant: of the positions with a pose, within 10 degrees and 0.1 in ln \
             scale; errors: medians"
        ))
    }

    fn mnist(&self, estimator: &PoseEstimator) -> Result<Lemma, Failure> {
        let digits = Mnist::load(Split::Test)?;
        let subjects: Vec<LemmaSubject> = spread(digits.len(), self.images as usize)
            .into_iter()
            .filter_map(|i| digits.image(i))
            .map(|image| LemmaSubject::digit(&image))
            .collect::<Result<_, _>>()?;
        Ok(lemma(estimator, &subjects, &LemmaProtocol::digits(self.seed))?)
    }

    fn natural(&self, estimator: &PoseEstimator, folder: &Path) -> Result<Lemma, Failure> {
        let test = folder.join("test");
        let folder = if test.is_dir() { &test } else { folder };
        let files = find_images(folder)?;
        if files.is_empty() {
            let name = folder.display();
            return Err(format!("{name}: expected images below it, got none").into());
        }
        let subjects: Vec<LemmaSubject> = spread(files.len(), self.images as usize)
            .into_iter()
            .map(|i| Ok(LemmaSubject::photograph(&read_image(&files[i])?)?))
            .collect::<Result<_, Failure>>()?;
        Ok(lemma(estimator, &subjects, &LemmaProtocol::photographs(self.seed))?)
    }
}
