//! A folder of images in folders named by their class:
//!
//! ```text
//! DIR/train/<class>/*.png, DIR/val/<class>/*.png, DIR/test/<class>/*.jpg     split already,
//! DIR/train/<class>/*.png, DIR/test/<class>/*.jpg     without a validation set,
//! DIR/train/<class>/*.png, DIR/val/<class>/*.jpg      val is the test set, or
//! DIR/<class>/*.jpeg                                  a fifth of each class is drawn for testing
//! ```
//! A class's folder may have folders in it.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sren_math::element_count;

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::files::{FORMATS, MAX_FILE, decode_reduced, find_files, read_bounded};
use crate::letterbox::Letterbox;
use crate::manifest::{FileRecord, Manifest};
use crate::mnist::Split;
use crate::padding::Padding;
use crate::random_stream::{FOLDER_STREAMS, generator, shuffle};

/// One image in this many is a test image, where the folder is not split.
const TEST_SHARE: usize = 5;
/// More than one broken file in this many is an error.
const BROKEN_SHARE: usize = 20;
/// Largest number of classes.
const MAX_CLASSES: usize = 10_000;
/// Bytes of images that are cached in memory; the others are read from their files each time.
pub const IMAGE_BUDGET: usize = 2 << 30;

/// The image files of a folder and their classes. [`open`](Self::open) lists them,
/// [`load`](Self::load) reads them.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("sren-doc-{}", std::process::id()));
/// # for class in ["cat", "dog"] {
/// #     std::fs::create_dir_all(path.join(class))?;
/// #     for i in 0..5 {
/// #         let photo = image::RgbImage::from_pixel(40, 30, image::Rgb([90, 120, 10 * i]));
/// #         photo.save(path.join(class).join(format!("{i}.png")))?;
/// #     }
/// # }
/// use sren_data::{IMAGE_BUDGET, ImageFolder, Split};
///
/// // `path` has the folders `cat` and `dog` with 5 images each.
/// let folder = ImageFolder::open(&path, 1)?;
/// assert_eq!(folder.classes(), ["cat", "dog"]);
/// let training = folder.load(Split::Train, 64, 96, IMAGE_BUDGET)?;
/// assert_eq!((training.images.len(), training.images.shape()), (8, [96, 96, 3]));
/// # std::fs::remove_dir_all(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ImageFolder {
    path: PathBuf,
    classes: Vec<String>,
    /// Training images, then those of a validation set.
    train: Vec<(PathBuf, u32)>,
    /// The last of them that are a validation set.
    validation: usize,
    test: Vec<(PathBuf, u32)>,
    others: Vec<PathBuf>,
}

/// Images, and the errors of files that could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The images.
    pub images: Dataset,
    /// One error per file that was skipped.
    pub broken: Vec<DataError>,
    /// Files beside the images that are none by their names.
    pub others: Vec<PathBuf>,
    /// How many of the images, the last ones, are a validation set.
    pub validation: usize,
    /// What was read; empty for bundled images.
    pub manifest: Manifest,
}

impl Loaded {
    /// The file of image number `index` below its folder; `None` if images have no files of their own.
    pub fn file(&self, index: usize) -> Option<&str> {
        let files = self.manifest.files();
        let own = files.len() == self.images.len();
        files.get(index).filter(|_| own).map(|file| file.name.as_str())
    }
}

impl From<Dataset> for Loaded {
    fn from(images: Dataset) -> Self {
        let (broken, others) = (Vec::new(), Vec::new());
        Self { images, broken, others, validation: 0, manifest: Manifest::default() }
    }
}

impl ImageFolder {
    /// Lists the folder. `seed` draws the test images where the folder is not split. Returns an
    /// error if there are fewer than 2 classes or a class has no images.
    pub fn open(path: &Path, seed: u64) -> Result<Self> {
        let mut folder = Self {
            path: path.to_path_buf(),
            classes: Vec::new(),
            train: Vec::new(),
            validation: 0,
            test: Vec::new(),
            others: Vec::new(),
        };
        let [train, val, test] = ["train", "val", "test"].map(|part| path.join(part));
        if !train.is_dir() {
            folder.split(seed)?;
            return Ok(folder);
        }
        folder.classes = class_names(&train)?;
        folder.train = folder.part(&train)?;
        if val.is_dir() && test.is_dir() {
            let validation = folder.part(&val)?;
            folder.validation = validation.len();
            folder.train.extend(validation);
        }
        let tested = if val.is_dir() && !test.is_dir() { val } else { test };
        folder.test = folder.part(&tested)?;
        Ok(folder)
    }

    /// The files of the folder `part`, which has the classes of the training images.
    fn part(&mut self, part: &Path) -> Result<Vec<(PathBuf, u32)>> {
        let found = class_names(part)?;
        if found != self.classes {
            let differs = |name: &&String| !self.classes.contains(name) || !found.contains(name);
            let name = self.classes.iter().chain(&found).find(differs);
            let got = format!("{} in only one of them", name.map_or("?", String::as_str));
            let part = part.file_name().unwrap_or_default().to_string_lossy();
            let expected = format!("the same classes in train and {part}");
            return Err(DataError::format(self.path.display().to_string(), expected, got));
        }
        let mut files = Vec::new();
        for (label, class) in found.iter().enumerate() {
            let of_class = images_of(&part.join(class), 1, &mut self.others)?;
            files.extend(of_class.into_iter().map(|file| (file, label as u32)));
        }
        Ok(files)
    }

    fn split(&mut self, seed: u64) -> Result<()> {
        self.classes = class_names(&self.path)?;
        for (label, class) in self.classes.iter().enumerate() {
            let files = images_of(&self.path.join(class), 2, &mut self.others)?;
            let mut order: Vec<usize> = (0..files.len()).collect();
            shuffle(&mut order, &mut generator(seed, 0, FOLDER_STREAMS + label as u64));
            let tests = (files.len() / TEST_SHARE).max(1);
            let mut is_test = vec![false; files.len()];
            order[..tests].iter().for_each(|at| is_test[*at] = true);
            for (file, is_test) in files.into_iter().zip(is_test) {
                let part = if is_test { &mut self.test } else { &mut self.train };
                part.push((file, label as u32));
            }
        }
        Ok(())
    }

    /// The names of the classes, in order.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    fn files(&self, split: Split) -> &[(PathBuf, u32)] {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    /// Number of files of `split`.
    pub fn file_count(&self, split: Split) -> usize {
        self.files(split).len()
    }

    /// Reads the images of `split`, letterboxed to `side` x `side` in colour, on a canvas of
    /// `canvas` x `canvas`. At most `budget` bytes are cached in memory. Returns an error if more
    /// than 5 % of the files are broken.
    pub fn load(&self, split: Split, side: usize, canvas: usize, budget: usize) -> Result<Loaded> {
        self.load_with(split, side, canvas, budget, &|_| ())
    }

    /// As [`Self::load`]; `progress` is called with the number of files read since its last call.
    pub fn load_with(
        &self,
        split: Split,
        side: usize,
        canvas: usize,
        budget: usize,
        progress: &dyn Fn(usize),
    ) -> Result<Loaded> {
        let letterbox = Letterbox { side, channels: 3, mean_colour: true };
        let files = self.files(split);
        let Some(bytes) =
            element_count("image_folder", &[side, side, 3]).ok().filter(|bytes| *bytes > 0)
        else {
            let name = self.path.display().to_string();
            let got = format!("side {side}");
            return Err(DataError::format(name, "images of at least 1 x 1", got));
        };
        let cached = budget / bytes;
        let (mut pixels, mut labels, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let (mut broken, mut manifest, mut validation) = (Vec::new(), Manifest::default(), 0);
        let mut left = files.len();
        let given = if split == Split::Train { self.validation } else { 0 };
        // One chunk at a time, so that few images are decoded and not cached.
        for files in files.chunks(512) {
            let read = |(file, _): &(PathBuf, u32)| -> Result<(Vec<u8>, FileRecord)> {
                let name = file.display().to_string();
                let content = read_bounded(file, MAX_FILE)?;
                let image = decode_reduced(&name, &content, side)?.image;
                let fitted = letterbox.bytes(&image);
                let fitted = fitted.map_err(|e| DataError::format(name, e.expected, e.got))?;
                Ok((
                    fitted,
                    FileRecord::new(file.strip_prefix(&self.path).unwrap_or(file), &content),
                ))
            };
            let images: Vec<Result<_>> = files.par_iter().map(read).collect();
            for (image, (file, label)) in images.into_iter().zip(files) {
                match image {
                    Ok((image, record)) => {
                        if labels.len() < cached {
                            pixels.extend_from_slice(&image);
                        } else {
                            rest.push(file.clone());
                        }
                        labels.push(*label);
                        manifest.push(record);
                        validation += usize::from(left <= given);
                    }
                    Err(error) => broken.push(error),
                }
                left -= 1;
            }
            progress(files.len());
        }
        if broken.len().saturating_mul(BROKEN_SHARE) > files.len() {
            let first = broken.first().map_or(String::new(), |e| format!(", the first: {e}"));
            let got = format!("{} of {}{first}", broken.len(), files.len());
            let expected = "at most 5 % of the files broken";
            return Err(DataError::format(self.path.display().to_string(), expected, got));
        }
        let name = self.path.display().to_string();
        let shape = [side, side, 3];
        let images = Dataset::with_files(name, self.classes.clone(), shape, pixels, labels, rest)?;
        Ok(Loaded {
            images: images.with_padding(Padding { canvas: [canvas; 2], circular_mask: true })?,
            broken,
            others: self.others.clone(),
            validation,
            manifest,
        })
    }
}

/// The names of the folders in `folder`, sorted. Hidden ones are ignored.
fn class_names(folder: &Path) -> Result<Vec<String>> {
    let fail = |source| DataError::Io { path: folder.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    if !(2..=MAX_CLASSES).contains(&names.len()) {
        let expected = format!("2 to {MAX_CLASSES} folders in it, one per class");
        let got = names.len().to_string();
        return Err(DataError::format(folder.display().to_string(), expected, got));
    }
    names.sort();
    Ok(names)
}

/// The image files below `folder`, sorted; what else is there goes to `others`. Returns an error if
/// there are fewer than `least`.
fn images_of(folder: &Path, least: usize, others: &mut Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let found = find_files(folder)?;
    others.extend(found.others);
    if found.images.len() < least {
        let expected = format!("at least {least} {FORMATS} images in it");
        let got = found.images.len().to_string();
        return Err(DataError::format(folder.display().to_string(), expected, got));
    }
    Ok(found.images)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with `counts[c]` images of class c, each of another grey.
    fn folder(test: &str, counts: &[usize]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("sren-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        for (class, count) in counts.iter().enumerate() {
            let class = path.join(["a", "b", "c"][class]);
            std::fs::create_dir_all(&class).unwrap();
            for i in 0..*count {
                let grey = image::GrayImage::from_pixel(6, 9, image::Luma([i as u8]));
                grey.save(class.join(format!("{i:03}.png"))).unwrap();
            }
        }
        path
    }

    #[test]
    fn a_folder_is_split_by_its_seed() {
        let path = folder("split", &[10, 25]);
        let one = ImageFolder::open(&path, 1).unwrap();
        assert_eq!((one.train.len(), one.test.len()), (28, 7));
        assert_eq!(one.classes(), ["a", "b"]);
        assert!(one.test.iter().all(|file| !one.train.contains(file)));
        assert_eq!(one.test, ImageFolder::open(&path, 1).unwrap().test);
        assert_ne!(one.test, ImageFolder::open(&path, 2).unwrap().test);
        let loaded = one.load(Split::Train, 8, 12, IMAGE_BUDGET).unwrap();
        assert_eq!((loaded.images.len(), loaded.images.shape()), (28, [12, 12, 3]));
        for side in [0, usize::MAX] {
            assert!(one.load(Split::Train, side, 12, IMAGE_BUDGET).is_err());
        }
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn images_beyond_the_budget_are_read_each_time() {
        let path = folder("budget", &[6, 6]);
        let files = ImageFolder::open(&path, 1).unwrap();
        let whole = files.load(Split::Train, 8, 8, IMAGE_BUDGET).unwrap().images;
        let some = files.load(Split::Train, 8, 8, 3 * 8 * 8 * 3).unwrap().images;
        let none = files.load(Split::Train, 8, 8, 0).unwrap().images;
        for index in 0..whole.len() {
            let image = whole.image(index).unwrap();
            assert_eq!(image, some.image(index).unwrap());
            assert_eq!(image, none.image(index).unwrap());
        }
        std::fs::remove_dir_all(path).unwrap();
        assert!(whole.image(9).is_ok() && some.image(2).is_ok() && some.image(3).is_err());
    }

    #[test]
    fn few_broken_files_are_skipped_and_many_give_an_error() {
        let path = folder("broken", &[30, 20]);
        for part in ["train", "test"] {
            std::fs::create_dir_all(path.join(part)).unwrap();
        }
        for class in ["a", "b"] {
            std::fs::rename(path.join(class), path.join("train").join(class)).unwrap();
        }
        let error = ImageFolder::open(&path, 1).unwrap_err().to_string();
        assert!(error.contains("test: expected 2 to 10000 folders"), "{error}");
        for class in ["a", "b"] {
            std::fs::create_dir_all(path.join("test").join(class)).unwrap();
        }
        let error = ImageFolder::open(&path, 1).unwrap_err().to_string();
        assert!(error.contains("at least 1 png, jpeg, webp"), "{error}");
        for class in ["a", "b"] {
            let of = |part: &str| path.join(part).join(class).join("000.png");
            std::fs::copy(of("train"), of("test")).unwrap();
        }
        let spoil = |name: &str| std::fs::write(path.join("train/a").join(name), b"none").unwrap();
        (0..2).for_each(|i| spoil(&format!("{i:03}.png")));
        let files = ImageFolder::open(&path, 1).unwrap();
        let loaded = files.load(Split::Train, 8, 8, IMAGE_BUDGET).unwrap();
        assert_eq!((loaded.images.len(), loaded.broken.len()), (48, 2));
        spoil("003.png");
        let error = files.load(Split::Train, 8, 8, IMAGE_BUDGET).unwrap_err().to_string();
        assert!(error.contains("at most 5 % of the files broken, got 3 of 50"), "{error}");
        std::fs::create_dir_all(path.join("test/c")).unwrap();
        let error = ImageFolder::open(&path, 1).unwrap_err().to_string();
        assert!(error.contains("c in only one of them"), "{error}");
        std::fs::remove_dir_all(path).unwrap();
    }
}
