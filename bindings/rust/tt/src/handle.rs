//! Handles own one reference of a tt object each. Calls: this thread's ctx in front, the error behind.
use crate::context::ctx;
use crate::error::{Error, Result};
use crate::{Index, Status, Tensor};
use std::borrow::Borrow;
use std::ffi::{CStr, CString};
use std::os::raw::c_char;
use std::ptr;
use tt_sys as sys;

/// An object of tt by its C handle, for calls of `tt_sys` beside this crate's.
pub trait Handle: Sized {
    /// The C type.
    type Raw;
    /// Takes over one reference.
    ///
    /// # Safety
    /// `raw` is a live handle, and the reference is the caller's to give away.
    unsafe fn from_raw(raw: *mut Self::Raw) -> Self;
    /// The C handle, valid while `self` is.
    fn raw(&self) -> *mut Self::Raw;
}

type Ctx = *mut sys::tt_ctx;

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
    call(|c| f(c, &mut out))?;
    Ok(T::from_raw(out))
}

/// For outs that may be absent.
pub(crate) unsafe fn call_opt<T: Handle>(
    f: impl FnOnce(Ctx, *mut *mut T::Raw) -> sys::tt_status,
) -> Result<Option<T>> {
    let mut out = ptr::null_mut();
    call(|c| f(c, &mut out))?;
    Ok(owned(out))
}

/// For a number or a plain struct.
pub(crate) unsafe fn call_value<V: Default>(
    f: impl FnOnce(Ctx, *mut V) -> sys::tt_status,
) -> Result<V> {
    let mut value = V::default();
    call(|c| f(c, &mut value)).map(|_| value)
}

/// For lists of unknown length: f(ctx, items, room, length); asks again where there is not room enough.
pub(crate) unsafe fn call_array<V: Copy>(
    zero: V,
    mut f: impl FnMut(Ctx, *mut V, i64, *mut i64) -> sys::tt_status,
) -> Result<Vec<V>> {
    let mut items = vec![zero; 64];
    loop {
        let mut n = 0;
        match call(|c| f(c, items.as_mut_ptr(), items.len() as i64, &mut n)) {
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
    Ok(call_array(ptr::null_mut(), f)?.into_iter().map(|t| Tensor::from_raw(t)).collect())
}

/// For a name of at most 96 bytes and what has it.
pub(crate) unsafe fn call_named<V: Default>(
    f: impl FnOnce(Ctx, *mut c_char, i64, *mut V) -> sys::tt_status,
) -> Result<(String, V)> {
    let mut name = [0 as c_char; 96];
    let value = call_value(|c, out| f(c, name.as_mut_ptr(), 96, out))?;
    Ok((text_of(name.as_ptr()).into_owned(), value))
}

pub(crate) unsafe fn call_text(
    f: impl FnMut(Ctx, *mut c_char, i64, *mut i64) -> sys::tt_status,
) -> Result<String> {
    let bytes = call_array(0 as c_char, f)?;
    Ok(String::from_utf8_lossy(&bytes.iter().map(|b| *b as u8).collect::<Vec<_>>()).into_owned())
}

#[inline]
pub(crate) fn opt_raw<T: Handle>(handle: Option<&T>) -> *mut T::Raw {
    handle.map_or(ptr::null_mut(), T::raw)
}

pub(crate) fn raw_list<T: Handle>(handles: &[impl Borrow<T>]) -> Vec<*mut T::Raw> {
    handles.iter().map(|h| h.borrow().raw()).collect()
}

pub(crate) fn opt_list<T: Handle>(handles: &[Option<&T>]) -> Vec<*mut T::Raw> {
    handles.iter().map(|h| opt_raw(*h)).collect()
}

pub(crate) fn index_list(indices: &[Index]) -> Vec<sys::tt_index> {
    indices.iter().map(Index::raw).collect()
}

pub(crate) fn c_string(text: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::new(Status::InvalidArg, format!("{:?} has a zero byte", text)))
}

/// "" for NULL.
pub(crate) unsafe fn text_of<'a>(s: *const c_char) -> std::borrow::Cow<'a, str> {
    if s.is_null() {
        return "".into();
    }
    CStr::from_ptr(s).to_string_lossy()
}

pub(crate) unsafe fn opt_text(s: *const c_char) -> Option<String> {
    (!s.is_null()).then(|| text_of(s).into_owned())
}

/// Takes over what may be NULL.
pub(crate) unsafe fn owned<T: Handle>(raw: *mut T::Raw) -> Option<T> {
    (!raw.is_null()).then(|| T::from_raw(raw))
}

/// One reference more of what tt lends.
pub(crate) unsafe fn shared<T: Handle + Clone>(raw: *mut T::Raw) -> Option<T> {
    owned::<T>(raw).map(|t| (*std::mem::ManuallyDrop::new(t)).clone())
}
