//! `sren predict`: predictions for image files.

use std::io::{BufRead, BufReader, ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sren_data::NamedImage;
use sren_lab::grouped;
use sren_lab::inference::{Prediction, Predictor};
use sren_lab::progress::Task;
use sren_lab::threads::with_threads;

use crate::Failure;
use crate::arguments::Threads;
use crate::output::{error as show_error, note, print, print_json};

/// The name of an image, or why it could not be read.
type Name = Result<String, String>;

/// Predict the class of images, and the orientation and scale of their content.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// Folder of a run, or mnist-sren or mnist-cnn for a bundled network
    run: PathBuf,
    /// Image files (png, jpeg, webp, bmp, gif, tiff), mnist:N or mnist:A-B for digits of the bundled test
    /// set; - reads a list of them from standard input, one per line
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<String>,
    /// Classes per image, the most probable first
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    top: u16,
    #[command(flatten)]
    threads: Threads,
    /// Print one line of JSON per image
    #[arg(long)]
    json: bool,
}

impl Predict {
    /// Unreadable images are reported on standard error and do not stop the others.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let work = || self.predict().map_err(|failure| failure.to_string());
        let failed = with_threads(self.threads.count(), work)??;
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The number of images that failed.
    fn predict(&self) -> Result<usize, Failure> {
        let predictor = Predictor::open(&self.run)?;
        let begin = Instant::now();
        let (mut predicted, mut failed, mut first) = (0, 0, true);
        let mut read_seconds = 0.0;
        let mut images = self.images();
        // Results on a terminal are their own progress.
        let hidden = std::io::stdout().is_terminal();
        let task = (!hidden).then(|| Task::new("predicting", self.count()));
        loop {
            let batch: Vec<Result<NamedImage, String>> =
                images.by_ref().take(Predictor::BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let size = batch.len();
            for error in batch.iter().filter_map(|image| image.as_ref().err()) {
                show_error(&error);
                failed += 1;
            }
            let batch: Vec<NamedImage> = batch.into_iter().flatten().collect();
            let reading = Instant::now();
            let read = predictor.read(&batch);
            read_seconds += reading.elapsed().as_secs_f64();
            for prediction in predictor.predict_prepared(read, self.top.into())? {
                match prediction {
                    Ok(prediction) => {
                        self.show(&prediction, first)?;
                        (predicted, first) = (predicted + 1, false);
                    }
                    Err(error) => {
                        show_error(&error);
                        failed += 1;
                    }
                }
            }
            if let Some(task) = &task {
                task.advance(size);
            }
        }
        drop(task);
        let seconds = begin.elapsed().as_secs_f64();
        let rate = predicted as f64 / seconds.max(1e-9);
        let share = 100.0 * read_seconds / seconds.max(1e-9);
        note(&format!(
            "{} images in {seconds:.2} s: {rate:.0} images/s, {share:.0} % of it reading, {failed} failed",
            grouped(predicted)
        ));
        Ok(failed)
    }

    /// The number of images; 0 if a list is still to be read.
    fn count(&self) -> usize {
        if self.images.iter().any(|name| name == "-") {
            return 0;
        }
        self.images
            .iter()
            .map(|name| NamedImage::parse(name).map_or(1, |images| images.len()))
            .sum()
    }

    /// The images of the arguments; a list on standard input is read line by line.
    fn images(&self) -> impl Iterator<Item = Result<NamedImage, String>> + '_ {
        let names = self.images.iter().flat_map(|name| -> Box<dyn Iterator<Item = Name>> {
            if name != "-" {
                return Box::new(std::iter::once(Ok(name.clone())));
            }
            // A line that is no UTF-8 is skipped; after any other error nothing more can be read.
            let mut ended = false;
            let lines = BufReader::new(std::io::stdin()).lines().take_while(move |line| {
                let read = !ended;
                ended = line.as_ref().is_err_and(|e| e.kind() != ErrorKind::InvalidData);
                read
            });
            let named =
                lines.filter(|line| !line.as_ref().is_ok_and(|line| line.trim().is_empty()));
            Box::new(named.map(|line| match line {
                Ok(line) => Ok(line.trim_end_matches('\r').to_string()),
                Err(error) => Err(format!("standard input: {error}")),
            }))
        });
        names.flat_map(|name| match name.map(|name| NamedImage::parse(&name)) {
            Ok(Ok(images)) => images.into_iter().map(Ok).collect(),
            Ok(Err(error)) => vec![Err(error.to_string())],
            Err(error) => vec![Err(error)],
        })
    }

    /// Lines are printed as they come, so their columns have fixed widths.
    fn show(&self, prediction: &Prediction, first: bool) -> Result<(), Failure> {
        if self.json {
            return print_json(prediction);
        }
        if first {
            print("class              probability   orientation    scale   image")?;
        }
        let pose = prediction.pose.map_or(["-".into(), "-".into()], |pose| {
            [format!("{:.0} deg", pose.orientation_deg), format!("{:.1} px", pose.scale_px)]
        });
        for (rank, class) in prediction.top.iter().enumerate() {
            let [orientation, scale] = if rank == 0 { pose.clone() } else { Default::default() };
            let image = if rank == 0 { prediction.image.as_str() } else { "" };
            let percent = 100.0 * class.probability;
            let line = format!(
                "{:<20} {percent:>7.2} %   {orientation:>11}   {scale:>6}   {image}",
                class.class
            );
            print(line.trim_end())?;
        }
        Ok(())
    }
}
