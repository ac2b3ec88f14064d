//! `sren equivariance --pose`: whether the local frames follow the image.

use std::path::Path;

use serde::Serialize;
use sren::{PoseEstimator, PoseEstimatorConfig};
use sren_data::{Mnist, Split, find_images, read_image};
use sren_lab::{Lemma, LemmaProtocol, LemmaSubject, lemma};

use crate::Failure;
use crate::output::{print, print_json};

/// What is measured, and how it is told.
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
        print("images       follow     have a pose   angle error   ln scale error   positions")?;
        print("             the image  (share)       (median)      (median)")?;
        print(&row("MNIST", &lemmas.mnist))?;
        lemmas.natural.as_ref().map_or(Ok(()), |natural| print(&row("photographs", natural)))
    }

    fn mnist(&self, estimator: &PoseEstimator) -> Result<Lemma, Failure> {
        let digits = Mnist::load(Split::Test)?;
        let subjects: Vec<LemmaSubject> = spread(digits.len(), self.images)
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
            return Err(format!("{name}: expected png or jpeg images below it, got none").into());
        }
        let subjects: Vec<LemmaSubject> = spread(files.len(), self.images)
            .map(|i| Ok(LemmaSubject::photograph(&read_image(&files[i])?)?))
            .collect::<Result<_, Failure>>()?;
        Ok(lemma(estimator, &subjects, &LemmaProtocol::photographs(self.seed))?)
    }
}

/// At most `wanted` indices below `len`, evenly spread.
fn spread(len: usize, wanted: u32) -> impl Iterator<Item = usize> {
    let count = len.min(wanted as usize);
    (0..count).map(move |i| i * len / count)
}

fn row(name: &str, lemma: &Lemma) -> String {
    format!(
        "{name:<12} {:>6.1} %   {:>6.1} %      {:>6.2} deg    {:>9.4}        {:>9}",
        100.0 * lemma.ok,
        100.0 * lemma.share,
        lemma.median_angle_deg,
        lemma.median_log_scale,
        lemma.n
    )
}
