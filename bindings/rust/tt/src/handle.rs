//! Handles, which own references to tt objects, and C calls with this thread's context.
use crate::context::ctx;
use crate::error::{Error, Result};
use crate::{Index, Status, Tensor};
use std::borrow::{Borrow, Cow};
use std::ffi::{CStr, CString};
use std::ops::Deref;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use tt_sys as sys;

/// A tt object with its C handle, for direct calls of `tt_sys`.
pub trait Handle: Sized {
    /// The C type.
    type Raw;
    /// Takes ownership of one reference.
    ///
    /// # Safety
    /// `raw` is a live handle, and the caller owns the reference.
    unsafe fn from_raw(raw: *mut Self::Raw) -> Self;
    /// Returns the C handle, which is valid while `self` is.
    fn raw(&self) -> *mut Self::Raw;
}

type Ctx = *mut sys::tt_ctx;

/// Calls f with the thread's context.
///
/// # Safety
/// The call in `f` is sound. The functions below require the same; they also take ownership of the
/// results.
#[inline(always)]
pub(crate) unsafe fn call(f: impl FnOnce(Ctx) -> sys::tt_status) -> Result<()> {
    let c = ctx();
    if f(c) != 0 {
        return Err(Error::last(c));
    }
    Ok(())
}

#[inline(always)]
pub(crate) unsafe fn call1<T: Handle>(
    f: impl FnOnce(Ctx, *mut *mut T::Raw) -> sys::tt_status,
) -> Result<T> {
    let mut out = ptr::null_mut();
    // SAFETY: a successful call returns one reference.
    unsafe {
        call(|c| f(c, &mut out))?;
        Ok(T::from_raw(out))
    }
}

/// Like [`call1`], for an optional result.
pub(crate) unsafe fn call_opt<T: Handle>(
    f: impl FnOnce(Ctx, *mut *mut T::Raw) -> sys::tt_status,
) -> Result<Option<T>> {
    let mut out = ptr::null_mut();
    // SAFETY: a successful call returns one reference or NULL.
    unsafe {
        call(|c| f(c, &mut out))?;
        Ok(owned(out))
    }
}

/// Like [`call1`], for a number or a plain struct.
pub(crate) unsafe fn call_value<V: Default>(
    f: impl FnOnce(Ctx, *mut V) -> sys::tt_status,
) -> Result<V> {
    let mut value = V::default();
    // SAFETY: guaranteed by the caller.
    unsafe { call(|c| f(c, &mut value)).map(|_| value) }
}

/// Calls f(ctx, items, capacity, length) for a list of unknown length, again if it is longer than
/// the capacity.
pub(crate) unsafe fn call_array<V: Copy>(
    zero: V,
    mut f: impl FnMut(Ctx, *mut V, i64, *mut i64) -> sys::tt_status,
) -> Result<Vec<V>> {
    let mut items = vec![zero; 64];
    loop {
        let mut n = 0;
        // SAFETY: guaranteed by the caller.
        match unsafe { call(|c| f(c, items.as_mut_ptr(), items.len() as i64, &mut n)) } {
            Err(e) if e.status == Status::BufferTooSmall && n >= items.len() as i64 => {
                items.resize(n as usize + 1, zero)
            }
            Err(e) => return Err(e),
            Ok(()) => {
                items.truncate(n as usize);
                return Ok(items);
            }
        }
    }
}

pub(crate) unsafe fn call_list(
    f: impl FnMut(Ctx, *mut *mut sys::tt_tensor, i64, *mut i64) -> sys::tt_status,
) -> Result<Vec<Tensor>> {
    // SAFETY: a successful call returns one reference per item.
    unsafe {
        Ok(call_array(ptr::null_mut(), f)?.into_iter().map(|t| Tensor::from_raw(t)).collect())
    }
}

/// Like [`call_value`], for a value with a name of at most 96 bytes.
pub(crate) unsafe fn call_named<V: Default>(
    f: impl FnOnce(Ctx, *mut c_char, i64, *mut V) -> sys::tt_status,
) -> Result<(String, V)> {
    let mut name = [0 as c_char; 96];
    // SAFETY: a successful call terminates the name with 0.
    unsafe {
        let value = call_value(|c, out| f(c, name.as_mut_ptr(), 96, out))?;
        Ok((text_of(name.as_ptr()).into_owned(), value))
    }
}

pub(crate) unsafe fn call_text(
    f: impl FnMut(Ctx, *mut c_char, i64, *mut i64) -> sys::tt_status,
) -> Result<String> {
    // SAFETY: guaranteed by the caller.
    let chars = unsafe { call_array(0 as c_char, f)? };
    let bytes: Vec<u8> = chars.iter().map(|c| *c as u8).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[inline]
pub(crate) fn opt_raw<T: Handle>(handle: Option<&T>) -> *mut T::Raw {
    handle.map_or(ptr::null_mut(), T::raw)
}

/// A list of at most N items, which needs no allocation, or a longer one. Moving it invalidates
/// pointers to its items.
pub(crate) enum List<T, const N: usize> {
    Short([T; N], usize),
    Long(Vec<T>),
}
impl<T: Copy, const N: usize> List<T, N> {
    #[inline]
    fn new<S>(from: &[S], zero: T, convert: impl Fn(&S) -> T) -> List<T, N> {
        if from.len() > N {
            return List::Long(from.iter().map(convert).collect());
        }
        let mut items = [zero; N];
        for (item, from) in items.iter_mut().zip(from) {
            *item = convert(from);
        }
        List::Short(items, from.len())
    }
}
impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            List::Short(items, n) => &items[..*n],
            List::Long(items) => items,
        }
    }
}
type Handles<T> = List<*mut T, 8>;

#[inline]
pub(crate) fn raw_list<T: Handle>(handles: &[impl Borrow<T>]) -> Handles<T::Raw> {
    List::new(handles, ptr::null_mut(), |h| h.borrow().raw())
}

#[inline]
pub(crate) fn opt_list<T: Handle>(handles: &[Option<&T>]) -> Handles<T::Raw> {
    List::new(handles, ptr::null_mut(), |h| opt_raw(*h))
}

/// The handles of an iterator's tensors, and the tensors, which the iterator may own.
pub(crate) struct RawItems<T> {
    raw: Vec<*mut sys::tt_tensor>,
    _items: Vec<T>,
}
impl<T> RawItems<T> {
    pub(crate) fn as_ptr(&self) -> *const *mut sys::tt_tensor {
        self.raw.as_ptr()
    }
    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }
}

pub(crate) fn raw_items<T: AsRef<Tensor>>(items: impl IntoIterator<Item = T>) -> RawItems<T> {
    let items: Vec<T> = items.into_iter().collect();
    RawItems { raw: items.iter().map(|t| t.as_ref().raw()).collect(), _items: items }
}

#[inline]
pub(crate) fn index_list(indices: &[Index]) -> List<sys::tt_index, 4> {
    List::new(indices, sys::tt_index::default(), Index::raw)
}

pub(crate) fn c_string(text: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(Status::InvalidArg, format!("{:?} has a zero byte", text)))
}

pub(crate) fn c_path(path: impl AsRef<Path>) -> Result<CString> {
    CString::new(path.as_ref().as_os_str().as_bytes())
        .map_err(|_| Error::new(Status::InvalidArg, "the path has a zero byte"))
}

/// Copies a C array.
///
/// # Safety
/// `items` is NULL or has n numbers.
pub(crate) unsafe fn numbers(items: *const i64, n: i32) -> Vec<i64> {
    if items.is_null() || n <= 0 {
        return vec![];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(items, n as usize) }.to_vec()
}

/// Converts a C string; NULL becomes "".
///
/// # Safety
/// `s` is NULL or valid for `'a`.
pub(crate) unsafe fn text_of<'a>(s: *const c_char) -> Cow<'a, str> {
    if s.is_null() {
        return "".into();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(s) }.to_string_lossy()
}

/// Converts a C string; NULL becomes None.
///
/// # Safety
/// `s` is NULL or valid.
pub(crate) unsafe fn opt_text(s: *const c_char) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (!s.is_null()).then(|| unsafe { text_of(s) }.into_owned())
}

/// Takes ownership of a reference, which may be NULL.
///
/// # Safety
/// `raw` is NULL or a live handle whose reference the caller owns.
pub(crate) unsafe fn owned<T: Handle>(raw: *mut T::Raw) -> Option<T> {
    // SAFETY: guaranteed by the caller.
    (!raw.is_null()).then(|| unsafe { T::from_raw(raw) })
}

/// Clones a borrowed handle, which may be NULL.
///
/// # Safety
/// `raw` is NULL or a live handle.
pub(crate) unsafe fn shared<T: Handle + Clone>(raw: *mut T::Raw) -> Option<T> {
    // SAFETY: the borrowed reference is not dropped.
    unsafe { owned::<T>(raw) }.map(|t| (*std::mem::ManuallyDrop::new(t)).clone())
}
