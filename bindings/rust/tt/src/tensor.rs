//! Tensors from and to Rust memory, tensor properties, and printing.
use crate::callback::{drop_user, slice};
use crate::error::{Error, Result};
use crate::handle::*;
use crate::{DType, Device, Element, Scalar, Status, Tensor};
use std::fmt;
use std::mem::ManuallyDrop;
use std::os::raw::c_void;
use tt_sys as sys;

/// Makes a 0-dimensional tensor. The default dtype follows from the kind of number.
pub fn scalar(value: impl Into<Scalar>, dtype: Option<DType>) -> Result<Tensor> {
    let value = value.into().raw();
    // SAFETY: the number is valid during the call.
    unsafe { call1(|c, out| sys::tt_scalar_tensor(c, &value, dtype.map_or(0, |d| d as i32), out)) }
}

// A uint64 that is no i64: as a floating-point number, if that is its value.
#[cold]
fn large(value: u64) -> Result<Scalar> {
    let near = value as f64;
    if near as u128 == u128::from(value) {
        return Ok(Scalar::Float(near));
    }
    let why = format!("{} is neither an i64 nor an f64: read it by to_vec::<u64>()", value);
    Err(Error::new(Status::Dtype, why))
}

/// # Data and properties
impl Tensor {
    /// Makes a tensor from a copy of row-major data.
    ///
    /// ```
    /// let x = tt::Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!((&x * 2.0 + &x).to_vec::<f32>()?, [3.0, 6.0, 9.0, 12.0]);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn from_slice<T: Element>(data: &[T], shape: &[i64]) -> Result<Tensor> {
        check_length(data.len(), shape)?;
        // SAFETY: data has as many elements as the shape, and both are valid during the call.
        unsafe {
            call1(|c, out| {
                sys::tt_tensor_from_data(
                    c,
                    data.as_ptr() as *const c_void,
                    T::DTYPE as i32,
                    shape.as_ptr(),
                    shape.len() as i64,
                    out,
                )
            })
        }
    }
    /// Makes a tensor that takes ownership of a vector, without a copy.
    pub fn from_vec<T: Element>(mut data: Vec<T>, shape: &[i64]) -> Result<Tensor> {
        check_length(data.len(), shape)?;
        let p = data.as_mut_ptr();
        // SAFETY: the tensor owns the vector, whose elements do not move; their number matches the
        // shape.
        unsafe { Tensor::import(p, shape, None, true, data) }
    }
    /// Makes a tensor on memory owned by `owner`. The owner is dropped with the last tensor that
    /// uses the memory, on any thread. Strides are in elements; None means row-major.
    ///
    /// # Safety
    /// The memory is valid for all elements until the owner is dropped. Until then tt may read and
    /// write it.
    pub unsafe fn import<T: Element, O: Send + 'static>(
        data: *mut T,
        shape: &[i64],
        strides: Option<&[i64]>,
        writable: bool,
        owner: O,
    ) -> Result<Tensor> {
        if strides.map_or(false, |s| s.len() != shape.len()) {
            return Err(Error::new(Status::InvalidArg, "strides must have one item per dimension"));
        }
        let (user, strides) = (
            crate::callback::user(Owner(owner)),
            strides.map_or(std::ptr::null(), <[i64]>::as_ptr),
        );
        let (data, dtype, n) = (data as *mut c_void, T::DTYPE as i32, shape.len() as i64);
        // SAFETY: the caller guarantees the memory; there are as many strides as sizes.
        unsafe {
            call1(|c, out| {
                sys::tt_tensor_import(
                    c,
                    data,
                    dtype,
                    shape.as_ptr(),
                    n,
                    strides,
                    writable as i32,
                    Some(drop_user::<Owner<O>>),
                    user,
                    out,
                )
            })
        }
    }
    /// Copies all elements, row-major. T must be the tensor's dtype.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype(T::DTYPE)?;
        let n = self.numel() as usize;
        let mut data = empty_vec::<T>(n)?;
        let (p, bytes) = (data.as_mut_ptr() as *mut u8, n * std::mem::size_of::<T>());
        // SAFETY: there is room for n elements of T, and all are written.
        unsafe {
            call(|c| sys::tt_tensor_read(c, self.raw(), p as *mut c_void, bytes as i64))?;
            if T::DTYPE == DType::Bool {
                // A file may have bytes other than 0 and 1, which are not valid `bool`s.
                let written = std::slice::from_raw_parts_mut(p, bytes);
                written.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
            }
            data.set_len(n);
        }
        Ok(data)
    }
    /// Copies the elements of any dtype as bytes, row-major.
    #[cfg(feature = "serde")]
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let n = self.numel() as usize * self.dtype().size();
        let mut data = empty_vec::<u8>(n)?;
        let p = data.as_mut_ptr() as *mut c_void;
        // SAFETY: there is room for n bytes, and all are written.
        unsafe {
            call(|c| sys::tt_tensor_read(c, self.raw(), p, n as i64))?;
            data.set_len(n);
        }
        Ok(data)
    }
    /// Returns the value of a one-element tensor as any number type; fails if the type cannot
    /// represent the value exactly.
    ///
    /// ```
    /// let x = tt::Tensor::from(2.5f32);
    /// assert_eq!(x.item::<f64>()?, 2.5);
    /// assert!(x.item::<i64>().is_err());
    /// assert_eq!((x * 2.0).item::<usize>()?, 5);
    /// # Ok::<(), tt::Error>(())
    /// ```
    #[inline]
    pub fn item<T: TryFrom<Scalar, Error = Error>>(&self) -> Result<T> {
        self.item_by(Scalar::try_into)
    }
    /// Returns the value of a one-element tensor.
    pub fn item_scalar(&self) -> Result<Scalar> {
        self.item_by(Ok)
    }
    /// Converts the value of a one-element tensor. Floats and integers have calls of `convert`
    /// of their own, from which the compiler removes the other kinds.
    #[inline(always)]
    fn item_by<T>(&self, convert: impl Fn(Scalar) -> Result<T>) -> Result<T> {
        let mut value = sys::tt_scalar::default();
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_item(c, self.raw(), &mut value))? };
        match value.kind {
            sys::TT_SCALAR_FLOAT => convert(Scalar::Float(value.re)),
            sys::TT_SCALAR_INT if value.i < 0 && self.dtype() == DType::U64 => {
                convert(large(value.i as u64)?)
            }
            sys::TT_SCALAR_INT => convert(Scalar::Int(value.i)),
            _ => convert(Scalar::of_raw(&value)),
        }
    }
    /// Returns whether both tensors have the same shape and equal elements. NaN equals nothing.
    ///
    /// ```
    /// let x = tt::Tensor::from_slice(&[1.0f32, 2.0], &[2])?;
    /// assert!(x.equal(&x)? && !x.equal(&(&x + 1.0))?);
    /// assert!(x.allclose(&(&x + 1e-7), 1e-5, 1e-8, false)?);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn equal(&self, other: &Tensor) -> Result<bool> {
        let mut out = 0;
        // SAFETY: the handles are live.
        unsafe { call(|c| sys::tt_equal(c, self.raw(), other.raw(), &mut out))? };
        Ok(out != 0)
    }
    /// Returns whether |self - other| <= atol + rtol * |other|, or equality, holds for all
    /// elements of the broadcast tensors. PyTorch's defaults are 1e-5, 1e-8 and false.
    ///
    /// equal_nan: whether NaN equals NaN.
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<bool> {
        let (nan, mut out) = (equal_nan.into(), 0);
        // SAFETY: the handles are live.
        unsafe {
            call(|c| sys::tt_allclose(c, self.raw(), other.raw(), rtol, atol, nan, &mut out))?
        };
        Ok(out != 0)
    }
    /// Borrows the memory of a contiguous tensor on the CPU.
    ///
    /// # Safety
    /// Nothing writes to the memory while the slice lives. Clones and views alias it, and so may
    /// other libraries, after an import or export.
    pub unsafe fn as_slice<T: Element>(&self) -> Result<&[T]> {
        // SAFETY: the memory has numel elements of T; the caller guarantees the rest.
        Ok(unsafe { slice(self.memory(T::DTYPE)? as *const T, self.numel()) })
    }
    /// Borrows the memory of a contiguous tensor on the CPU for writing.
    ///
    /// # Safety
    /// Nothing else reads or writes the memory while the slice lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice<T: Element>(&self) -> Result<&mut [T]> {
        let p = self.memory(T::DTYPE)? as *mut T;
        if !self.is_writable() {
            let why = "the tensor is over memory that was imported as read-only";
            return Err(Error::new(Status::InvalidArg, why));
        }
        if self.numel() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the memory has numel elements of T; the caller guarantees the rest.
        Ok(unsafe { std::slice::from_raw_parts_mut(p, self.numel() as usize) })
    }
    fn memory(&self, dtype: DType) -> Result<*mut c_void> {
        self.check_dtype(dtype)?;
        if !self.is_contiguous() || self.device() != Device::CPU {
            let why = "only a contiguous tensor on the CPU can be borrowed as a slice";
            return Err(Error::new(Status::InvalidArg, why));
        }
        crate::graph::note_read()?;
        Ok(self.data_ptr())
    }
    fn check_dtype(&self, wanted: DType) -> Result<()> {
        if self.dtype() == wanted {
            return Ok(());
        }
        Err(Error::new(
            Status::Dtype,
            format!("the tensor is {}, not {}: `to_dtype` converts it", self.dtype(), wanted),
        ))
    }
    /// Returns the address of the first element; null on the meta device.
    pub fn data_ptr(&self) -> *mut c_void {
        // SAFETY: the handle is live.
        unsafe { sys::tt_tensor_data(self.raw()) }
    }
    /// Returns the address of the first byte of the storage.
    pub fn storage_ptr(&self) -> *mut c_void {
        // SAFETY: the handle is live.
        unsafe { sys::tt_tensor_storage_data(self.raw()) }
    }
    /// Returns the sizes of the dimensions.
    pub fn shape(&self) -> &[i64] {
        // SAFETY: the list has ndim sizes, and is valid and unchanged while the tensor lives.
        unsafe { slice(sys::tt_tensor_shape(self.raw()), self.ndim()) }
    }
    /// Returns the strides of the dimensions, in elements.
    pub fn strides(&self) -> &[i64] {
        // SAFETY: as in `shape`.
        unsafe { slice(sys::tt_tensor_strides(self.raw()), self.ndim()) }
    }
    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        // SAFETY: the handle is live.
        let raw = unsafe { sys::tt_tensor_dtype(self.raw()) };
        DType::from_raw(raw).expect("a dtype of this library's version")
    }
    /// Returns the device of the tensor.
    pub fn device(&self) -> Device {
        // SAFETY: the handle is live.
        unsafe {
            Device::of_raw(sys::tt_device {
                type_: sys::tt_tensor_device_type(self.raw()),
                index: sys::tt_tensor_device_index(self.raw()),
            })
        }
    }
    /// Converts to a dtype; returns the tensor itself if it already has that dtype.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        self.to_with(crate::opts::ToOpts::new().dtype(dtype))
    }
    /// Copies to a device; returns the tensor itself if it is already there.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        self.to_with(crate::opts::ToOpts::new().device(device))
    }
    /// Passes the reference to the caller, who releases it with `tt_tensor_release` or `from_raw`.
    pub fn into_raw(self) -> *mut sys::tt_tensor {
        ManuallyDrop::new(self).raw()
    }
    /// Exports a `DLManagedTensor`, or a versioned one, without a copy. The receiver calls its
    /// deleter.
    pub fn to_dlpack(&self, versioned: bool) -> Result<*mut c_void> {
        let mut out = std::ptr::null_mut();
        // SAFETY: the handle is live.
        unsafe { call(|c| sys::tt_tensor_to_dlpack(c, self.raw(), versioned as i32, &mut out))? };
        Ok(out)
    }
    /// Imports a `DLManagedTensor`, or a versioned one, without a copy. The tensor calls its
    /// deleter; on failure, the caller keeps ownership.
    ///
    /// # Safety
    /// `managed` points to such a struct, and its memory is valid until the deleter is called.
    pub unsafe fn from_dlpack(managed: *mut c_void, versioned: bool) -> Result<Tensor> {
        // SAFETY: guaranteed by the caller.
        unsafe { call1(|c, out| sys::tt_tensor_from_dlpack(c, managed, versioned as i32, out)) }
    }
}

impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

/// The owner of an imported tensor's memory.
struct Owner<O>(#[allow(dead_code)] O);

/// Returns a vector with room for n elements; fails where `Vec` would abort the program.
fn empty_vec<T>(n: usize) -> Result<Vec<T>> {
    let mut data = Vec::new();
    match data.try_reserve_exact(n) {
        Ok(()) => Ok(data),
        Err(_) => Err(Error::new(Status::Oom, format!("no memory for a vector of {} elements", n))),
    }
}

pub(crate) fn check_length(n: usize, shape: &[i64]) -> Result<()> {
    if shape.iter().try_fold(1i64, |all, size| all.checked_mul(*size)) == Some(n as i64) {
        return Ok(());
    }
    Err(Error::new(
        Status::Shape,
        format!("{} elements do not make a tensor of shape {:?}", n, shape),
    ))
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print().map_err(|_| fmt::Error)?)
    }
}
/// Prints the dtype, shape and device; [`Display`](fmt::Display) prints the elements.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {})", self.dtype(), self.shape(), self.device())
    }
}

/// Panics with an error at the caller's line, for operators of `std::ops`, which cannot return a
/// `Result`.
#[cold]
#[track_caller]
pub(crate) fn refuse(e: Error) -> ! {
    panic!("{}", e)
}
