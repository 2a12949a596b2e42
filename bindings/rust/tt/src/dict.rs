//! Tensors by name: state dicts and safetensors files.
use crate::error::Result;
use crate::handle::*;
use crate::tensor::refuse;
use crate::{SafeTensors, Tensor};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use tt_sys as sys;

/// Tensors by name, in order: the state of a module or an optimizer, the contents of a checkpoint.
/// A clone shares the tensors, but not later insertions.
///
/// ```
/// use tt::{StateDict, Tensor};
/// let mut state: StateDict = tt::nn::linear(2, 1)?.state_dict()?;
/// assert_eq!(state.keys().collect::<Vec<_>>(), ["weight", "bias"]);
/// state.insert("step", &Tensor::from(7i64))?;
/// for (name, tensor) in &state {
///     println!("{name}: {tensor:?}");
/// }
/// let weights: StateDict = state.iter().filter(|(name, _)| name == "weight").collect();
/// assert_eq!((weights.len(), state.get("nothing").is_none()), (1, true));
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone)]
pub struct StateDict(Arc<Dict>);

struct Dict {
    raw: NonNull<sys::tt_state_dict>,
    structure: Option<String>, // of a copy, whose C dict has none
}
// SAFETY: a shared Dict is immutable.
unsafe impl Send for Dict {}
// SAFETY: as above.
unsafe impl Sync for Dict {}
impl Drop for Dict {
    fn drop(&mut self) {
        // SAFETY: we own the reference.
        unsafe { sys::tt_state_dict_release(self.raw.as_ptr()) }
    }
}

/// After `from_raw`, the dict must not be changed through another handle.
impl Handle for StateDict {
    type Raw = sys::tt_state_dict;
    unsafe fn from_raw(raw: *mut sys::tt_state_dict) -> StateDict {
        // SAFETY: the caller gives a live handle, which is not null.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        StateDict(Arc::new(Dict { raw, structure: None }))
    }
    fn raw(&self) -> *mut sys::tt_state_dict {
        self.0.raw.as_ptr()
    }
}

impl StateDict {
    /// Sets the tensor of a name: replaces that of an existing name, or appends a new name.
    pub fn insert(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        let (name, own) = (c_string(name)?, self.own()?);
        // SAFETY: `own` is not shared.
        unsafe { call(|c| sys::tt_state_dict_set(c, own, name.as_ptr(), tensor.raw())) }
    }
    /// Sets the tensor of a name; the same as [`insert`](StateDict::insert).
    pub fn set(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        self.insert(name, tensor)
    }
    /// Inserts all pairs of an iterator. Where this returns an error, for a name with a zero byte
    /// or if memory is exhausted, `collect` and `extend` panic.
    pub fn try_extend<N: AsRef<str>, T: AsRef<Tensor>>(
        &mut self,
        pairs: impl IntoIterator<Item = (N, T)>,
    ) -> Result<()> {
        pairs.into_iter().try_for_each(|(name, t)| self.insert(name.as_ref(), t.as_ref()))
    }
    /// Returns the structure of the file that [`torch_load`](crate::torch_load) read, as JSON
    /// (described in tt.h); None for other dicts.
    pub fn structure(&self) -> Option<String> {
        let own = self.0.structure.clone();
        // SAFETY: the string is valid while the dict does not change.
        own.or_else(|| unsafe { opt_text(sys::tt_state_dict_structure(self.raw())) })
    }
    /// Returns the handle for modification. A dict shared with clones is copied first.
    pub(crate) fn own(&mut self) -> Result<*mut sys::tt_state_dict> {
        if Arc::get_mut(&mut self.0).is_none() {
            let mut copy = StateDict::new()?;
            copy.try_extend(self.iter())?;
            Arc::get_mut(&mut copy.0).expect("nobody else has the copy").structure =
                self.structure();
            *self = copy;
        }
        Ok(self.raw())
    }
}

macro_rules! named_tensors {
    ($t:ident: $size:ident, $name:ident, $find:ident, $get:ident) => {
        impl $t {
            /// Returns the number of tensors.
            pub fn len(&self) -> usize {
                // SAFETY: the handle is live.
                unsafe { sys::$size(self.raw()) as usize }
            }
            /// Returns whether there are no tensors.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
            /// Returns the i-th name.
            pub fn name(&self, i: usize) -> Option<String> {
                let i = i64::try_from(i).ok()?;
                // SAFETY: the name is valid while the list does not change.
                unsafe { opt_text(sys::$name(self.raw(), i)) }
            }
            /// Returns the i-th tensor; fails with `Status::Index` past the end.
            pub fn at(&self, i: usize) -> Result<Tensor> {
                let i = i64::try_from(i).unwrap_or(i64::MAX);
                // SAFETY: the handle is live.
                unsafe { call1(|c, out| sys::$get(c, self.raw(), i, out)) }
            }
            /// Returns the position of a name; fails with `Status::Index` if it is absent.
            pub fn find(&self, name: &str) -> Result<usize> {
                let name = c_string(name)?;
                let i: i64 =
                    // SAFETY: the name is valid during the call.
                    unsafe { call_value(|c, out| sys::$find(c, self.raw(), name.as_ptr(), out))? };
                Ok(i as usize)
            }
            /// Returns the tensor of a name; fails with `Status::Index` if it is absent.
            pub fn tensor(&self, name: &str) -> Result<Tensor> {
                self.at(self.find(name)?)
            }
            /// Returns whether there is a tensor of a name.
            pub fn contains_key(&self, name: &str) -> bool {
                self.find(name).is_ok()
            }
            /// Returns all names, in order.
            pub fn names(&self) -> Vec<String> {
                self.keys().collect()
            }
            /// Iterates over the names, in order.
            pub fn keys(&self) -> impl Iterator<Item = String> + '_ {
                (0..self.len()).filter_map(move |i| self.name(i))
            }
        }
    };
}
named_tensors! {
    StateDict: tt_state_dict_size, tt_state_dict_name, tt_state_dict_find, tt_state_dict_get
}
named_tensors! {
    SafeTensors: tt_safetensors_size, tt_safetensors_name, tt_safetensors_find, tt_safetensors_get
}

// ---- the dict as a map ----

impl StateDict {
    /// Returns the tensor of a name; None if it is absent.
    pub fn get(&self, name: &str) -> Option<Tensor> {
        self.tensor(name).ok()
    }
    /// Iterates over the names and tensors, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { dict: self, next: 0 }
    }
    /// Iterates over the tensors, in order.
    pub fn values(&self) -> impl Iterator<Item = Tensor> + '_ {
        self.iter().map(|(_, tensor)| tensor)
    }
    fn pair(&self, i: usize) -> Option<(String, Tensor)> {
        Some((self.name(i)?, self.at(i).ok()?))
    }
}

/// Iterates over the names and tensors of a borrowed [`StateDict`].
#[derive(Clone, Debug)]
#[must_use = "iterators are lazy"]
pub struct Iter<'a> {
    dict: &'a StateDict,
    next: usize,
}
impl Iterator for Iter<'_> {
    type Item = (String, Tensor);
    fn next(&mut self) -> Option<(String, Tensor)> {
        let pair = self.dict.pair(self.next)?;
        self.next += 1;
        Some(pair)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.dict.len() - self.next;
        (left, Some(left))
    }
}
impl ExactSizeIterator for Iter<'_> {}
impl<'a> IntoIterator for &'a StateDict {
    type Item = (String, Tensor);
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterates over the names and tensors of an owned [`StateDict`].
#[derive(Clone, Debug)]
#[must_use = "iterators are lazy"]
pub struct IntoIter {
    dict: StateDict,
    next: usize,
}
impl Iterator for IntoIter {
    type Item = (String, Tensor);
    fn next(&mut self) -> Option<(String, Tensor)> {
        let pair = self.dict.pair(self.next)?;
        self.next += 1;
        Some(pair)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.dict.len() - self.next;
        (left, Some(left))
    }
}
impl ExactSizeIterator for IntoIter {}
impl IntoIterator for StateDict {
    type Item = (String, Tensor);
    type IntoIter = IntoIter;
    fn into_iter(self) -> IntoIter {
        IntoIter { dict: self, next: 0 }
    }
}

impl<N: AsRef<str>, T: AsRef<Tensor>> Extend<(N, T)> for StateDict {
    #[track_caller]
    fn extend<I: IntoIterator<Item = (N, T)>>(&mut self, pairs: I) {
        if let Err(e) = self.try_extend(pairs) {
            refuse(e)
        }
    }
}
impl<N: AsRef<str>, T: AsRef<Tensor>> FromIterator<(N, T)> for StateDict {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = (N, T)>>(pairs: I) -> StateDict {
        let dict = StateDict::new().and_then(|mut dict| dict.try_extend(pairs).map(|()| dict));
        match dict {
            Ok(dict) => dict,
            Err(e) => refuse(e),
        }
    }
}

impl fmt::Debug for StateDict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

// ---- files ----

impl SafeTensors {
    /// Iterates over the metadata of the file, pairs of strings.
    pub fn metadata(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let pair = move |i| Some((self.metadata_key(i)?, self.metadata_value(i)?));
        (0..self.metadata_size()).filter_map(pair)
    }
}
impl fmt::Debug for SafeTensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SafeTensors").field(&self.names()).finish()
    }
}
