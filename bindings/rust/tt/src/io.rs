//! Tensor files and checkpoints.
use crate::error::Result;
use crate::handle::*;
use crate::{StateDict, Tensor};
use std::path::Path;
use tt_sys as sys;

mod contents;
mod tensorboard;
pub use contents::*;
pub use tensorboard::*;

/// Writes a safetensors file with metadata, pairs of strings. `tensors` are pairs of names and
/// tensors: an array, a map, a [`StateDict`]. After a crash, the path has either the old file or
/// the new one.
///
/// ```
/// let path = std::env::temp_dir().join("tt_doc.safetensors");
/// tt::save(&path, &tt::nn::linear(2, 1)?.state_dict()?, &[])?;
/// tt::save(&path, [("weight", &tt::ones(&[2])?)], &[("made by", "a test")])?;
/// let file = tt::SafeTensors::open(&path)?;
/// assert_eq!(file.tensor("weight")?.to_vec::<f32>()?, [1.0, 1.0]);
/// assert_eq!(file.metadata().next(), Some(("made by".to_string(), "a test".to_string())));
/// # Ok::<(), tt::Error>(())
/// ```
pub fn save<N: AsRef<str>, T: AsRef<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
    metadata: &[(&str, &str)],
) -> Result<()> {
    let path = c_path(path)?;
    let (names, tensors): (Vec<N>, Vec<T>) = tensors.into_iter().unzip();
    let names = names.iter().map(|name| c_string(name.as_ref())).collect::<Result<Vec<_>>>()?;
    let pairs = metadata.iter().flat_map(|m| [m.0, m.1]);
    let texts = pairs.map(c_string).collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = names.iter().map(|n| n.as_ptr()).collect();
    let texts: Vec<_> = texts.iter().map(|t| t.as_ptr()).collect();
    let list: Vec<_> = tensors.iter().map(|t| t.as_ref().raw()).collect();
    let n = list.len() as i64;
    let opts = sys::tt_safetensors_save_opts {
        set: sys::TT_SAFETENSORS_SAVE_METADATA,
        metadata: texts.as_ptr(),
        n_metadata: texts.len() as i64,
    };
    // SAFETY: names, strings and handles are valid during the call.
    unsafe {
        call(|c| {
            let (path, names) = (path.as_ptr(), names.as_ptr());
            sys::tt_safetensors_save(c, path, names, list.as_ptr(), n, &opts)
        })
    }
}

/// The parts of a training run that are saved in one file, to resume the run later.
///
/// ```
/// let net = tt::nn::linear(2, 1)?;
/// let adam = tt::optim::adam(net.parameters()?)?;
/// let path = std::env::temp_dir().join("tt_doc.checkpoint");
/// let parts = tt::Checkpoint::new().module(&net).optimizer(&adam);
/// parts.save(&path)?;
/// parts.load(&path)?;
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "`save` or `load` does the work"]
pub struct Checkpoint<'a>(
    pub(crate) sys::tt_checkpoint,
    pub(crate) std::marker::PhantomData<&'a ()>,
);

impl Default for Checkpoint<'_> {
    fn default() -> Self {
        Checkpoint::new()
    }
}

impl<'a> Checkpoint<'a> {
    /// Adds tensors of the application. Loading replaces them with those of the file.
    pub fn extra(mut self, part: &'a mut StateDict) -> Result<Self> {
        self.0.extra = part.own()?;
        Ok(self)
    }
    /// Writes the file. After a crash, the path has either the old file or the new one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        // SAFETY: the parts are borrowed for 'a.
        unsafe { call(|c| sys::tt_checkpoint_save(c, path.as_ptr(), &self.0)) }
    }
    /// Loads all parts, or none on failure.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        // SAFETY: the parts are borrowed for 'a.
        unsafe { call(|c| sys::tt_checkpoint_load(c, path.as_ptr(), &self.0)) }
    }
}
