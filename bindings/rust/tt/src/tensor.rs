//! Tensors from and to the host's memory, their facts, printing, `+ - * /`.
use crate::callback::{drop_user, slice};
use crate::error::{Error, Result};
use crate::handle::*;
use crate::{DType, Device, Element, Scalar, Status, Tensor};
use std::fmt;
use std::mem::ManuallyDrop;
use std::os::raw::c_void;
use tt_sys as sys;

/// A 0-dim tensor.
pub fn scalar(value: impl Into<Scalar>, dtype: Option<DType>) -> Result<Tensor> {
    let value = value.into().raw();
    unsafe { call1(|c, out| sys::tt_scalar_tensor(c, &value, dtype.map_or(0, |d| d as i32), out)) }
}

impl Tensor {
    /// A copy of row-major data.
    ///
    /// ```
    /// let x = tt::Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!((&x * 2.0 + &x).to_vec::<f32>()?, [3.0, 6.0, 9.0, 12.0]);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn from_slice<T: Element>(data: &[T], shape: &[i64]) -> Result<Tensor> {
        check_length(data.len(), shape)?;
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
    /// Takes the vector's memory over, without a copy.
    pub fn from_vec<T: Element + Send>(mut data: Vec<T>, shape: &[i64]) -> Result<Tensor> {
        check_length(data.len(), shape)?;
        let p = data.as_mut_ptr(); // stays when data moves
        unsafe { Tensor::import(p, shape, None, true, data) }
    }
    /// Over memory that `owner` keeps, which is dropped with the last tensor over it, on any thread. Strides in elements; None: row-major.
    ///
    /// # Safety
    /// The memory is valid for all elements until owner goes, and is read and written as the memory of other tensors.
    pub unsafe fn import<T: Element, O: Send + 'static>(
        data: *mut T,
        shape: &[i64],
        strides: Option<&[i64]>,
        writable: bool,
        owner: O,
    ) -> Result<Tensor> {
        if strides.map_or(false, |s| s.len() != shape.len()) {
            return Err(Error::new(Status::InvalidArg, "strides are not as many as dimensions"));
        }
        let (user, strides) = (
            crate::callback::user(Owner(owner)),
            strides.map_or(std::ptr::null(), <[i64]>::as_ptr),
        );
        let (data, dtype, n) = (data as *mut c_void, T::DTYPE as i32, shape.len() as i64);
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
    /// All elements, row-major. T is the tensor's dtype.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype(T::DTYPE)?;
        let (n, mut data) = (self.numel() as usize, Vec::new());
        data.try_reserve_exact(n).map_err(|_| {
            Error::new(Status::Oom, format!("a vector of {} elements is not to be had", n))
        })?;
        unsafe {
            call(|c| {
                sys::tt_tensor_read(
                    c,
                    self.raw(),
                    data.as_mut_ptr() as *mut c_void,
                    (n * std::mem::size_of::<T>()) as i64,
                )
            })?;
            if T::DTYPE == DType::Bool {
                let bytes = data.as_mut_ptr() as *mut u8; // a file may hold other values than Rust's bool
                (0..n).for_each(|i| *bytes.add(i) = (*bytes.add(i) != 0) as u8);
            }
            data.set_len(n);
        }
        Ok(data)
    }
    /// The value of a tensor of one element. T is the tensor's dtype.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.numel() != 1 {
            self.item_scalar()?; // whose error tells
        }
        self.to_vec().map(|v| v[0])
    }
    /// The value of a tensor of one element, of any dtype.
    pub fn item_scalar(&self) -> Result<Scalar> {
        unsafe { call_value(|c, out| sys::tt_item(c, self.raw(), out)).map(Scalar::of_raw) }
    }
    /// The memory of a contiguous tensor on the CPU.
    ///
    /// # Safety
    /// Nothing writes into it while the slice lives: clones, views and what imported or exported the memory alias it.
    pub unsafe fn as_slice<T: Element>(&self) -> Result<&[T]> {
        Ok(slice(self.memory(T::DTYPE)? as *const T, self.numel()))
    }
    /// The same, to write.
    ///
    /// # Safety
    /// Nothing else reads or writes it while the slice lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice<T: Element>(&self) -> Result<&mut [T]> {
        let p = self.memory(T::DTYPE)? as *mut T;
        if !self.is_writable() {
            return Err(Error::new(
                Status::InvalidArg,
                "the tensor lies over memory that was imported as read-only",
            ));
        }
        Ok(if self.numel() == 0 {
            &mut []
        } else {
            std::slice::from_raw_parts_mut(p, self.numel() as usize)
        })
    }
    fn memory(&self, dtype: DType) -> Result<*mut c_void> {
        self.check_dtype(dtype)?;
        if !self.is_contiguous() || self.device() != Device::CPU {
            return Err(Error::new(
                Status::InvalidArg,
                "only a contiguous tensor on the CPU can be seen as a slice",
            ));
        }
        Ok(self.data_ptr())
    }
    fn check_dtype(&self, wanted: DType) -> Result<()> {
        if self.dtype() == wanted {
            return Ok(());
        }
        Err(Error::new(
            Status::Dtype,
            format!("the tensor is {}: cannot be taken as {}", self.dtype().name(), wanted.name()),
        ))
    }
    /// The first element; null on the meta device.
    pub fn data_ptr(&self) -> *mut c_void {
        unsafe { sys::tt_tensor_data(self.raw()) }
    }
    /// The first byte of the storage.
    pub fn storage_ptr(&self) -> *mut c_void {
        unsafe { sys::tt_tensor_storage_data(self.raw()) }
    }
    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[i64] {
        unsafe { slice(sys::tt_tensor_shape(self.raw()), self.ndim()) }
    }
    /// In elements.
    pub fn strides(&self) -> &[i64] {
        unsafe { slice(sys::tt_tensor_strides(self.raw()), self.ndim()) }
    }
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        DType::from_raw(unsafe { sys::tt_tensor_dtype(self.raw()) })
            .expect("a dtype of this library's version")
    }
    /// Where it is.
    pub fn device(&self) -> Device {
        unsafe {
            Device::of_raw(sys::tt_device {
                type_: sys::tt_tensor_device_type(self.raw()),
                index: sys::tt_tensor_device_index(self.raw()),
            })
        }
    }
    /// In another dtype; itself if it has that.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        self.to_with(crate::opts::ToOpts::new().dtype(dtype))
    }
    /// On another device; itself if it is there.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        self.to_with(crate::opts::ToOpts::new().device(device))
    }
    /// Gives the reference to the caller, who releases it by `tt_tensor_release` or `from_raw`.
    pub fn into_raw(self) -> *mut sys::tt_tensor {
        ManuallyDrop::new(self).raw()
    }
    /// A `DLManagedTensor`, or a versioned one, without a copy: the receiver calls its deleter.
    pub fn to_dlpack(&self, versioned: bool) -> Result<*mut c_void> {
        let mut out = std::ptr::null_mut();
        unsafe { call(|c| sys::tt_tensor_to_dlpack(c, self.raw(), versioned as i32, &mut out))? };
        Ok(out)
    }
    /// Over the memory of one, whose deleter the tensor calls; if this fails, it stays the caller's.
    ///
    /// # Safety
    /// managed is one of that kind, and its memory is used as that of other tensors.
    pub unsafe fn from_dlpack(managed: *mut c_void, versioned: bool) -> Result<Tensor> {
        call1(|c, out| sys::tt_tensor_from_dlpack(c, managed, versioned as i32, out))
    }
}

struct Owner<O>(#[allow(dead_code)] O); // dropped is all that it is for

fn check_length(n: usize, shape: &[i64]) -> Result<()> {
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
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Tensor({} {:?} on {:?}:{})",
            self.dtype().name(),
            self.shape(),
            self.device().kind,
            self.device().index
        )
    }
}

#[cold]
#[track_caller]
pub(crate) fn refuse(e: Error) -> Tensor {
    panic!("{}", e)
}
