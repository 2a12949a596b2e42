//! Event files of TensorBoard.
use crate::error::{Error, Result};
use crate::handle::*;
use crate::{Status, Tensor};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tt_sys as sys;

/// Writes scalars, texts, histograms and images to an event file, for TensorBoard, as
/// `torch.utils.tensorboard` does. Each call appends one value under a tag, at a step.
///
/// ```
/// let folder = std::env::temp_dir().join(format!("tt-runs-{}", std::process::id()));
/// let writer = tt::SummaryWriter::new(&folder)?;
/// for step in 0..3 {
///     writer.add_scalar("loss", 1.0 / f64::from(step + 1), step.into())?;
/// }
/// writer.add_histogram("weights", &tt::randn(&[100])?, 2)?;
/// assert!(std::fs::metadata(writer.path()).unwrap().len() > 100);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SummaryWriter {
    path: String,
}

impl SummaryWriter {
    /// Names a new file in a folder, which is created if it does not exist. The first value creates
    /// the file.
    pub fn new(log_dir: impl AsRef<Path>) -> Result<SummaryWriter> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        let folder = log_dir.as_ref();
        let failed = |why: String| Error::new(Status::Io, format!("{}: {}", folder.display(), why));
        std::fs::create_dir_all(folder).map_err(|e| failed(e.to_string()))?;
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let path = folder.join(format!("events.out.tfevents.{seconds:010}.tt.{process}.{number}"));
        let path = path.to_str().ok_or_else(|| failed("is not UTF-8".into()))?.to_string();
        Ok(SummaryWriter { path })
    }
    /// Returns the path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }
    /// Appends a number, as float32.
    pub fn add_scalar(&self, tag: &str, scalar_value: f64, global_step: i64) -> Result<()> {
        let (path, tag) = (c_string(&self.path)?, c_string(tag)?);
        // SAFETY: the texts are valid during the call.
        unsafe {
            call(|c| {
                let (path, tag) = (path.as_ptr(), tag.as_ptr());
                sys::tt_tensorboard_add_scalar(c, path, tag, scalar_value, global_step)
            })
        }
    }
    /// Appends a text, which TensorBoard renders as Markdown.
    pub fn add_text(&self, tag: &str, text_string: &str, global_step: i64) -> Result<()> {
        let (path, tag, text) = (c_string(&self.path)?, c_string(tag)?, c_string(text_string)?);
        // SAFETY: the texts are valid during the call.
        unsafe {
            call(|c| {
                let (path, tag) = (path.as_ptr(), tag.as_ptr());
                sys::tt_tensorboard_add_text(c, path, tag, text.as_ptr(), global_step)
            })
        }
    }
    /// Appends a histogram of values in TensorFlow's bins, whose edges are powers of 1.1.
    pub fn add_histogram(&self, tag: &str, values: &Tensor, global_step: i64) -> Result<()> {
        let (path, tag) = (c_string(&self.path)?, c_string(tag)?);
        // SAFETY: texts and handles are valid during the call.
        unsafe {
            call(|c| {
                let (path, tag) = (path.as_ptr(), tag.as_ptr());
                sys::tt_tensorboard_add_histogram(c, path, tag, values.raw(), global_step)
            })
        }
    }
    /// Appends an image (C, H, W) of 1, 3 or 4 channels: uint8, or numbers from 0 to 1.
    pub fn add_image(&self, tag: &str, img_tensor: &Tensor, global_step: i64) -> Result<()> {
        let (path, tag) = (c_string(&self.path)?, c_string(tag)?);
        // SAFETY: texts and handles are valid during the call.
        unsafe {
            call(|c| {
                let (path, tag) = (path.as_ptr(), tag.as_ptr());
                sys::tt_tensorboard_add_image(c, path, tag, img_tensor.raw(), global_step)
            })
        }
    }
}
