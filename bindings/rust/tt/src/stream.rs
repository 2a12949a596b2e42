//! Properties and memory of CUDA devices; methods of streams and events that are not generated.
use crate::handle::{call, call1, call_value, Handle};
use crate::{Device, Event, Result, Stream};
use std::ffi::CStr;
use tt_sys as sys;

pub use sys::tt_device_memory as DeviceMemory;

/// The properties of a CUDA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The product name.
    pub name: String,
    /// Compute capability, such as (9, 0).
    pub capability: (i32, i32),
    /// Streaming multiprocessors.
    pub multi_processor_count: i32,
    /// Bytes of memory.
    pub total_memory: i64,
}

/// Returns the properties of a CUDA device.
pub fn device_properties(device: Device) -> Result<DeviceProperties> {
    let mut p = sys::tt_device_properties::default();
    // SAFETY: the device is valid during the call; the name is valid forever.
    unsafe {
        call(|c| sys::tt_device_get_properties(c, &device.raw(), &mut p))?;
        Ok(DeviceProperties {
            name: CStr::from_ptr(p.name).to_string_lossy().into_owned(),
            capability: (p.major, p.minor),
            multi_processor_count: p.multi_processor_count,
            total_memory: p.total_memory,
        })
    }
}

/// Returns the runtime's memory statistics for a CUDA device.
pub fn device_memory(device: Device) -> Result<DeviceMemory> {
    // SAFETY: the device is valid during the call.
    unsafe { call_value(|c, out| sys::tt_device_memory_stats(c, &device.raw(), out)) }
}

/// Returns whether kernels of a CUDA device can access the memory of another one.
pub fn can_access_peer(device: Device, peer: Device) -> Result<bool> {
    // SAFETY: the devices are valid during the call.
    let can = unsafe {
        call_value(|c, out| sys::tt_device_can_access_peer(c, &device.raw(), &peer.raw(), out))?
    };
    Ok(can != 0)
}

impl Stream {
    /// Makes a `Stream` of a stream of the application. A device of None is the first CUDA device.
    ///
    /// # Safety
    /// `handle` is a `cudaStream_t` of the device that lives longer than the last clone of the
    /// result.
    pub unsafe fn import(
        device: Option<Device>,
        handle: std::ptr::NonNull<std::ffi::c_void>,
    ) -> Result<Stream> {
        let device = device.map(Device::raw);
        let device = device.as_ref().map_or(std::ptr::null(), |d| d as *const _);
        // SAFETY: the device is valid during the call; the caller guarantees the handle.
        unsafe { call1(|c, out| sys::tt_stream_import(c, device, handle.as_ptr(), out)) }
    }
    /// Returns whether all work of the stream is done.
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        let done: i32 = unsafe { call_value(|c, out| sys::tt_stream_query(c, self.raw(), out))? };
        Ok(done != 0)
    }
    /// Returns the cudaStream_t, to share the stream with other libraries.
    pub fn cuda_stream(&self) -> *mut std::ffi::c_void {
        // SAFETY: the handle is live.
        unsafe { sys::tt_stream_handle(self.raw()) }
    }
}

impl Event {
    /// Returns whether the event is complete. An event that was never recorded is complete.
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        let done: i32 = unsafe { call_value(|c, out| sys::tt_event_query(c, self.raw(), out))? };
        Ok(done != 0)
    }
}
