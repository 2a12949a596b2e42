//! Devices.
use crate::error::{Error, Result};
use crate::handle::*;
use crate::DeviceType;
use std::fmt;
use tt_sys as sys;

/// The device of a tensor. It can be parsed from text:
/// ```
/// let device: tt::Device = "cuda:1".parse()?;
/// assert_eq!((device.kind, device.index), (tt::DeviceType::Cuda, 1));
/// assert_eq!(device.to_string(), "cuda:1");
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// The kind of device.
    pub kind: DeviceType,
    /// The index among the devices of this kind.
    pub index: i32,
}

impl Device {
    /// The CPU.
    pub const CPU: Device = Device { kind: DeviceType::Cpu, index: 0 };
    /// The meta device, whose tensors have shapes and dtypes but no data.
    pub const META: Device = Device { kind: DeviceType::Meta, index: 0 };
    /// Returns the CUDA device with this index.
    pub const fn cuda(index: i32) -> Device {
        Device { kind: DeviceType::Cuda, index }
    }
    /// Returns the number of devices of a kind.
    pub fn count(kind: DeviceType) -> Result<i32> {
        // SAFETY: takes any number.
        unsafe { call_value(|c, out| sys::tt_device_count(c, kind as i32, out)) }
    }
    pub(crate) fn raw(self) -> sys::tt_device {
        sys::tt_device { type_: self.kind as i32, index: self.index }
    }
    pub(crate) fn of_raw(d: sys::tt_device) -> Device {
        Device { kind: DeviceType::from_raw(d.type_).unwrap_or(DeviceType::Ext), index: d.index }
    }
}

/// The CPU.
impl Default for Device {
    fn default() -> Device {
        Device::CPU
    }
}

impl std::str::FromStr for Device {
    type Err = Error;
    fn from_str(text: &str) -> Result<Device> {
        let text = c_string(text)?;
        // SAFETY: the string is valid during the call.
        let raw = unsafe { call_value(|c, out| sys::tt_device_parse(c, text.as_ptr(), out))? };
        Ok(Device::of_raw(raw))
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DeviceType::Cpu => "cpu",
            DeviceType::Cuda => "cuda",
            DeviceType::Meta => "meta",
            DeviceType::Ext => "ext",
        })
    }
}
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DeviceType::Cpu | DeviceType::Meta => fmt::Display::fmt(&self.kind, f),
            kind => f.pad(&format!("{}:{}", kind, self.index)),
        }
    }
}
