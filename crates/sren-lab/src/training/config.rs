//! What is trained, and how: everything needed to repeat a run.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sren::Equivariance;
use sren::models::{Architecture, NetworkConfig};
use sren_data::{
    AugmentationPolicy, CANVAS, Dataset, PoseJitter, Source, TrainingSplit, read_bounded,
};

use super::fine_tuning::FineTuning;
use super::image_folder::ImageFolderConfig;
use super::optimiser::OptimiserKind;
use super::schedule::Schedule;
use crate::error::{LabError, Result};
use crate::inference::inference_device;

/// Classes of MNIST.
const CLASSES: usize = 10;
/// Channels of MNIST.
const CHANNELS: usize = 1;
/// Training images of MNIST.
const TRAINING_SET: usize = 60_000;
/// Largest shift of training images, in pixels.
const MAX_SHIFT: u32 = 256;
/// Largest pose jitter, in radians and in ln scale.
const MAX_JITTER: f64 = 7.0;
/// Most bytes of a config.
const MAX_FILE: u64 = 1 << 22;
/// Most epochs, and most images per step.
const MAX_EPOCHS: usize = 1_000_000;
const MAX_BATCH: usize = 1 << 14;

/// A config by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// A few minutes.
    Quick,
    /// The small network on all images, some thirty CPU-minutes.
    Default,
    /// The wide network on images rotated and scaled slightly: SREN+, some ninety CPU-minutes.
    Plus,
    /// The paper's ResNet-18, some ninety CPU-minutes.
    Paper,
    /// Photographs, some thousands of them.
    Photos,
    /// The paper's ResNet-16, for photographs of 96 pixels.
    Stl10,
}

impl Preset {
    /// The config.
    pub fn config(self) -> Result<TrainingConfig> {
        let (name, text) = match self {
            Self::Quick => ("presets/quick.toml", include_str!("../../presets/quick.toml")),
            Self::Default => ("presets/default.toml", include_str!("../../presets/default.toml")),
            Self::Plus => ("presets/plus.toml", include_str!("../../presets/plus.toml")),
            Self::Paper => ("presets/paper.toml", include_str!("../../presets/paper.toml")),
            Self::Photos => ("presets/photos.toml", include_str!("../../presets/photos.toml")),
            Self::Stl10 => ("presets/stl10.toml", include_str!("../../presets/stl10.toml")),
        };
        TrainingConfig::parse(name, text)
    }
}

impl FromStr for Preset {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "quick" => Ok(Self::Quick),
            "default" => Ok(Self::Default),
            "plus" => Ok(Self::Plus),
            "paper" => Ok(Self::Paper),
            "photos" => Ok(Self::Photos),
            "stl10" => Ok(Self::Stl10),
            _ => Err(LabError::invalid(
                "preset",
                "quick, default, plus, paper, photos or stl10",
                name,
            )),
        }
    }
}

/// How a network is trained. Written to and read from TOML.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TrainingConfig {
    /// Where the images come from: mnist, stl10:DIR or a folder.
    #[serde(default, skip_serializing_if = "Source::is_mnist")]
    pub data: Source,
    /// The same with its absolute path, for commands in other folders; filled in when a run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_absolute: Option<Source>,
    /// The network's name: small, wide, blocks, resnet18, resnet16, wrn16-8 or photos. Only a name
    /// where `network` is given.
    pub arch: String,
    /// Its equivariance group: sren, so2, scale or cnn.
    pub model: String,
    /// How training images are rotated, scaled and moved.
    pub augment: AugmentationPolicy,
    /// Largest shift of training images along each axis, in pixels, drawn again each epoch, in
    /// steps of half a pixel.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shift: u32,
    /// Positions of a training image that are computed, drawn again each epoch; 0 for all. For
    /// networks without blocks, whose positions do not see each other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub positions: u32,
    /// A random rotation and scaling of all frames of a training image, drawn again each epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pose_jitter: Option<PoseJitter>,
    /// Passes over the training images.
    pub epochs: usize,
    /// Images per step.
    pub batch: usize,
    /// Seed of every draw.
    pub seed: u64,
    /// Images to learn from; 0, of photographs, for all that are not held out.
    pub training_images: usize,
    /// Images held out of the training set, to choose the best epoch by; 0, of photographs, for a
    /// tenth.
    pub validation_images: usize,
    /// Epochs without a better validation accuracy after which training ends; 0 for never.
    pub patience: usize,
    /// The epoch at which a finished run was extended by more; patience begins again there.
    #[serde(default, skip_serializing_if = "is_none")]
    pub extended_from: usize,
    /// Peak of the learning rate.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// What images other than the bundled digits are brought to.
    #[serde(default, alias = "photographs", skip_serializing_if = "Option::is_none")]
    pub image_folder: Option<ImageFolderConfig>,
    /// The run whose weights this one starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fine_tuning: Option<FineTuning>,
    /// The network in full. Without it, `arch` and `model` determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkConfig>,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

impl TrainingConfig {
    /// Reads a config. `name` is used in errors.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|e| {
            // The message is in the first line; the rest points at the text.
            let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let got = format!("line {line}: {}", e.message().replace('\n', " "));
            LabError::invalid(name, "a training configuration", got)
        })?;
        config.check(name)?;
        Ok(config)
    }

    /// Reads a config from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let unreadable = |e: String| LabError::invalid(&name, "a training configuration", e);
        let bytes = read_bounded(path, MAX_FILE).map_err(|e| unreadable(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|e| unreadable(e.to_string()))?;
        Self::parse(&name, &text)
    }

    /// The config as TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| LabError::invalid("config", "TOML", e.to_string()))
    }

    /// The first field in which a run that starts with `self` differs from one with `other`; the
    /// number of epochs may be another.
    pub fn difference(&self, other: &Self) -> Result<Option<String>> {
        let fields = |config: &Self| {
            let config =
                Self { epochs: 1, extended_from: 0, data_absolute: None, ..config.clone() };
            toml::Table::try_from(config)
                .map_err(|e| LabError::invalid("config", "TOML", e.to_string()))
        };
        let (own, other) = (fields(self)?, fields(other)?);
        let differs = |name: &&String| own.get(*name) != other.get(*name);
        Ok(own.keys().chain(other.keys()).find(differs).cloned())
    }

    /// The network in full.
    pub fn network(&self) -> Result<NetworkConfig> {
        if let Some(network) = &self.network {
            return Ok(network.clone());
        }
        let equivariance: Equivariance = self.model.parse()?;
        let architecture: Architecture = self.arch.parse()?;
        let (channels, classes) = self.ends();
        Ok(architecture.config_for(equivariance, channels, classes))
    }

    /// Channels of the images, number of classes.
    fn ends(&self) -> (usize, usize) {
        match &self.image_folder {
            Some(photographs) => (ImageFolderConfig::CHANNELS, photographs.classes.len()),
            None => (CHANNELS, CLASSES),
        }
    }

    /// Side of the images that the network sees.
    pub fn canvas(&self) -> usize {
        self.image_folder.as_ref().map_or(CANVAS, |folder| folder.canvas)
    }

    /// Where the images are: at their absolute path or, if nothing is there, as it was typed.
    pub fn source(&self) -> &Source {
        self.data_absolute.as_ref().filter(|data| data.exists()).unwrap_or(&self.data)
    }

    /// Which of the training images it learns from, and which it holds out.
    pub fn split(&self, images: &Dataset) -> Result<TrainingSplit> {
        let (training, validation, seed) =
            (self.training_images, self.validation_images, self.seed);
        let (classes, labels) = (images.classes(), images.labels());
        let split = match &self.image_folder {
            Some(folder) if folder.validation_files > 0 => {
                TrainingSplit::given(classes, labels, training, validation, seed)
            }
            Some(folder) if folder.stratified => {
                TrainingSplit::stratified(classes, labels, training, validation, seed)
            }
            _ => TrainingSplit::new(labels.len(), training, validation, seed),
        };
        Ok(split?)
    }

    /// Learns from `images` images; at most a quarter as many are held out.
    pub fn set_training_images(&mut self, images: usize) {
        self.training_images = images;
        if self.validation_images > 0 {
            self.validation_images = self.validation_images.min(most_held_out(images));
        }
    }

    /// Returns an error if it cannot be trained.
    pub fn check(&self, name: &str) -> Result<()> {
        let fail = |expected: &str, got: String| Err(LabError::invalid(name, expected, got));
        self.model.parse::<Equivariance>()?;
        self.arch.parse::<Architecture>()?;
        if self.epochs == 0 || self.batch < 2 {
            let got = format!("{} and {}", self.epochs, self.batch);
            return fail("at least 1 epoch and batches of at least 2", got);
        }
        if self.epochs.max(self.patience) > MAX_EPOCHS || self.batch > MAX_BATCH {
            let got = format!("{}, {} and {}", self.epochs, self.patience, self.batch);
            let expected = format!(
                "epochs and patience of at most {MAX_EPOCHS} and batches of at most {MAX_BATCH}"
            );
            return fail(&expected, got);
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return fail("a finite learning rate > 0", self.learning_rate.to_string());
        }
        self.schedule.check(name)?;
        self.optimiser.check(name)?;
        if let Some(PoseJitter { angle, ln_scale }) = self.pose_jitter
            && !((0.0..=MAX_JITTER).contains(&angle) && (0.0..=MAX_JITTER).contains(&ln_scale))
        {
            let expected = format!("a pose jitter of 0 to {MAX_JITTER}");
            return fail(&expected, format!("{angle} and {ln_scale}"));
        }
        let mut total = TRAINING_SET;
        if let Some(photographs) = &self.image_folder {
            photographs.check(name)?;
            if photographs.classes.is_empty() {
                // The rest follows from images that are not known yet.
                return Ok(());
            }
            total = photographs.images;
        }
        let (training, validation) = (self.training_images, self.validation_images);
        TrainingSplit::check(total, training, validation)?;
        let (network, (channels, classes)) = (self.network()?, self.ends());
        if (network.image_channels, network.classes) != (channels, classes) {
            let expected = format!("a network for {classes} classes and {channels} channels");
            return fail(&expected, format!("{} and {}", network.classes, network.image_channels));
        }
        if network.equivariance != self.model.parse()? {
            let expected = format!("a network with the equivariance of model {}", self.model);
            return fail(&expected, network.equivariance.name().to_string());
        }
        if self.positions > 0 && !network.backbone.has_independent_positions() {
            let expected = "positions drawn (positions) only for a network without stages";
            return fail(expected, format!("{} and a network with stages", self.positions));
        }
        if self.shift > MAX_SHIFT {
            return fail("a shift of at most 256 pixels", self.shift.to_string());
        }
        // Counted before it is made: the weights of a new network are drawn when they are first read.
        let made =
            network.geometry([self.canvas(); 2]).and_then(|_| network.init(&inference_device()));
        match made {
            Ok(_) => Ok(()),
            Err(error) => fail("a valid network", error.to_string()),
        }
    }
}

/// Most validation images beside `images` training images.
pub(super) fn most_held_out(images: usize) -> usize {
    (images / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_read_and_written_back() {
        use Preset::{Default, Paper, Photos, Plus, Quick, Stl10};
        for preset in [Quick, Default, Plus, Paper, Photos, Stl10] {
            let mut config = preset.config().unwrap();
            if let Some(photographs) = &mut config.image_folder {
                photographs.classes = ["a".to_string(), "b \"é\"".to_string()].to_vec();
                photographs.images = 4000;
                (config.data, config.training_images) = ("x/y".to_string().into(), 3000);
                config.validation_images = 500;
            }
            config.network = Some(config.network().unwrap());
            let text = config.to_toml().unwrap();
            let again = TrainingConfig::parse("again", &text).unwrap();
            assert_eq!(again.to_toml().unwrap(), text);
        }
    }

    #[test]
    fn faults_are_named_in_one_line() {
        let good = Preset::Quick.config().unwrap().to_toml().unwrap();
        for (from, to, message) in [
            ("epochs = ", "epochs = 'x' # ", "invalid type"),
            ("epochs = ", "epochz = ", "unknown field `epochz`"),
            (
                "arch = \"blocks\"",
                "arch = \"tiny\"",
                "small, wide, blocks, resnet18, resnet16, wrn16-8 or photos, got tiny",
            ),
            ("learning_rate = ", "learning_rate = -", "a finite learning rate > 0"),
            ("weight_decay = ", "weight_decay = nan # ", "a finite weight decay of 0 or more"),
            ("warmup = ", "warmup = 1", "a warmup in 0..1"),
            (
                "[schedule]",
                "[pose_jitter]\nangle = 1e308\nln_scale = 0\n[schedule]",
                "a pose jitter of 0 to 7",
            ),
        ] {
            assert!(good.contains(from), "{from}");
            let error = TrainingConfig::parse("r.toml", &good.replacen(from, to, 1))
                .unwrap_err()
                .to_string();
            assert!(error.contains(message) && error.lines().count() == 1, "{error}");
        }
        let error = TrainingConfig::parse("r.toml", "arch = 'small'\n\nfoo = 1\n").unwrap_err();
        assert!(error.to_string().contains("line 3: unknown field `foo`"), "{error}");
    }

    #[test]
    fn a_difference_is_named_but_for_the_epochs() {
        let config = Preset::Quick.config().unwrap();
        let longer = TrainingConfig { epochs: 99, extended_from: 2, ..config.clone() };
        assert_eq!(config.difference(&longer).unwrap(), None);
        let other = TrainingConfig { seed: 5, ..config.clone() };
        assert_eq!(config.difference(&other).unwrap().as_deref(), Some("seed"));
        let jitter = Some(PoseJitter { angle: 0.1, ln_scale: 0.0 });
        let other = TrainingConfig { pose_jitter: jitter, ..config.clone() };
        assert_eq!(config.difference(&other).unwrap().as_deref(), Some("pose_jitter"));
    }
}
