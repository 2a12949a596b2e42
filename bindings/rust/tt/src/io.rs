//! Files of tensors and checkpoints.
use crate::error::{Error, Result};
use crate::handle::*;
use crate::{StateDict, Status, Tensor};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tt_sys as sys;

fn c_path(path: impl AsRef<Path>) -> Result<CString> {
    CString::new(path.as_ref().as_os_str().as_bytes())
        .map_err(|_| Error::new(Status::InvalidArg, "the path has a zero byte"))
}

/// Writes a safetensors file in one step: after a crash path is the old file or the new one. metadata: texts kept beside the tensors.
///
/// ```
/// let path = std::env::temp_dir().join("tt_doc.safetensors");
/// tt::save(&path, &[("weight", &tt::ones(&[2])?)], &[("made by", "a test")])?;
/// let file = tt::SafeTensors::open(path.to_str().unwrap())?;
/// assert_eq!(file.tensor("weight")?.to_vec::<f32>()?, [1.0, 1.0]);
/// assert_eq!(file.metadata_value(0).as_deref(), Some("a test"));
/// # Ok::<(), tt::Error>(())
/// ```
pub fn save(
    path: impl AsRef<Path>,
    tensors: &[(&str, &Tensor)],
    metadata: &[(&str, &str)],
) -> Result<()> {
    let path = c_path(path)?;
    let names = tensors.iter().map(|t| c_string(t.0)).collect::<Result<Vec<_>>>()?;
    let texts =
        metadata.iter().flat_map(|m| [m.0, m.1]).map(c_string).collect::<Result<Vec<_>>>()?;
    let (names, texts): (Vec<_>, Vec<_>) =
        (names.iter().map(|n| n.as_ptr()).collect(), texts.iter().map(|t| t.as_ptr()).collect());
    let list: Vec<_> = tensors.iter().map(|t| t.1.raw()).collect();
    let opts = sys::tt_safetensors_save_opts {
        set: sys::TT_SAFETENSORS_SAVE_METADATA,
        metadata: texts.as_ptr(),
        n_metadata: texts.len() as i64,
    };
    unsafe {
        call(|c| {
            sys::tt_safetensors_save(
                c,
                path.as_ptr(),
                names.as_ptr(),
                list.as_ptr(),
                list.len() as i64,
                &opts,
            )
        })
    }
}

/// The parts of a training that one file keeps, from which it goes on as if it had not stopped.
///
/// ```
/// let net = tt::nn::linear(2, 1)?;
/// let adam = tt::optim::adam(&net.parameters()?)?;
/// let (path, parts) = (std::env::temp_dir().join("tt_doc.checkpoint"), tt::Checkpoint::new().module(&net).optimizer(&adam));
/// parts.save(&path)?;
/// parts.load(&path)?;
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Checkpoint<'a>(
    pub(crate) sys::tt_checkpoint,
    pub(crate) std::marker::PhantomData<&'a ()>,
);
impl<'a> Checkpoint<'a> {
    /// With the host's own tensors; a load sets those that the file has.
    pub fn extra(mut self, part: &'a mut StateDict) -> Result<Self> {
        self.0.extra = part.own()?;
        Ok(self)
    }
    /// Writes the file in one step.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        unsafe { call(|c| sys::tt_checkpoint_save(c, path.as_ptr(), &self.0)) }
    }
    /// All parts or none, of those that the file has.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        unsafe { call(|c| sys::tt_checkpoint_load(c, path.as_ptr(), &self.0)) }
    }
}
